package import BatchEngine
package import BatchIdentifiers

/// A chunk that has come to the writer lane and waits to be written.
package struct WaitingChunk {
  /// What became of its identifiers.
  package struct Written: Sendable {
    /// How many rows were changed.
    package var succeeded = 0
    /// The identifiers that were neither changed nor failed, by their numbers in the chunk.
    package var passedOver = PassedOver()
    /// Those that failed, by their positions in the list, ascending.
    package var failures: [(position: Int, error: BatchError)] = []

    /// Nothing was written.
    package init() {}

    /// How many came to what.
    package var outcomes: Outcomes {
      var outcomes = passedOver.counts
      outcomes.succeeded = succeeded
      outcomes.failed = failures.count
      return outcomes
    }
  }

  let positions: Range<Int>
  /// What becomes of identifiers of the whole run that fail.
  let onFailure: FailurePolicy
  /// Whether it shares its transaction with no other.
  let isAlone: Bool
  /// Writes it inside a transaction; told what becomes of those of its identifiers that fail.
  let write: (_ onFailure: FailurePolicy) throws(BatchError) -> Written
  /// Called once its transaction is committed.
  let whenCommitted: () -> Void
  let continuation: CheckedContinuation<Result<Commit, BatchError>, Never>
}

/// Decides how many of the chunks that wait share a transaction.
///
/// A commit waits for the disk under `synchronous = full`, and costs about as much as some dozens of
/// rows otherwise: small chunks together pay for it once. Nobody waits for more chunks to come.
struct GroupCommit {
  /// The longest that chunks may keep others from writing for the sake of being together.
  private static let latency = Duration.milliseconds(20)

  private let bound: Duration
  private var longest = Duration.zero
  private var end = Duration.zero

  /// A group that is no reason to keep others waiting for longer than `target`.
  init(target: Duration?) {
    bound = min(target ?? Self.latency, Self.latency)
  }

  /// Takes note of a chunk that was written so long after the beginning of the transaction.
  mutating func add(endingAt elapsed: Duration) {
    longest = max(longest, elapsed - end)
    end = elapsed
  }

  /// Whether another chunk fits in, if it takes as long as the longest of those before it.
  var hasRoom: Bool { end + longest <= bound }
}
