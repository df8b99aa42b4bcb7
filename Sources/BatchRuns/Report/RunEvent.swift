public import BatchIdentifiers

/// What a run reports while it is in progress.
public enum RunEvent: Sendable {
  /// A new run has selected its identifiers.
  case started(RunSummary)
  /// An unfinished run resumes.
  case resumed(RunSummary)
  /// The failed identifiers are being retried.
  case retryingFailures(RunSummary)
  /// Chunks were committed.
  case progress(RunSummary)
  /// The run is held, for the reason in the summary.
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

/// A chunk that failed transiently and will be retried.
public struct ChunkRetry: Sendable {
  /// Its positions in the list.
  public let positions: Range<Int>
  /// What was wrong.
  public let error: BatchError
  /// Which retry comes next, counted from 1.
  public let attempt: Int
  /// The maximum number of retries.
  public let limit: Int
  /// The delay before it.
  public let delay: Duration
}
