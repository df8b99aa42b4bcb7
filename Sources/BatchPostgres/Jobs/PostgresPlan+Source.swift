#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchRuns

extension PostgresPlan {
  /// The table, the view or the query with a job's rows.
  static func table(
    of job: Job,
    at place: String,
    _ parameters: PostgresParameters,
    _ path: SearchPath,
    in session: PostgresSession
  ) throws(BatchError) -> PostgresTable {
    try located(at: place) { () throws(BatchError) in
      if let query = job.source.query {
        return try PostgresTable(
          of: PostgresExpression(query, at: place, noun: "query"),
          named: job.source.entity,
          parameters: parameters,
          path: path,
          in: session
        )
      }
      return try session.transaction(TransactionOptions(isReadOnly: true)) {
        () throws(BatchError) in
        try PostgresTable(named: job.source.entity, in: session)
      }
    }
  }
}

extension Recheck {
  /// Whether a condition must still hold when a row is written.
  ///
  /// A condition that reads other rows or is volatile is checked again only if the job demands it,
  /// since the run's own work might affect it.
  func applies(to condition: CheckedExpression?) -> Bool {
    switch self {
    case .off: false
    case .row: condition?.isAboutRow ?? false
    case .skip, .fail: true
    }
  }
}
#endif
