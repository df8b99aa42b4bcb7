package import BatchIdentifiers

/// Executes a run in this process: finds recorded runs, decides, begins, joins or concludes a run,
/// executes its chunks, and reports the end.
///
/// It depends neither on where runs are recorded nor on what they do with rows.
package struct RunDriver<Record: RunRecord> {
  private let record: Record
  private let terms: RunTerms
  private let stop: StopSwitch
  private let onEvent: @Sendable (RunEvent) -> Void

  /// Called with the summary just before a finished run counts as acknowledged.
  package typealias Answer = (RunSummary) throws(BatchError) -> Void

  package init(
    _ record: Record,
    _ terms: RunTerms,
    stop: StopSwitch,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) {
    self.record = record
    self.terms = terms
    self.stop = stop
    self.onEvent = onEvent
  }

  /// Executes a request, and returns the end of the run.
  ///
  /// - Throws: `BatchError` if nothing was run; the records are then unchanged.
  package func run(
    _ request: RunRequest,
    answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let entry: RunEntry<Record.Part>
    do throws(BatchError) {
      entry = try await enter(request, answer)
    } catch {
      await record.close()
      throw terms.phrase(record.explained(error))
    }
    let summary: RunSummary
    switch entry {
    case .part(let part):
      await RunExecution(part: part, terms: terms, stop: stop, onEvent: onEvent).perform()
      summary = await conclude(await part.end(), answer)
    case .end(let end): summary = await conclude(end, answer)
    case .result(let result):
      summary = tell(result, answer)
      await record.close()
    case .again: preconditionFailure("an entry that is none")
    }
    onEvent(.ended(summary))
    return summary
  }

  /// Enters a run, and retries while others hold locks, as often as a chunk is retried.
  private func enter(
    _ request: RunRequest,
    _ answer: Answer
  ) async throws(BatchError) -> RunEntry<Record.Part> {
    let backoff = Backoff(terms.policy.retry)
    return try await backoff.repeating(on: terms.host) { () throws(BatchError) in
      while true {
        if let entry = try await enterOnce(request, answer) { return entry }
      }
    } wait: { delay, attempt, reason throws(BatchError) in
      guard record.isTransient(reason) else { throw reason }
      onEvent(
        .message(
          "\(reason.message); the run tries again to begin (\(attempt.grouped) of \(backoff.limit.grouped))"
        )
      )
      try await record.wait(delay)
    }
  }

  /// Returns nil if the state has changed, so that another decision is needed.
  private func enterOnce(
    _ request: RunRequest,
    _ answer: Answer
  ) async throws(BatchError) -> RunEntry<Record.Part>? {
    let entry: RunEntry<Record.Part>
    switch try RunDecision(try await record.find(request), request, job: terms.name) {
    case .begin(let replaced): entry = try await record.begin(request, replacing: replaced)
    case .join(let run):
      entry = try await record.join(run, retryingFailures: request.retriesFailures)
    case .conclude(let run): entry = .end(try await record.end(of: run))
    case .concludeFirst(let run):
      let last = await conclude(try await record.end(of: run), answer, thenContinuing: true)
      if let problem = last.unacknowledged { throw run.isNotTold(problem) }
      return nil
    case .nothing(let run): entry = .result(try await record.result(of: run))
    }
    if case .again = entry { return nil }
    return entry
  }

  /// Performs the steps after the chunks; if this process is killed, the next one repeats all of
  /// them.
  private func conclude(
    _ end: Record.Part.End,
    _ answer: Answer,
    thenContinuing continues: Bool = false
  ) async -> RunSummary {
    var summary = end.summary
    if end.isDeliveredHere {
      do throws(BatchError) {
        try await end.report()
      } catch {
        onEvent(.message("\(error)"))
      }
      await end.notifier?.end(summary)
    }
    await end.notifier?.settle()
    for message in end.notifier?.takeMessages() ?? [] { onEvent(.message(message)) }
    if summary.state.isFinished {
      do throws(BatchError) {
        try await end.verify()
      } catch {
        summary.state = .failed
        summary.failure = terms.phrase(error)
      }
    }
    summary = tell(summary, answer)
    let isDelivered =
      end.isDeliveredHere && summary.state.isFinished && summary.unacknowledged == nil
    await end.leave(isDelivered: isDelivered)
    if !continues { await record.close() }
    guard isDelivered else { return summary }
    do throws(BatchError) {
      try await end.acknowledge()
    } catch {
      summary.unacknowledged = error
    }
    return summary
  }

  private func tell(_ summary: RunSummary, _ answer: Answer) -> RunSummary {
    var summary = summary
    do throws(BatchError) {
      try answer(summary)
    } catch {
      summary.unacknowledged = error
    }
    return summary
  }
}
