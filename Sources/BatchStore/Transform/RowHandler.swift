package import BatchEngine
package import BatchIdentifiers

/// What computes the new values of rows: a handler of a Swift program, or a program of its own.
///
/// It may be called with the same rows again, after a crash or if another process has changed some
/// of them in between; what it does outside the store must therefore bear being done twice.
package protocol RowHandler: Sendable {
  /// Computes the changes of some rows.
  ///
  /// - Parameters:
  ///   - rows: The rows.
  ///   - run: The run that they are changed by.
  ///   - policy: How many rows may fail; the rest need not be tried after one more has. A row that
  ///     fails with `retryLater` is not one of them.
  ///   - byteLimit: How many bytes of texts and blobs are held; the row that comes to as many may be
  ///     the last.
  /// - Returns: The values of the first rows, at least one, and those of them that failed.
  /// - Throws: `BatchError` if it cannot be said which row failed. If the code is `handlerFailed`,
  ///   parts of the rows may be tried; if it is `retryLater`, none of them can be done now.
  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges
}

/// What a handler makes of some rows.
package struct RowChanges: Sendable {
  /// The values of the written columns, a row for each row that was reached.
  package var values: ValueBlock
  /// The rows that failed, ascending.
  package var failures: [(row: Int, error: BatchError)] = []
  /// The rows that cannot be done now, ascending.
  package var postponed: [(row: Int, error: BatchError)] = []

  package init(values: ValueBlock) {
    self.values = values
  }

  /// Takes note of what was thrown for a row, which stays as it is.
  package mutating func fail(_ row: Int, _ error: any Error) {
    let error = BatchError(thrownByHandler: error)
    values.unset(row)
    if error.code == .retryLater {
      postponed.append((row, error))
    } else {
      failures.append((row, error))
    }
  }

  /// Has the rows fail that cannot be done now, since there is no later.
  mutating func failPostponed() {
    failures += postponed
    postponed = []
    failures.sort { $0.row < $1.row }
  }
}
