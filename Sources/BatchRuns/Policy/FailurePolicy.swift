package import BatchIdentifiers

/// What happens to a chunk when one of its identifiers fails.
package enum FailurePolicy: Sendable, Hashable {
  /// The chunk fails, and none of its rows are changed.
  case failChunk
  /// The identifier is skipped, up to this many in the run, as the named setting allows.
  case skip(upTo: Int, allowedBy: String = "skip.limit")

  package var limit: Int {
    if case .skip(let limit, _) = self { limit } else { 0 }
  }

  /// The policy after some failures.
  ///
  /// There may be more than the limit: a job can be resumed with a lower one.
  /// lower limit.
  package func after(_ failures: Int) -> FailurePolicy {
    guard case .skip(let limit, let setting) = self else { return self }
    return .skip(upTo: max(0, limit - failures), allowedBy: setting)
  }

  /// The error that stops the run, for an identifier that is not skipped.
  package func refusal(_ error: BatchError) -> BatchError {
    guard case .skip(_, let setting) = self else { return error }
    var error = error
    error.remedy =
      "more identifiers have failed than \(setting) allows; correct the rows, or raise \(setting)"
    return error
  }
}
