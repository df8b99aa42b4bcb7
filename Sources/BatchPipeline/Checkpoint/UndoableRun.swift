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
  /// Until when its records are kept, as an ISO 8601 timestamp in UTC; nil forever.
  public let keptUntil: String?
  /// How many rows were recorded.
  public let rows: Int
  /// How many bytes the records have.
  public let bytes: Int
  /// Whether an undo has begun.
  public let isUndone: Bool
  /// The undo, if it has come to its end.
  package private(set) var undo: CompletedUndo?
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

  /// What is kept of a run of a job, with what its undo has recorded.
  init(_ stored: StoredUndo, of job: Job) {
    self.init(stored)
    undo = stored.isUndone ? CompletedUndo(of: stored.run, ofJob: job) : nil
  }

  private enum CodingKeys: CodingKey { case run, startedAt, keptUntil, rows, bytes, isUndone }

  /// What the database of a checkpoint keeps of its run; nil if that is nothing, if the file is no
  /// checkpoint, or if the database cannot be read.
  ///
  /// - Parameter path: The checkpoint.
  public init?(ofCheckpoint path: FilePath) async {
    guard let metadata = try? Checkpoint(reading: path).metadata,
      let database = metadata.database,
      let store = try? await Store(path: database, isReadOnly: true),
      let undo = try? await store.undoableRuns(ofJob: metadata.job).first(where: {
        $0.run == metadata.run
      })
    else { return nil }
    // As much of the job as says where the checkpoint of its undo is.
    let job = Job(
      name: metadata.job,
      database: .init(path: FilePath(database)),
      source: .init(entity: undo.entity, everything: true),
      action: .contexts,
      checkpoint: .init(path: path)
    )
    self.init(undo, of: job)
  }

  /// What the database of the checkpoint at a path keeps of its run; see the other initializer.
  @_disfavoredOverload
  public init?(ofCheckpoint path: String) async {
    await self.init(ofCheckpoint: FilePath(path))
  }
}
