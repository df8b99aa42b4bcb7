/// The state of a run as last recorded.
public enum RunState: String, Codable, Sendable {
  /// The run is being executed, or was when its process was killed.
  case running
  /// The throttle holds the run back.
  case throttled
  /// An operator has paused the run.
  case paused
  /// The run was stopped and can be resumed.
  case stopped
  /// Every identifier is done.
  case completed
  /// Every identifier is done, and some failed.
  case completedWithFailures
  /// An error ended the run, and it can be resumed.
  case failed

  package var isGoingOn: Bool { self == .running || self == .throttled || self == .paused }

  /// The state in words.
  package var words: String {
    switch self {
    case .running: "running"
    case .throttled: "held back"
    case .paused: "paused"
    case .stopped: "stopped"
    case .completed: "completed"
    case .completedWithFailures: "completed with failures"
    case .failed: "failed"
    }
  }

  /// Whether the run is over, so that nothing is left to resume.
  public var isFinished: Bool { self == .completed || self == .completedWithFailures }
}

/// The progress of a run in its checkpoint, where the last record counts.
package struct RunProgress: Codable, Sendable {
  package var state = RunState.running
  /// With a ledger in the store, these positions lag behind it and list only what is durable there.
  package var done = DoneRanges()
  /// The working time so far, over all resumptions, including the selection.
  package var elapsedSeconds = 0.0
  /// The part of `elapsedSeconds` spent on the selection.
  package var selectionSeconds = 0.0
  /// The part of `elapsedSeconds` spent by the process that wrote this; nil before it has worked.
  package var processSeconds: Double?
  /// How many identifiers were done per second lately; nil before any were.
  package var identifiersPerSecond: Double?
  /// When this was written, in seconds since 1970, so that a live run's times can be extrapolated.
  package var recordedAt: Double?
  /// The number of failed identifiers that a retry has not come to yet; nil if it is no retry.
  package var remaining: Int?
  /// The number of identifiers done at the last resumption.
  package var resumedAt = 0
  package var peakResidentBytes = 0
  package var peakWALBytes = 0
  /// The length of the complete part of the output, in bytes.
  package var outputBytes: Int?
  /// How many texts in that part are not UTF-8, and were replaced or encoded.
  package var invalidTexts: Int?
  package var outputIdentity: FileIdentity?
  /// The files of an export to a folder; nil for any other work.
  package var parts: ExportPartsRecord?
  package var throttle: String?
  /// How long the throttle has held the run, over all resumptions.
  package var throttledSeconds: Double?
  /// What the run has been waiting for, if it waits longer than usual.
  package var waiting: String?
  package var error: String?
  /// Why the run was stopped, if not by request.
  package var stopReason: String?
  /// Whether the caller knows that the run is finished; nil before its end.
  package var isAcknowledged: Bool?
  /// Whether the run last retried failed identifiers.
  package var isRetry: Bool?
  /// How far the canary has come; nil until all of its rows are done, and for a run without one.
  package var canary: CanaryProgress?
  /// What failed before each retry, the last one last.
  package var failedAttempts: [FailedAttempt]?
  /// What people have done to the run since it began; nil for nothing.
  package var actions: [OperatorAction]?
  /// What was given back after the last chunk.
  package var afterwards: ReturnedSpace?
  /// The passed-over identifiers of chunks that no earlier record lists as done.
  package var passedOver: PassedOverRecord?
  /// The number of records of a loaded sequence; nil until its end was found, and for any other work.
  package var total: Int?
  /// The first records of a loaded sequence, to recognize it; nil for any other work.
  package var read: ReadRecords?
  /// In ISO 8601 and UTC.
  package var endedAt: String?

  package struct ReadRecords: Codable, Hashable, Sendable {
    package let count: Int
    package let hash: UInt64

    package init(count: Int, hash: UInt64) { (self.count, self.hash) = (count, hash) }
  }

  package init() {}

  /// Marks the run as running, and clears the reasons why it was stopped or held.
  package mutating func goOn() {
    state = .running
    error = nil
    stopReason = nil
    throttle = nil
    waiting = nil
    isAcknowledged = nil
    endedAt = nil
  }

  package mutating func note(_ new: [OperatorAction]) {
    guard !new.isEmpty else { return }
    actions = actions ?? []
    actions?.note(new)
  }

  /// Whether only the steps after the end remain: the report, the hooks, and the answer.
  package var awaitsAcknowledgement: Bool { state.isFinished && isAcknowledged == false }

  /// Whether another record may repeat what this one passes over.
  var isShort: Bool {
    passedOver?.pieces.count ?? 0 < PassedOverRecord.byteLimit / 16
      && parts?.closed.count ?? 0 < 500
  }

  /// This record with what only an earlier one has, which it replaces.
  func following(_ earlier: RunProgress?) -> RunProgress {
    var joined = self
    if let earlier = earlier?.passedOver {
      joined.passedOver = passedOver?.following(earlier) ?? earlier
    }
    if let earlier = earlier?.parts { joined.parts = parts?.following(earlier) ?? earlier }
    return joined
  }

  /// This record without what later ones must not repeat.
  var repeatable: RunProgress {
    var progress = self
    progress.passedOver = nil
    progress.parts?.closed = []
    return progress
  }
}
