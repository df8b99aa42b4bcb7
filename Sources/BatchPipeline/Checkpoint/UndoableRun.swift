import BatchEngine
import BatchIdentifiers
import BatchStore
public import SystemPackage

/// A run that can be undone.
public struct UndoableRun: Sendable, Encodable {
  /// The run's UUID.
  public let run: String
  /// When it began, as an ISO 8601 timestamp in UTC.
  public let startedAt: String
  /// Until when its records are kept, as an ISO 8601 timestamp in UTC; nil for ever.
  public let keptUntil: String?
  /// How many rows were recorded.
  public let rows: Int
  /// How many bytes the records have.
  public let bytes: Int
  /// Whether an undo has begun.
  public let isUndone: Bool
}

extension UndoableRun {
  init(_ undo: StoredUndo) {
    run = undo.run
    startedAt = undo.startedAt
    keptUntil = undo.keptUntil
    rows = undo.rows
    bytes = undo.bytes
    isUndone = undo.isUndone
  }

  /// What the database of a checkpoint keeps of its run; nil if that is nothing, if the file is no
  /// checkpoint, or if the database cannot be read.
  ///
  /// - Parameter path: The checkpoint.
  public init?(ofCheckpoint path: FilePath) async {
    guard let metadata = try? Checkpoint(reading: path).metadata, let path = metadata.database,
      let store = try? await Store(path: path, isReadOnly: true),
      let undo = try? await store.undoableRuns(ofJob: metadata.job).first(where: {
        $0.run == metadata.run
      })
    else { return nil }
    self.init(undo)
  }

  /// What the database of the checkpoint at a path keeps of its run; see the other initializer.
  @_disfavoredOverload
  public init?(ofCheckpoint path: String) async {
    await self.init(ofCheckpoint: FilePath(path))
  }
}
