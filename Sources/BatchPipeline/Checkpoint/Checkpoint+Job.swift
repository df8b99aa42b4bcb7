import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  /// The error if the store does not know the run.
  func missingLedger() -> BatchError {
    BatchError(
      .otherRun,
      "the checkpoint has \(progress.done.count.grouped) identifiers done, but the database has no ledger"
        + " of this run",
      at: path.string,
      remedy: "the database may have been restored from a backup; run with --fresh to select"
        + " again"
    )
  }

  /// The outcome of each identifier: from the ledger in the store if there is one, or from the file
  /// of a finished run, which has all outcomes.
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

  /// The done positions, from the ledger in the store if there is one, since the file may lag
  /// behind it.
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
}
