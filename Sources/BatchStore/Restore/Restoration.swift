package import BatchEngine
public import BatchIdentifiers

/// Gives back what a run has taken from rows, by a log of them.
package protocol Restoration: Sendable {
  associatedtype Rows: RestoredRows

  /// The first places of what is given back as a whole, ascending; none if each row is by itself.
  var units: [Int] { get }

  /// Reads rows at some places of the log.
  ///
  /// - Returns: The first of them, if not all are to be held at once.
  func rows(at places: Range<Int>) throws(BatchError) -> Rows

  /// Gives rows back, inside a transaction of the caller.
  ///
  /// - Returns: What became of them, and those that could not be given back.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  func write(
    _ rows: Rows,
    at first: Int,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> WaitingChunk.Written
}

extension Restoration {
  package var units: [Int] { [] }
}

/// Rows on their way to the writer lane.
package protocol RestoredRows: Sendable {
  /// How many there are.
  var count: Int { get }
  /// About how many bytes they hold.
  var byteCount: Int { get }
}

extension WriterLane {
  /// Gives the rows of one chunk back and enters it in the ledger, both or neither.
  ///
  /// - Throws: What ``commitInTurn(_:onFailure:isAlone:_:whenCommitted:)`` throws.
  package func commitUndo<Undo: Restoration>(
    _ undo: Undo,
    _ rows: Undo.Rows,
    at positions: Range<Int>,
    onFailure: FailurePolicy
  ) async throws(BatchError) -> Commit {
    try await commitInTurn(positions, onFailure: onFailure) {
      [connection] onFailure throws(BatchError) in
      try undo.write(rows, at: positions.lowerBound, onFailure: onFailure, in: connection)
    }
  }
}

extension BatchError.Code {
  /// There is nothing by which a run could be undone.
  public static let noUndo = Self(rawValue: "noUndo")
}
