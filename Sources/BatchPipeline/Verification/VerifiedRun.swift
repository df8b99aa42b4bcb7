import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

/// A job's last run, as far as it says what may differ.
struct VerifiedRun {
  let store: Store
  /// The run's UUID.
  let run: String
  /// How many identifiers are done.
  let done: Int
  /// What the job may have done to these rows; nil if nothing may differ.
  let expected: ExpectedChanges?

  init(of job: Job) async throws(BatchError) {
    guard job.action != .contexts, job.action != .undo else {
      throw BatchError(
        .invalidJob,
        "a run by objects, or one that undoes another, does not declare what it changes",
        at: job.checkpointPath.string,
        remedy: "name a job file"
      )
    }
    let checkpoint = try Checkpoint(ofJob: job)
    try checkpoint.refuse(unless: job, nil)
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      throw BatchError(
        .alreadyRunning,
        "a run of this job is alive (process \(process)), and changes rows meanwhile",
        at: job.checkpointPath.string,
        remedy: "wait for its end"
      )
    }
    do throws(BatchError) {
      store = try await Store(
        path: job.database.path.string,
        isReadOnly: true,
        busyTimeout: job.database.busyTimeout
      )
    } catch {
      throw error.located(at: job.place(of: .database))
    }
    let identifier = checkpoint.list.header.storeIdentifier
    guard store.identity.admits(identifier, atPath: store.path) else {
      throw BatchError(
        .otherRun,
        "the checkpoint belongs to store \(identifier), the database is \(store.identity.uuid)",
        at: job.checkpointPath.string,
        remedy: "put the database of the run back"
      )
    }
    let ranges = try await checkpoint.doneRanges(ofJob: job)
    run = checkpoint.metadata.run
    done = ranges.count
    expected = try job.expectedChanges(
      in: store,
      rows: checkpoint.list.slice(ranges.rows.map { $0.first..<$0.next }).packed
    )
  }
}

extension Job {
  /// What the job may have done to some rows; nil if it leaves all as they are.
  fileprivate func expectedChanges(
    in store: Store,
    rows: PackedIdentifiers
  ) throws(BatchError) -> ExpectedChanges? {
    guard action.writes else { return nil }
    let expected: ExpectedChanges.Action
    let entity = try store.schema.entity(named: source.entity)
    switch action {
    case .update(let update):
      expected = .update(columns: update.set.map(\.column))
    case .transform(let transform):
      expected = .update(columns: transform.writes)
    case .delete(let delete):
      var archive: ExpectedChanges.Archive?
      if let name = delete.archive {
        archive = .init(
          try store.schema.entity(named: name),
          of: entity,
          isCreated: delete.createsArchive
        )
      }
      expected = .delete(archive: archive)
    case .export, .contexts, .undo:
      return nil
    }
    let key = if let key = source.key { key } else { try entity.requireKey().columns }
    return try ExpectedChanges(
      table: entity.table,
      key: key,
      action: expected,
      rows: rows
    )
  }
}
