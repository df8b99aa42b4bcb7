package import BatchEngine
package import BatchIdentifiers

/// The exit statuses that scripts rely on, and hooks are told.
package enum ExitStatus: Int32, Sendable {
  case completed = 0
  case failed = 1
  case refused = 2
  case stopped = 3
  case completedWithFailures = 4
  case alreadyRunning = 5
  /// The work is done, and what came of it could not be told.
  case untold = 6

  /// The status for an error that kept a command from doing its work.
  package init(of error: BatchError) {
    switch error.code {
    case .alreadyRunning: self = .alreadyRunning
    case .interrupted: self = .stopped
    case .busy, .connectionLost, .diskFull, .databaseAccess, .storeChanged: self = .failed
    case .outputFailed: self = .untold
    default: self = .refused
    }
  }

  /// The status for the end of a run.
  package init(of summary: RunSummary) {
    switch summary.state {
    case .completed: self = .completed
    case .completedWithFailures: self = .completedWithFailures
    case .running, .throttled, .paused, .stopped: self = .stopped
    case .failed:
      // Another process has taken the run over, and will say how it ends.
      self = summary.failure?.code == .alreadyRunning ? .alreadyRunning : .failed
    }
  }
}

extension BatchError.Code {
  /// What a command found or did cannot be written to standard output.
  package static let outputFailed = Self(rawValue: "outputFailed")
}
