package import BatchIdentifiers

/// Computes new values for rows, in a Swift handler or an external program.
///
/// It may be called again with the same rows, after a crash or if another process has changed some
/// of them. So its effects outside the store must tolerate repetition.
package protocol RowHandler: Sendable {
  /// Computes the changes of some rows.
  ///
  /// - Parameters:
  ///   - rows: The rows to change.
  ///   - run: The run that changes them.
  ///   - policy: How many rows may fail; after one more, the rest need not be tried. Rows that fail
  ///     with `retryLater` do not count.
  ///   - byteLimit: The bytes of texts and blobs to hold; the row that reaches this may be the
  ///     last.
  /// - Returns: The values of the first rows, at least one, and the failures among these rows.
  /// - Throws: `BatchError` if it is unknown which row failed. With the code `handlerFailed`, parts
  ///   of the rows may be tried; with `retryLater`, none of them can be done now.
  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges
}

package struct RowChanges: Sendable {
  /// The values of the written columns, for each row computed.
  package var values: ValueBlock
  /// Ascending.
  package var failures: [(row: Int, error: BatchError)] = []
  /// The rows that cannot be done now, ascending.
  package var postponed: [(row: Int, error: BatchError)] = []

  package init(values: ValueBlock) {
    self.values = values
  }

  /// Makes changes that leave all rows unchanged.
  package init(ofRows count: Int, columns: Int) {
    values = ValueBlock(columns: columns, capacity: count, count: count, filledWith: .unset)
  }

  /// Records the error of a row, and leaves the row unchanged.
  package mutating func fail(_ row: Int, _ error: any Error) {
    let error = BatchError(thrownByHandler: error)
    values.unset(row)
    if error.code == .retryLater {
      postponed.append((row, error))
    } else {
      failures.append((row, error))
    }
  }

  /// Turns postponed rows into failures, if there is no further retry.
  package mutating func failPostponed() {
    failures += postponed
    postponed = []
    failures.sort { $0.row < $1.row }
  }
}
