import BatchJobs
public import BatchRuns
public import BatchIdentifiers

extension BatchRun {
  /// Retries the identifiers that failed in the job's last run, finished or not.
  ///
  /// It continues the same run, with the same checkpoint: identifiers that succeed leave the failed ones in
  /// the transaction that changes their rows; those that fail again count another attempt. After a kill or
  /// stop, call it again; ``run(onEvent:answer:)`` would leave the rest failed.
  ///
  /// Its end is acknowledged like that of ``run(onEvent:answer:)``: if it finished unacknowledged, the next
  /// call retries nothing.
  ///
  /// - Parameters:
  ///   - onEvent: Called with each event, one at a time, on no particular thread.
  ///   - answer: Called with the summary, at least once, just before the run is acknowledged.
  /// - Returns: The state of the run afterwards.
  /// - Throws: `BatchError` if nothing was retried: there is no run, it belongs to something else, or
  ///   another is alive.
  public func retryFailures(
    onEvent: @escaping @Sendable (RunEvent) -> Void = { _ in },
    answer: Answer = { _ in }
  ) async throws(BatchError) -> RunSummary {
    var request = options.request
    request.retriesFailures = true
    return try await execute(request, onEvent, answer)
  }
}
