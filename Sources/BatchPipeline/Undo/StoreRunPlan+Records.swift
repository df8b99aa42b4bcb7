package import BatchIdentifiers

extension StoreRunPlan {
  package func differenceFromRecords(ofRun run: String) async throws(BatchError) -> String? {
    let report = try await UndoReport(undoingWork: cause, run: run, whileAlive: true)
    return report.isAsLeft ? nil : report.changedSince.first ?? "rows are gone, or as before"
  }
}
