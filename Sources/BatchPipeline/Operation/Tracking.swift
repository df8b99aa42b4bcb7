package import BatchIdentifiers
package import BatchJobs
import BatchSQLite

/// What to do about the log of the changes of a job's table.
package enum Tracking: Sendable, Equatable {
  case start, stop, status
  /// Forgets a job that read the log.
  case forget(String)

  /// Does it.
  ///
  /// - Returns: The log; nil if there is none any more.
  package func callAsFunction(_ job: Job) async throws(BatchError) -> ChangeLog? {
    try job.requireSupport()
    try job.database.server?.refusePassword()
    if let done = try await onServer(of: job) { return done }
    let store = try await job.openStore(isReadOnly: self == .status)
    guard self == .status || !store.isReadOnly else {
      throw BatchError(
        .readOnly,
        "the database is read-only, or a Core Data store, and a log needs triggers",
        at: store.path
      )
    }
    let connection = StoreConnection(label: "batch.track", path: store.path, options: store.options)
    await store.close()
    let log = try await connection.perform { connection throws(BatchError) in
      try connection.transaction(self == .status ? .deferred : .immediate) {
        () throws(BatchError) -> ChangeLog? in
        // What is left of a table that is gone can be removed.
        if self == .stop {
          try TrackedTable.stop(job.source.entity, in: connection)
          return nil
        }
        let table = try TrackedTable(store.schema.entity(named: job.source.entity))
        return switch self {
        case .forget(let reader): try table.forget(reader, in: connection)
        case .status: try table.log(in: connection)
        case .start, .stop: try table.start(in: connection)
        }
      }
    }
    await connection.close()
    return log
  }
}
