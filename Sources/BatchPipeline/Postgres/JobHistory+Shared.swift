#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

extension JobHistory {
  /// A job's runs in the database: those that `batch cleanup` has not removed.
  init(ofSharedRunsOf job: Job) async throws(BatchError) {
    let lease = job.database.lease
    self = try await job.inSession { session throws(BatchError) in
      let tables = try RunTables(of: session)
      var runs: [RecordedRun] = []
      for run in try tables.runs(ofJobIfThere: job.name, in: session) {
        guard let standing = try tables.standing(ofRun: run.run, in: session) else { continue }
        let hosts = try tables.hosts(ofRun: run.run, in: session)
        let summary = RunSummary(standing, of: hosts, lease: lease)
        runs.append(RecordedRun(try run.described(), summary))
      }
      return JobHistory(folder: session.address.description, bytes: 0, runs: runs.reversed())
    }
  }
}
#endif
