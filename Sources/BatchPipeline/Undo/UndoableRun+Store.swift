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

  /// The undo records of a run of the work, and the undo of that run if it is complete.
  init(_ stored: StoredUndo, of work: some RunCause) {
    self.init(stored)
    undo = stored.isUndone ? CompletedUndo(of: stored.run, ofWork: work) : nil
  }

  /// Finds the undo records of a checkpoint's run in its database.
  ///
  /// It is nil if there are none, if the file is not a checkpoint, or if the database cannot be
  /// read.
  ///
  /// - Parameter path: The checkpoint of the run.
  public init?(ofCheckpoint path: FilePath) async {
    guard let metadata = try? Checkpoint(reading: path).metadata,
      let database = metadata.database,
      let store = try? await Store(path: database, isReadOnly: true),
      let undo = try? await store.undoableRuns(ofJob: metadata.job).first(where: {
        $0.run == metadata.run
      })
    else { return nil }
    // Only the part of the work that determines the checkpoint of its undo.
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

  /// Finds the undo records for a checkpoint whose path is given as text.
  @_disfavoredOverload
  public init?(ofCheckpoint path: String) async {
    await self.init(ofCheckpoint: FilePath(path))
  }
}
