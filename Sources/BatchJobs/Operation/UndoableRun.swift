/// A run that can be undone.
public struct UndoableRun: Sendable, Encodable {
  /// The run's UUID.
  public let run: String
  /// When the run began, in ISO 8601 and UTC.
  public let startedAt: String
  /// Until when its changes are kept, in ISO 8601 and UTC; nil for forever.
  public let keptUntil: String?
  /// The number of rows whose changes were recorded.
  public let rows: Int
  /// The size of the recorded changes, in bytes.
  public let bytes: Int
  /// Whether an undo has begun.
  public let isUndone: Bool
  /// The undo, if it is complete.
  package var undo: CompletedUndo?

  private enum CodingKeys: CodingKey { case run, startedAt, keptUntil, rows, bytes, isUndone }

  package init(
    run: String,
    startedAt: String,
    keptUntil: String?,
    rows: Int,
    bytes: Int,
    isUndone: Bool
  ) {
    (self.run, self.startedAt, self.keptUntil) = (run, startedAt, keptUntil)
    (self.rows, self.bytes, self.isUndone) = (rows, bytes, isUndone)
  }
}
