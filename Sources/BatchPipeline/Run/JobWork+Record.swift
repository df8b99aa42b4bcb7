#if PostgreSQL
import BatchRuns
import BatchIdentifiers

extension JobWork {
  func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord {
    guard let server = job.sharedServer else { return try fileRecord(of: run, onEvent) }
    try job.validate()
    try options.check()
    return try TableRecord(of: run, by: self, on: server, onEvent: onEvent)
  }
}
#endif
