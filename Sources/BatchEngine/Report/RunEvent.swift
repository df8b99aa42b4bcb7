public import BatchIdentifiers

/// What a run reports while it is in progress.
public enum RunEvent: Sendable {
  /// A new run has selected its identifiers.
  case started(RunSummary)
  /// An unfinished run goes on.
  case resumed(RunSummary)
  /// The identifiers that failed are tried again.
  case retryingFailures(RunSummary)
  /// Chunks were committed.
  case progress(RunSummary)
  /// The run is held back, for the reason that the summary gives.
  case throttled(RunSummary)
  /// A chunk failed transiently and will be retried.
  case retrying(ChunkRetry)
  /// The checkpoint of an unfinished run was renamed to make way for a new one.
  case setAside(String)
  /// A line that a program of a command transform, or a hook, wrote to standard error, with the
  /// program and its process before it; or what is wrong with a hook or the report.
  case message(String)

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
    }
  }
}

/// A chunk that failed transiently and will be retried.
public struct ChunkRetry: Sendable {
  /// Its positions in the list.
  public let positions: Range<Int>
  /// What was wrong.
  public let error: BatchError
  /// Which further try comes, counted from 1.
  public let attempt: Int
  /// How many there may be.
  public let limit: Int
  /// How long it rests before.
  public let delay: Duration
}
