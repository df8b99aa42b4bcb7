/// How a run stands.
public enum RunState: String, Codable, Sendable {
  /// It is going on, or was when it was killed.
  case running
  /// It is held back.
  case throttled
  /// It was paused.
  case paused
  /// It was told to stop and can be resumed.
  case stopped
  /// Every identifier is done.
  case completed
  /// Every identifier is done, and some failed.
  case completedWithFailures
  /// It came to an error and can be resumed.
  case failed

  /// Whether a process was at work on it when that was written.
  package var isGoingOn: Bool { self == .running || self == .throttled || self == .paused }

  /// Whether nothing is left to resume.
  public var isFinished: Bool { self == .completed || self == .completedWithFailures }
}

/// What a checkpoint says of its run from time to time: the last record of the file counts.
package struct RunProgress: Codable, Sendable {
  package var state = RunState.running
  /// The positions that are done.
  ///
  /// Where the store keeps a ledger, this lags behind it and says only what is durable there.
  package var done = DoneRanges()
  /// How long the run has been going on, over all its resumptions, with the selection.
  package var elapsedSeconds = 0.0
  /// How much of that the selection took; nil in what an earlier version wrote, which left it out.
  package var selectionSeconds: Double?
  /// How long the process that wrote this had been at work; nil in what an earlier version wrote.
  package var processSeconds: Double?
  /// When this was written, in seconds since 1970, so that the times of a live run go on.
  package var recordedAt: Double?
  /// How many identifiers were done when it was resumed last.
  package var resumedAt = 0
  package var peakResidentBytes = 0
  package var peakWALBytes = 0
  /// How long the output is, of which everything up to here is complete.
  package var outputBytes: Int?
  /// Which file the finished output is: device and inode.
  package var outputIdentity: FileIdentity?
  /// Why the run is held back.
  package var throttle: String?
  /// How long it was held back, over all its resumptions.
  package var throttledSeconds: Double?
  /// What stopped the run.
  package var error: String?
  /// Why the run was stopped, if nobody asked for it.
  package var stopReason: String?
  /// Whether whoever asked for a finished run knows that it is; nil in what an earlier version wrote,
  /// which told them without a record.
  package var isAcknowledged: Bool?
  /// Whether failed identifiers were tried again last.
  package var isRetry: Bool?
  /// The identifiers that were passed over, of chunks that no earlier record has as done.
  package var passedOver: PassedOverRecord?
  /// When all was done, as an ISO 8601 timestamp in UTC.
  package var endedAt: String?

  /// The progress of a run that begins.
  package init() {}

  /// The run goes on: nothing that was said of its end is true any more, nor why it was held.
  package mutating func goOn() {
    state = .running
    error = nil
    stopReason = nil
    throttle = nil
    isAcknowledged = nil
    endedAt = nil
  }

  /// Whether everything is done but what comes after the end: the report, the hooks, the answer.
  package var awaitsAcknowledgement: Bool { state.isFinished && isAcknowledged == false }
}
