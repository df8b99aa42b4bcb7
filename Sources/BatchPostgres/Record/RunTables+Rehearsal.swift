#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
import BatchRuns

extension RunTables {
  /// Why a run of a job may differ from a rehearsal, in words.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` if a run of the job is alive.
  package static func notes(
    onRehearsing job: Job,
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    guard job.sharedServer != nil else { return [] }
    let runs: [TableRun]
    let tables: RunTables
    do {
      tables = try RunTables(of: session)
      try tables.requireUse(in: session)
      runs = try tables.runs(ofJobIfThere: job.name, in: session).filter { $0.state == .running }
    } catch {
      guard !session.isLost, error.code != .interrupted else { throw error }
      let remedy = error.remedy.map { "; \($0)" } ?? ""
      return ["batch run would be refused: \(error.message)\(remedy)"]
    }
    try tables.refuseIfAlive(runs, within: job.database.lease, in: session)
    if runs.isEmpty { return [] }
    return [
      "this was a new selection, but the job has an unfinished run; batch status tells what batch run"
        + " would do with it"
    ]
  }
}
#endif
