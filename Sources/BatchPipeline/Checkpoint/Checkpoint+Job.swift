package import BatchEngine
package import BatchIdentifiers
import BatchStore
import SystemPackage

extension Checkpoint {
  /// The checkpoint of a job's last run.
  package convenience init(ofJob job: Job) throws(BatchError) {
    guard FileSystem.status(of: job.checkpointPath) != nil else { throw .noCheckpoint(ofJob: job) }
    try self.init(reading: job.checkpointPath)
    try refuseForeignOwner(of: job.files)
  }

  /// What is done, from the ledger in the store where there is one: the file may lag behind it.
  package func doneRanges(ofJob job: Job) async throws(BatchError) -> DoneRanges {
    guard metadata.ledger == .store else { return progress.done }
    do {
      let store = try await Store(
        path: job.database.path.string,
        isReadOnly: true,
        busyTimeout: job.database.busyTimeout
      )
      return try await store.doneRanges(ofRun: metadata.run) ?? progress.done
    } catch {
      // What is finished the file knows as well.
      guard progress.state.isFinished else { throw error }
      return progress.done
    }
  }
}

extension BatchError {
  /// The error for a job that never ran, or whose checkpoint is gone.
  static func noCheckpoint(ofJob job: Job, remedy: String = "run it first") -> BatchError {
    BatchError(
      .fileAccess,
      "job \"\(job.name)\" has no checkpoint",
      at: job.checkpointPath.string,
      remedy: remedy
    )
  }
}
