public import BatchIdentifiers

extension BatchError.Code {
  /// Every identifier of the run is done, but some failed.
  public static let identifiersFailed = Self(rawValue: "identifiersFailed")
}

extension RunSummary {
  /// Returns the summary of a completed run, and throws for any other.
  ///
  ///     let summary = try await BatchRun(job).run().get()
  ///
  /// - Parameter allowsFailures: Whether failed identifiers are accepted, up to the limit of the
  ///   job's `skip`.
  /// - Returns: The summary itself.
  /// - Throws: `BatchError`: the error that ended the run, or the reason why its end could not be
  ///   acknowledged; of code `interrupted` if the run was stopped, of code `identifiersFailed` if
  ///   identifiers failed.
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
