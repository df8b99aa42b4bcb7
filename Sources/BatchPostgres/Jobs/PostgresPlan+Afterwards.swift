#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchRuns

extension PostgresPlan {
  /// What the run will vacuum; nil if the job does not ask for it.
  ///
  /// - Throws: `BatchError` of code `accessDenied` if the role may not.
  static func afterwards(
    of job: Job,
    _ table: PostgresTable,
    in session: PostgresSession
  ) throws(BatchError) -> Int64? {
    guard job.afterwards == .vacuum else { return nil }
    let tables = try table.vacuumed(in: session)
    if let refused = tables.first(where: { !$0.isAllowed }) {
      throw BatchError(
        .accessDenied,
        "the role may not vacuum \(refused.sql)",
        at: job.place(of: JobPath("afterwards")),
        remedy:
          "let the table's owner run the job, or from PostgreSQL 17 on, have it granted MAINTAIN"
      )
    }
    return tables.reduce(0) { $0 + $1.bytes }
  }
}
#endif
