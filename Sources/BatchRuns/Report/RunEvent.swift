public import BatchIdentifiers

/// An event that a run reports while it is in progress.
public enum RunEvent: Sendable {
  /// A new run has selected its identifiers.
  case started(RunSummary)
  /// An unfinished run was resumed.
  case resumed(RunSummary)
  /// This process takes part in a run on which others are working.
  case joined(RunSummary)
  /// The failed identifiers are being retried.
  case retryingFailures(RunSummary)
  /// Chunks were committed.
  case progress(RunSummary)
  /// The throttle holds the run, for the reason in the summary.
  case throttled(RunSummary)
  /// A chunk failed transiently and will be retried.
  case retrying(ChunkRetry)
  /// The checkpoint of an unfinished run was renamed to make way for a new one.
  case setAside(String)
  /// A line that a transform's command or a hook wrote to standard error, prefixed with the
  /// program and its process; or a problem with a hook or the report.
  case message(String)
  /// The run, or this process's part of it, has ended as the summary says; the last event.
  case ended(RunSummary)

  /// The name of the event in JSON.
  public var name: String {
    switch self {
    case .started: "started"
    case .resumed: "resumed"
    case .joined: "joined"
    case .retryingFailures: "retryingFailures"
    case .progress: "progress"
    case .throttled: "throttled"
    case .retrying: "retrying"
    case .setAside: "setAside"
    case .message: "message"
    case .ended(let summary):
      switch summary.state {
      case .completed, .completedWithFailures: "finished"
      case .failed: "failed"
      case .running, .throttled, .paused, .stopped: "stopped"
      }
    }
  }
}

/// The retry of a chunk that failed transiently.
public struct ChunkRetry: Sendable {
  /// The positions of the chunk in the list.
  public let positions: Range<Int>
  /// The error that the chunk failed with.
  public let error: BatchError
  /// The number of the next retry, counted from 1.
  public let attempt: Int
  /// The maximum number of retries of a chunk.
  public let limit: Int
  /// The delay before the retry.
  public let delay: Duration
}
