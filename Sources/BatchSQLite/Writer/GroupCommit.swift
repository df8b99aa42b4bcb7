import BatchRuns
import BatchIdentifiers

/// A chunk that waits for the writer lane.
struct WaitingChunk {
  let positions: Range<Int>
  /// What happens when identifiers of the run fail.
  let onFailure: FailurePolicy
  /// Whether it needs its own transaction.
  let isAlone: Bool
  let write: WriterLane.ChunkWrite
  /// Called once its transaction is committed.
  let whenCommitted: @Sendable () -> Void
  let continuation: CheckedContinuation<Result<Commit, BatchError>, Never>
}

/// Decides how many waiting chunks share a transaction.
///
/// Under `synchronous = full`, a commit waits for the disk, and otherwise it costs about as much as
/// a few dozen rows: small chunks pay for it together. No chunk waits for more to arrive.
struct GroupCommit {
  /// How long a shared transaction may block other writers.
  private static let latency = Duration.milliseconds(20)

  private let bound: Duration
  private var longest = Duration.zero
  private var end = Duration.zero

  /// Makes a group that blocks other writers no longer than `target`.
  init(target: Duration?) {
    bound = min(target ?? Self.latency, Self.latency)
  }

  /// Notes a chunk that was written this long after the beginning of the transaction.
  mutating func add(endingAt elapsed: Duration) {
    longest = max(longest, elapsed - end)
    end = elapsed
  }

  /// Whether another chunk fits, if it takes as long as the longest so far.
  var hasRoom: Bool { end + longest <= bound }
}
