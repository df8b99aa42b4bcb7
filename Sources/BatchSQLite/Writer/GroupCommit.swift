import BatchRuns
import BatchIdentifiers

struct WaitingChunk {
  let positions: Range<Int>
  let onFailure: FailurePolicy
  let isAlone: Bool
  let write: WriterLane.ChunkWrite
  let whenCommitted: @Sendable () -> Void
  let continuation: CheckedContinuation<Result<Commit, BatchError>, Never>
}

/// Decides how many waiting chunks share a transaction.
///
/// With `synchronous = full`, a commit waits for the disk; otherwise it costs about as much as a
/// few dozen rows. Small chunks share this cost. No chunk waits for more to arrive.
struct GroupCommit {
  private static let latency = Duration.milliseconds(20)

  private let bound: Duration
  private var longest = Duration.zero
  private var end = Duration.zero

  init(target: Duration?) {
    bound = min(target ?? Self.latency, Self.latency)
  }

  /// Records a chunk that was finished this long after the transaction began.
  mutating func add(endingAt elapsed: Duration) {
    longest = max(longest, elapsed - end)
    end = elapsed
  }

  /// Whether another chunk fits if it takes as long as the longest so far.
  var hasRoom: Bool { end + longest <= bound }
}
