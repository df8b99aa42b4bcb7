package import BatchRuns
package import BatchIdentifiers

/// Reverts a run's changes to rows, using a log of them.
package protocol Restoration: Sendable {
  associatedtype Rows: RestoredRows

  /// The first positions of units that are restored as a whole, ascending; empty if each row is
  /// restored on its own.
  var units: [Int] { get }

  /// Reads the rows at some positions of the log; only the first of them, if not all can be held at
  /// once.
  func rows(at places: Range<Int>) throws(BatchError) -> Rows

  /// Restores rows, inside the caller's transaction.
  ///
  /// - Returns: Their outcomes, including those that could not be restored.
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  func write(
    _ rows: Rows,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult
}

extension Restoration {
  package var units: [Int] { [] }
}

package protocol RestoredRows: Sendable {
  var count: Int { get }
  var byteCount: Int { get }
}
