import BatchJobs
public import BatchRuns
public import BatchIdentifiers

extension BatchRun {
  /// Retries the identifiers that failed in the job's last run, whether it is finished or not.
  ///
  /// This continues the same run, with the same checkpoint. Identifiers that succeed stop being
  /// failures in the transaction that changes their rows; those that fail again count another
  /// attempt. After a kill or a stop, call it again; ``run(onEvent:answer:)`` would leave the rest
  /// failed.
  ///
  /// The end is acknowledged like that of ``run(onEvent:answer:)``. If a retry finished without
  /// being acknowledged, the next call retries nothing.
  ///
  /// - Parameters:
  ///   - onEvent: Called with each event, one at a time, on any thread.
  ///   - answer: Called with the summary, at least once, just before the run is acknowledged.
  /// - Returns: The state of the run afterwards.
  /// - Throws: `BatchError` if nothing was retried: there is no run, it belongs to other work, or
  ///   another run is alive.
  public func retryFailures(
    onEvent: @escaping @Sendable (RunEvent) -> Void = { _ in },
    answer: Answer = { _ in }
  ) async throws(BatchError) -> RunSummary {
    var request = options.request
    request.retriesFailures = true
    return try await execute(request, onEvent, answer)
  }
}
