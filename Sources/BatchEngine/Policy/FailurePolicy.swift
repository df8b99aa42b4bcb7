package import BatchIdentifiers

/// What becomes of a chunk of which one identifier fails.
package enum FailurePolicy: Sendable, Hashable {
  /// The chunk fails, and nothing of it is done.
  case failChunk
  /// The identifier is passed over, unless so many were before.
  case skip(upTo: Int)

  /// How many may be passed over.
  package var limit: Int {
    if case .skip(let limit) = self { limit } else { 0 }
  }

  /// What holds of the others when some have been passed over: possibly more than may, since a job can
  /// be resumed with a lower limit.
  package func after(_ failures: Int) -> FailurePolicy {
    if case .skip(let limit) = self { .skip(upTo: max(0, limit - failures)) } else { self }
  }

  /// The error that stops the run, of an identifier that is not passed over.
  package func refusal(_ error: BatchError) -> BatchError {
    guard self != .failChunk else { return error }
    var error = error
    error.remedy = "more identifiers have failed than skip allows; what is committed stays"
    return error
  }
}
