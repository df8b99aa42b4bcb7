package import BatchRuns
package import BatchIdentifiers

/// The exit statuses that scripts and hooks rely on.
package enum ExitStatus: Int32, Sendable {
  case completed = 0
  case failed = 1
  case refused = 2
  case stopped = 3
  case completedWithFailures = 4
  case alreadyRunning = 5
  /// The work is done, but its result could not be reported.
  case undelivered = 6
  /// The plan of the run must be approved first.
  case awaitingApproval = 7
  /// The last success is longer ago than it may be.
  case overdue = 8

  package init(of error: BatchError) {
    switch error.code {
    case .alreadyRunning: self = .alreadyRunning
    case .interrupted: self = .stopped
    case .busy, .connectionLost, .diskFull, .databaseAccess, .storeChanged, .statementCancelled:
      self = .failed
    case .outputFailed: self = .undelivered
    default: self = .refused
    }
  }

  package init(of summary: RunSummary) {
    switch summary.state {
    case .completed: self = .completed
    case .completedWithFailures: self = .completedWithFailures
    case .stopped where summary.awaitsApproval: self = .awaitingApproval
    case .running, .throttled, .paused, .stopped: self = .stopped
    case .failed:
      // Another process has taken over the run, and will report its end.
      self = summary.failure?.code == .alreadyRunning ? .alreadyRunning : .failed
    }
  }
}

extension BatchError.Code {
  /// The result of a command cannot be written to standard output.
  package static let outputFailed = Self(rawValue: "outputFailed")
}
