#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers

/// The end of a run that is recorded in tables, or of this process's part of it.
package struct TableEnd: RunEnd {
  let summary: RunSummary
  let notifier: (any RunNotifier)?
  let isDeliveredHere: Bool
  let run: TableRun
  package let tables: RunTables
  package let address: ServerAddress
  package let lease: Duration
  package let stop: TableRunStop

  /// Jobs with shared runs have no reports.
  package func report() {}

  func verify() {}

  func leave(isDelivered: Bool) {}

  func acknowledge() async throws(BatchError) {
    // The connection that opened the run may have been interrupted since.
    let connection = PostgresConnection(label: "batch.end", address: address, within: stop.closing)
    let (tables, run) = (tables, run.run)
    let result: Result<Void, BatchError>
    do throws(BatchError) {
      try await connection.persistently(within: lease) { session throws(BatchError) in
        try tables.acknowledge(run, in: session)
      }
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await connection.close()
    try result.get()
  }
}
#endif
