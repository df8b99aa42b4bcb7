public import BatchIdentifiers

extension BatchError.Code {
  /// Every identifier of a run is done, and some failed.
  public static let identifiersFailed = Self(rawValue: "identifiersFailed")
}

extension RunSummary {
  /// Returns the summary of a run that has completed, and throws for any other.
  ///
  ///     let summary = try await BatchRun(job).run().get()
  ///
  /// - Parameter allowsFailures: Whether identifiers may have failed, as many as the job's `skip` allows.
  /// - Returns: The summary itself.
  /// - Throws: `BatchError`: what failed the run, or kept its end from being acknowledged; of code `interrupted` for a run
  ///   that was stopped, `identifiersFailed` for one in which identifiers failed.
  public func get(allowingFailures allowsFailures: Bool = false) throws(BatchError) -> RunSummary {
    if let failure { throw failure }
    if let unacknowledged { throw unacknowledged }
    switch state {
    case .completed: return self
    case .completedWithFailures:
      if allowsFailures { return self }
      throw BatchError(
        .identifiersFailed,
        "\(outcomes.failed.grouped) of \(total.grouped) identifiers failed in run \(run)",
        remedy: "mend what is wrong, and call retryFailures()"
      )
    case .running, .throttled, .paused, .stopped, .failed:
      let reason = (error ?? stopReason).map { ": \($0)" } ?? ""
      throw BatchError(
        .interrupted,
        "run \(run) has ended with \(done.grouped) of \(total.grouped) identifiers done\(reason)",
        remedy: "call run() again; it resumes where it stopped"
      )
    }
  }
}
