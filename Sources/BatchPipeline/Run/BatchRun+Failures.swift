public import BatchEngine
public import BatchIdentifiers
import BatchStore
import SystemPackage

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
    let onEvent = observed(onEvent)
    return try await stoppable { () async throws(BatchError) in
      #if PostgreSQL
      if let server = job.sharedServer {
        return try await share(server, retryingFailures: true, onEvent, answer)
      }
      #endif
      return try await acknowledging(onEvent) { lock throws(BatchError) in
        try await beginning(onEvent) { () throws(BatchError) in
          try await performRetry(lock, onEvent, answer)
        }
      }
    }
  }

  private func performRetry(
    _ lock: RunLock?,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    guard job.keepsRecord else { throw .noCheckpoint(ofJob: job) }
    var request = options.request
    request.retriesFailures = true
    let findings = try await FileFindings(of: job, request)
    let decision = try findings.decide()
    if case .conclude(let run) = decision {
      return try await conclude(run.record, findings, onEvent, answer)
    }
    guard case .join(let run) = decision, case .checkpoint(let checkpoint) = run.record else {
      throw .noCheckpoint(ofJob: job)
    }
    lock?.noteRetry(of: checkpoint.metadata.run)
    let reopened = try await reopen(checkpoint, findings)
    guard let lane = reopened.lane, checkpoint.metadata.ledger == .store else {
      throw BatchError(
        .invalidJob,
        "this job has no failed identifiers that can be retried",
        at: checkpoint.path.string,
        remedy:
          "only changes of rows with checkpoint.ledger \"store\" do; batch ids --outcome failed"
          + " --output FILE saves what an export has left out, for a job with source.identifiers"
      )
    }
    guard let done = reopened.done else { throw checkpoint.missingLedger() }
    let retried = try await lane.retryFailures()
    let list = try checkpoint.list.slice(retried.positions.map { $0..<($0 + 1) }).packed
    let session = RunSession(
      checkpoint: checkpoint,
      done: done,
      isResumed: true,
      retrying: retried
    )
    // A process may have been killed after the last chunk, before it recorded the end.
    guard !retried.positions.isEmpty || !findings.isFinished(checkpoint) else {
      if checkpoint.progress.awaitsAcknowledgement {
        await lane.close()
        return try await conclude(checkpoint, findings, onEvent, answer)
      }
      onEvent(.message("nothing has failed; nothing to retry"))
      return tell(
        RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint),
        answer
      )
    }
    try checkpoint.takeUp()
    try session.reopen()
    onEvent(.retryingFailures(session.summary()))
    let execution = RunExecution(
      run: self,
      plan: reopened.plan,
      list: list,
      lane: lane,
      session: session,
      onEvent: onEvent
    )
    return await end(execution, answer)
  }
}
