package import BatchIdentifiers

/// Computes the new values of rows: a handler of a Swift program, or an external program.
///
/// It may be called with the same rows again, after a crash or if another process has changed some
/// of them meanwhile, so its effects outside the store must tolerate repetition.
package protocol RowHandler: Sendable {
  /// Computes the changes of some rows.
  ///
  /// - Parameters:
  ///   - rows: The rows.
  ///   - run: The run that changes them.
  ///   - policy: How many rows may fail; after one more, the rest need not be tried. Rows that fail
  ///     with `retryLater` do not count.
  ///   - byteLimit: How many bytes of texts and blobs to hold; the row that reaches this may be the
  ///     last.
  /// - Returns: The values of the first rows, at least one, and those of them that failed.
  /// - Throws: `BatchError` if it is unknown which row failed. If the code is `handlerFailed`,
  ///   parts of the rows may be tried; if it is `retryLater`, none of them can be done now.
  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges
}

/// A handler's results for some rows.
package struct RowChanges: Sendable {
  /// The values of the written columns, for each row reached.
  package var values: ValueBlock
  /// The rows that failed, ascending.
  package var failures: [(row: Int, error: BatchError)] = []
  /// The rows that cannot be done now, ascending.
  package var postponed: [(row: Int, error: BatchError)] = []

  package init(values: ValueBlock) {
    self.values = values
  }

  /// Makes changes that leave all rows as they are.
  package init(ofRows count: Int, columns: Int) {
    values = ValueBlock(columns: columns, capacity: count, count: count, filledWith: .unset)
  }

  /// Notes an error of a row, which stays unchanged.
  package mutating func fail(_ row: Int, _ error: any Error) {
    let error = BatchError(thrownByHandler: error)
    values.unset(row)
    if error.code == .retryLater {
      postponed.append((row, error))
    } else {
      failures.append((row, error))
    }
  }

  /// Fails the rows that cannot be done now, since there is no retry.
  package mutating func failPostponed() {
    failures += postponed
    postponed = []
    failures.sort { $0.row < $1.row }
  }
}
