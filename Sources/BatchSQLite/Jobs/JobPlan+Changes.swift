package import BatchIdentifiers
import BatchJobs
import BatchRuns

extension JobPlan {
  /// The increment of an export of the log of changes.
  struct LoggedChanges {
    let increment: Increment
    let key: [String]
    /// The SELECT of the rows.
    let query: String

    /// Returns nil for any other job.
    init?(
      _ job: Job,
      _ parameters: ParameterValues,
      of run: RunIdentity,
      _ schema: Schema,
      in connection: Connection
    ) throws(BatchError) {
      guard job.source.changes != nil else { return nil }
      do throws(BatchError) {
        let table = try TrackedTable(schema.entity(named: job.source.entity))
        let log = try connection.transaction(.deferred) { () throws(BatchError) in
          try table.log(in: connection)
        }
        increment = try log.increment(of: job, parameters, for: run)
        key = log.key
        query = table.rows(of: increment)
      } catch {
        throw error.located(
          at: job.place(of: error.subject == nil ? .changes : job.source.path(of: error.subject))
        )
      }
    }
  }

  /// Notes from where on the job needs the log of changes, if it exports that.
  package func enterIncrement() async throws(BatchError) {
    guard job.source.changes != nil, !job.isRehearsal, let increment else { return }
    guard !store.isReadOnly else {
      throw BatchError(
        .readOnly,
        "the database is read-only, and a job with source.changes notes there what it has exported",
        at: job.place(of: .database),
        remedy: "make the file and its folder writable, or export with source.since instead"
      )
    }
    let entity = try store.schema.entity(named: job.source.entity)
    let connection = StoreConnection(label: "batch.track", path: store.path, options: store.options)
    try await Backoff(job.retry).repeating { [job] () throws(BatchError) in
      try await connection.perform { connection throws(BatchError) in
        try TrackedTable(entity).enter(job.name, increment, in: connection)
      }
    }
    await connection.close()
  }
}
