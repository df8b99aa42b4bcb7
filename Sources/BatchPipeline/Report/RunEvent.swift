/// What a run tells of itself while it goes on.
public enum RunEvent: Sendable {
  /// A new run has selected its identifiers.
  case started(RunSummary)
  /// An unfinished run goes on.
  case resumed(RunSummary)
  /// Chunks were committed.
  case progress(RunSummary)
  /// The checkpoint of an unfinished run was renamed to make way for a new one.
  case setAside(String)
  /// A line that a program of a command transform wrote to standard error, with the program and
  /// its process before it.
  case message(String)

  /// The name of the event in JSON.
  public var name: String {
    switch self {
    case .started: "started"
    case .resumed: "resumed"
    case .progress: "progress"
    case .setAside: "setAside"
    case .message: "message"
    }
  }
}
