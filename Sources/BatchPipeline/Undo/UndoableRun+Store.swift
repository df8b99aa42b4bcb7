import BatchIdentifiers
import BatchJobs
import BatchRuns
import BatchSQLite
public import SystemPackage

extension UndoableRun {
  init(_ undo: StoredUndo) {
    self.init(
      run: undo.run,
      startedAt: undo.startedAt,
      keptUntil: undo.keptUntil,
      rows: undo.rows,
      bytes: undo.bytes,
      isUndone: undo.isUndone
    )
  }

  /// The undo records of a job's run, and what its undo has recorded.
  init(_ stored: StoredUndo, of work: some RunCause) {
    self.init(stored)
    undo = stored.isUndone ? CompletedUndo(of: stored.run, ofWork: work) : nil
  }

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
