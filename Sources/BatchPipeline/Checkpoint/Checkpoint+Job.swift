import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  func missingLedger() -> BatchError {
    if progress.state.isFinished {
      return BatchError(
        .otherRun,
        "the database no longer records this run, so its failed identifiers cannot be retried",
        at: path.string,
        remedy: "batch cleanup removes records of finished runs, and a restored backup lacks them;"
          + " save the identifiers with batch ids --outcome failed --output FILE, and run the job"
          + " over them with source.identifiers"
      )
    }
    return BatchError(
      .otherRun,
      "the checkpoint has \(progress.done.count.grouped) identifiers done, but the database has no ledger"
        + " of this run",
      at: path.string,
      remedy: "the database may have been restored from a backup; run with --fresh to select"
        + " again"
    )
  }

  /// The outcomes from the ledger in the store, or from the file of a finished run, which has all
  /// of them.
  package func rowOutcomes(of cause: some RunCause) async throws(BatchError) -> RowOutcomes {
    guard metadata.ledger == .store, !progress.state.isFinished else { return try rowOutcomes() }
    let store = try await cause.storeToRead()
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

  /// The done positions from the ledger in the store if there is one, since the file may lag
  /// behind.
  package func doneRanges(of cause: some RunCause) async throws(BatchError) -> DoneRanges {
    guard metadata.ledger == .store else { return progress.done }
    do {
      let store = try await cause.storeToRead()
      return try await store.doneRanges(ofRun: metadata.run) ?? progress.done
    } catch {
      // The file is complete for finished runs.
      guard progress.state.isFinished else { throw error }
      return progress.done
    }
  }

  /// How long processes have worked on the run: the file may lag behind the store.
  func elapsedSeconds(of cause: some RunCause) async throws(BatchError) -> Double {
    guard metadata.ledger == .store, !progress.state.isFinished else {
      return progress.elapsedSeconds
    }
    let stored = try await cause.storeToRead().elapsedSeconds(ofRun: metadata.run)
    return max(progress.elapsedSeconds, stored)
  }
}
