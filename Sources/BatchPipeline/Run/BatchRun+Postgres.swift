#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

extension BatchRun {
  /// Has the driver carry out a request in the tables of a server.
  func share(
    _ server: Job.DatabaseOptions.Server,
    _ request: RunRequest,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    guard let work = work as? JobWork else {
      preconditionFailure("work on PostgreSQL that is not that of a job")
    }
    try job.validate()
    try options.check()
    let record = try TableRecord(of: self, by: work, on: server, onEvent: onEvent)
    do throws(BatchError) {
      return try await RunDriver(record, cause, stop: stopSwitch, onEvent: onEvent)
        .run(request, answer: answer)
    } catch {
      throw job.words(of: error.afterStop(at: record.address.description))
    }
  }
}
#endif
