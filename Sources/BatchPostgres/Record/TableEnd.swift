#if PostgreSQL
import BatchJobs
import BatchRuns
package import BatchIdentifiers

/// The end of a run that is recorded in tables, or of this process's part of it.
package struct TableEnd: RunEnd {
  let summary: RunSummary
  let cause: any RunCause
  let notifier: (any RunNotifier)?
  let isDeliveredHere: Bool
  let run: TableRun
  package let tables: RunTables
  package let address: ServerAddress
  package let lease: Duration
  package let stop: TableRunStop

  package func report() async throws(BatchError) {
    guard let report = cause.report else { return }
    let (tables, run) = (tables, run)
    let (metadata, failures, course, actions) = try await connected { session throws(BatchError) in
      (
        try run.described(), try tables.reportedFailures(ofRun: run.run, in: session),
        try tables.course(ofRun: run.run, in: session), try tables.noted(of: run.run, in: session)
      )
    }
    var pace = course.pace
    pace.finish()
    let told = actions.following(metadata, nil)
    try RunReport(summary, of: cause, metadata, failures, pace, told).write(
      to: report,
      permissions: cause.files.permissions
    )
  }

  func verify() {}

  func leave(isDelivered: Bool) {}

  func acknowledge() async throws(BatchError) {
    let (tables, run) = (tables, run.run)
    try await connected { session throws(BatchError) in
      try tables.acknowledge(run, in: session)
    }
  }

  /// Runs `body` on a connection of its own, since the one that opened the run may have been interrupted.
  private func connected<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresSession) throws(BatchError) -> Value
  ) async throws(BatchError) -> Value {
    let connection = PostgresConnection(label: "batch.end", address: address, within: stop.closing)
    let result: Result<Value, BatchError>
    do throws(BatchError) {
      result = .success(try await connection.persistently(within: lease, body))
    } catch {
      result = .failure(error)
    }
    await connection.close()
    return try result.get()
  }
}
#endif
