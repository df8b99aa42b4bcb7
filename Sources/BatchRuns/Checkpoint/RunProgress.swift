/// The state of a run.
public enum RunState: String, Codable, Sendable {
  /// It is running, or was when it was killed.
  case running
  /// It is held back.
  case throttled
  /// It was paused.
  case paused
  /// It was stopped and can be resumed.
  case stopped
  /// Every identifier is done.
  case completed
  /// Every identifier is done, and some failed.
  case completedWithFailures
  /// An error ended it, and it can be resumed.
  case failed

  /// Whether a process was working on it when the state was recorded.
  package var isGoingOn: Bool { self == .running || self == .throttled || self == .paused }

  /// Whether nothing is left to resume.
  public var isFinished: Bool { self == .completed || self == .completedWithFailures }
}

/// The progress of a run in its checkpoint; the last record counts.
package struct RunProgress: Codable, Sendable {
  package var state = RunState.running
  /// The done positions.
  ///
  /// With a ledger in the store, they lag behind it and list only what is durable there.
  package var done = DoneRanges()
  /// The working time so far, over all resumptions, with the selection.
  package var elapsedSeconds = 0.0
  /// The part of that for the selection.
  package var selectionSeconds = 0.0
  /// The part of that by the process that wrote this; nil before one has worked.
  package var processSeconds: Double?
  /// How many identifiers were done per second lately; nil before any were.
  package var identifiersPerSecond: Double?
  /// When this was written, in seconds since 1970, so that a live run's times can be extrapolated.
  package var recordedAt: Double?
  /// How many identifiers were done at the last resumption.
  package var resumedAt = 0
  package var peakResidentBytes = 0
  package var peakWALBytes = 0
  /// The length of the output that is complete, in bytes.
  package var outputBytes: Int?
  /// How many texts in that are not UTF-8, and were replaced or encoded.
  package var invalidTexts: Int?
  /// The identity of the finished output: device and inode.
  package var outputIdentity: FileIdentity?
  /// Why the run is held back.
  package var throttle: String?
  /// How long it was held back, over all resumptions.
  package var throttledSeconds: Double?
  /// What the run has been waiting for, for longer than usual.
  package var waiting: String?
  /// What stopped the run.
  package var error: String?
  /// Why the run was stopped, if not by request.
  package var stopReason: String?
  /// Whether the caller knows that the run is finished; nil before its end.
  package var isAcknowledged: Bool?
  /// Whether failed identifiers were last retried.
  package var isRetry: Bool?
  /// The passed-over identifiers of chunks that no earlier record lists as done.
  package var passedOver: PassedOverRecord?
  /// When all was done, as an ISO 8601 timestamp in UTC.
  package var endedAt: String?

  /// Makes the progress of a new run.
  package init() {}

  /// Marks the run as running again and clears what was recorded about its end or hold.
  package mutating func goOn() {
    state = .running
    error = nil
    stopReason = nil
    throttle = nil
    waiting = nil
    isAcknowledged = nil
    endedAt = nil
  }

  /// Whether only the steps after the end remain: the report, the hooks, the answer.
  package var awaitsAcknowledgement: Bool { state.isFinished && isAcknowledged == false }
}
