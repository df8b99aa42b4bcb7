import BatchRuns
import BatchIdentifiers
import BatchSQLite
public import SystemPackage

/// A run that can be undone.
public struct UndoableRun: Sendable, Encodable {
  /// The run's UUID.
  public let run: String
  /// When it began, as an ISO 8601 timestamp in UTC.
  public let startedAt: String
  /// Until when its records are kept, as an ISO 8601 timestamp in UTC; nil for forever.
  public let keptUntil: String?
  /// The number of recorded rows.
  public let rows: Int
  /// The size of the records in bytes.
  public let bytes: Int
  /// Whether an undo has begun.
  public let isUndone: Bool
  /// The undo, if it is complete.
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

  /// The undo records of a job's run, and what its undo has recorded.
  init(_ stored: StoredUndo, of work: some RunCause) {
    self.init(stored)
    undo = stored.isUndone ? CompletedUndo(of: stored.run, ofWork: work) : nil
  }

  private enum CodingKeys: CodingKey { case run, startedAt, keptUntil, rows, bytes, isUndone }

  /// The undo records of a checkpoint's run in its database; nil if there are none, if the file is
  /// not a checkpoint, or if the database cannot be read.
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
    // As much of the work as determines the checkpoint of its undo.
    var policy = RunPolicy()
    policy.checkpoint.path = path
    let work = ProgramWork(
      .objects,
      name: metadata.job,
      entity: undo.entity,
      database: .init(path: FilePath(database)),
      policy: policy
    )
    self.init(undo, of: work)
  }

  /// The undo records of the run of the checkpoint at a path; see the other initializer.
  @_disfavoredOverload
  public init?(ofCheckpoint path: String) async {
    await self.init(ofCheckpoint: FilePath(path))
  }
}
