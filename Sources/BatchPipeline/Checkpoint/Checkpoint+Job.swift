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

  /// The outcome of each identifier: from the ledger in the store if there is one, or from the file
  /// of a finished run, which has all outcomes.
  package func rowOutcomes(ofJob job: Job) async throws(BatchError) -> RowOutcomes {
    guard metadata.ledger == .store, !progress.state.isFinished else { return try rowOutcomes() }
    let store = try await job.storeToRead()
    guard let outcomes = try await store.rowOutcomes(ofRun: metadata.run) else {
      return try rowOutcomes()
    }
    guard (outcomes.done.rows.last?.next ?? 0) <= list.count,
      outcomes.failed.allSatisfy({ (0..<list.count).contains($0.position) })
    else {
      throw BatchError(
        .damagedFile,
        "the ledger in the database and the checkpoint do not belong together",
        at: path.string,
        remedy: "run with --fresh to select again"
      )
    }
    return outcomes
  }

  /// The done positions, from the ledger in the store if there is one, since the file may lag
  /// behind it.
  package func doneRanges(ofJob job: Job) async throws(BatchError) -> DoneRanges {
    guard metadata.ledger == .store else { return progress.done }
    do {
      let store = try await job.storeToRead()
      return try await store.doneRanges(ofRun: metadata.run) ?? progress.done
    } catch {
      // The file is complete for finished runs.
      guard progress.state.isFinished else { throw error }
      return progress.done
    }
  }
}

extension BatchError {
  /// Whether this says that a job has no run yet.
  package var isAboutMissingRun: Bool { code == .fileAccess || code == .unknownRun }

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
