public import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The state of a run, as `status --json` prints it.
public struct RunSummary: Sendable, Encodable {
  /// The job's name.
  public var job: String
  /// The run's UUID.
  public var run: String
  /// What it is doing, or how it ended.
  public var state: RunState
  /// The number of selected identifiers; of a loaded sequence, until its end, of those that are done.
  public var total: Int
  /// The number of done identifiers: the sum of the outcomes.
  public var done: Int { outcomes.total }
  /// The number of identifiers per outcome.
  public var outcomes: Outcomes {
    didSet { if !isEndKnown { total = done } }
  }
  /// Whether the total is known; if not, it is what is done so far.
  package private(set) var isEndKnown = true
  /// The number of committed chunks.
  public var chunks: Int
  /// The number of identifiers done when the run last resumed; 0 if it never did.
  public var resumedAt: Int
  /// When the run first started, in ISO 8601 and UTC; nil if only its end is known.
  public var startedAt: String?
  /// When the run finished, failed or stopped; nil while it runs, and if it was killed.
  public var endedAt: String?
  /// When the run last recorded its progress.
  public var lastSeenAt: String?
  /// Whether the process was killed before it could record the end of the run.
  public var wasKilled = false
  /// Whether `--fresh` has set the run aside, unfinished, so that it is not resumed.
  public package(set) var isSetAside = false
  /// How long the run has taken, over all resumptions.
  public var elapsedSeconds: Double
  /// The part of `elapsedSeconds` spent by the last process; nil if only the run's end is known.
  public var processSeconds: Double?
  /// The speed over the last minute without holds, or, once a process has ended, over its work; nil
  /// before anything was done.
  public var identifiersPerSecond: Double?
  /// The estimated time left at that speed; nil if the run is not running.
  public var etaSeconds: Double?
  /// How many identifiers are left, failed ones that are retried included; nil if that is not known.
  package private(set) var remaining: Int?
  /// The peak resident memory of the process, in bytes.
  public var peakResidentBytes: Int
  /// The peak size of the write-ahead log, in bytes.
  public var peakWALBytes: Int
  /// The path of the checkpoint file; empty for a run on PostgreSQL, which has none.
  public var checkpoint: String
  /// The path of the file that an export writes.
  public var output: String?
  /// How many files an export has written to its folder; nil for any other run.
  public package(set) var outputFiles: Int?
  /// The bytes of the output; nil if the run has none.
  public package(set) var outputBytes: Int?
  /// How many texts in the export's file are not UTF-8, and were replaced by U+FFFD or encoded; 0
  /// for other actions.
  public var invalidTexts: Int
  /// Why the run is held back.
  public var throttle: String?
  /// How long the throttle has held the run, over all resumptions.
  public var throttledSeconds: Double
  /// What the run waits for, and for how long, if that takes longer than usual: a silent command.
  public var waiting: String?
  /// Why the run was stopped, if not by request.
  public var stopReason: String?
  /// The error that stopped the run, on one line.
  public var error: String?
  /// The range of rows of an export of what changed; nil for any other run.
  public package(set) var increment: ExportedRange?
  /// The digest of the plan, if somebody must approve it or has named it.
  public package(set) var plan: String?
  /// What was given back after the last chunk; nil if nothing was to be.
  public package(set) var afterwards: ReturnedSpace?
  /// The three most frequent reasons why identifiers failed, once the run is finished.
  public package(set) var reasons: [FailureCount] = []
  /// What failed before each of the last retries, the last one last.
  public package(set) var failedAttempts: [FailedAttempt] = []
  /// The error that stopped the run in this process; not part of the JSON.
  public var failure: BatchError? {
    didSet { error = failure?.description ?? error }
  }

  /// Why the end of a finished run could not be reported; not part of the JSON.
  ///
  /// No rows are left to process: another call only reports the end again.
  public var unacknowledged: BatchError?
  /// The ID that the caller gave the work.
  public var runID: String?

  package static let cancellation = "batch cancel"

  private enum CodingKeys: String, CodingKey {
    case runID
    case job, run, state, total, done, outcomes, chunks, resumedAt, elapsedSeconds
    case startedAt, endedAt, lastSeenAt, wasKilled, isSetAside, processSeconds
    case identifiersPerSecond, etaSeconds, peakResidentBytes, peakWALBytes, checkpoint, output
    case outputFiles, outputBytes
    case invalidTexts
    case throttle, throttledSeconds, waiting, stopReason, error, increment, plan, afterwards
    case reasons
    case failedAttempts
  }

  /// Encodes every field; missing values are `null`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(job, forKey: .job)
    try container.encode(run, forKey: .run)
    try container.encode(runID, forKey: .runID)
    try container.encode(state, forKey: .state)
    try container.encode(total, forKey: .total)
    try container.encode(done, forKey: .done)
    try container.encode(outcomes, forKey: .outcomes)
    try container.encode(chunks, forKey: .chunks)
    try container.encode(resumedAt, forKey: .resumedAt)
    try container.encode(startedAt, forKey: .startedAt)
    try container.encode(endedAt, forKey: .endedAt)
    try container.encode(lastSeenAt, forKey: .lastSeenAt)
    try container.encode(wasKilled, forKey: .wasKilled)
    if isSetAside { try container.encode(isSetAside, forKey: .isSetAside) }
    try container.encode((elapsedSeconds * 1000).rounded() / 1000, forKey: .elapsedSeconds)
    let ofProcess = processSeconds.map { ($0 * 1000).rounded() / 1000 }
    try container.encode(ofProcess, forKey: .processSeconds)
    // Low rates keep three decimals.
    let rate = identifiersPerSecond.map { $0 < 10 ? ($0 * 1000).rounded() / 1000 : $0.rounded() }
    try container.encode(rate, forKey: .identifiersPerSecond)
    try container.encode(etaSeconds.map { ($0 * 10).rounded() / 10 }, forKey: .etaSeconds)
    try container.encode(peakResidentBytes, forKey: .peakResidentBytes)
    try container.encode(peakWALBytes, forKey: .peakWALBytes)
    try container.encode(checkpoint, forKey: .checkpoint)
    try container.encode(output, forKey: .output)
    try container.encodeIfPresent(outputFiles, forKey: .outputFiles)
    try container.encodeIfPresent(outputBytes, forKey: .outputBytes)
    try container.encode(invalidTexts, forKey: .invalidTexts)
    try container.encode(throttle, forKey: .throttle)
    try container.encode((throttledSeconds * 1000).rounded() / 1000, forKey: .throttledSeconds)
    try container.encode(waiting, forKey: .waiting)
    try container.encode(stopReason, forKey: .stopReason)
    try container.encode(error, forKey: .error)
    try container.encodeIfPresent(increment, forKey: .increment)
    try container.encodeIfPresent(plan, forKey: .plan)
    try container.encodeIfPresent(afterwards, forKey: .afterwards)
    if !reasons.isEmpty { try container.encode(reasons, forKey: .reasons) }
    if !failedAttempts.isEmpty { try container.encode(failedAttempts, forKey: .failedAttempts) }
  }
}

extension RunSummary {
  package init(_ metadata: RunMetadata, _ progress: RunProgress, checkpoint: Checkpoint) {
    self.init(
      metadata,
      progress,
      total: checkpoint.knownTotal(after: progress),
      path: checkpoint.path.string
    )
    isEndKnown = metadata.isOpenEnded != true || progress.total != nil
    // A damaged record of failures must not hide the rest.
    if state == .completedWithFailures {
      reasons = (try? checkpoint.failureCounts(atMost: 3)) ?? []
    }
  }

  /// Sets the speed, and the time left at that speed, unless nobody works on the run or it waits.
  ///
  /// `remaining` is the number of identifiers left; nil for those without an outcome.
  package mutating func setSpeed(
    _ perSecond: Double?,
    remaining: Int? = nil,
    isLive: Bool = true
  ) {
    identifiersPerSecond = perSecond
    etaSeconds = nil
    guard isEndKnown else { return }
    self.remaining = remaining
    guard let perSecond, perSecond > 0, isLive, state == .running, waiting == nil else { return }
    etaSeconds = Double(remaining ?? total - done) / perSecond
  }

  /// The summary of a completed run of a job, from its result.
  ///
  /// The run's checkpoint may have been replaced: `path` is empty then.
  package init(_ past: PastRun, of job: String, path: String) {
    var progress = RunProgress()
    progress.state = past.outcomes.failed > 0 ? .completedWithFailures : .completed
    progress.elapsedSeconds = past.elapsedSeconds
    var metadata = RunMetadata(
      run: past.run,
      job: job,
      startedAt: past.endedAt,
      fingerprint: "",
      schema: [],
      ledger: .store
    )
    metadata.runID = past.id.isEmpty ? nil : past.id
    self.init(metadata, progress, total: past.total, path: path)
    startedAt = nil
    endedAt = past.endedAt
    outcomes = past.outcomes
    chunks = past.chunks
  }

  /// Makes the summary of a run that was not started.
  package init(notBegun job: String, path: String) {
    let metadata = RunMetadata(
      run: "",
      job: job,
      startedAt: "",
      fingerprint: "",
      schema: [],
      ledger: .file
    )
    self.init(metadata, RunProgress(), total: 0, path: path)
    startedAt = nil
  }

  package init(_ metadata: RunMetadata, _ progress: RunProgress, total: Int, path: String) {
    job = metadata.job
    run = metadata.run
    runID = metadata.runID
    increment = metadata.increment.map { ExportedRange($0) }
    plan = metadata.planned?.digest
    state = progress.state
    self.total = total
    outcomes = progress.done.outcomes
    chunks = progress.done.chunks
    resumedAt = progress.resumedAt
    elapsedSeconds = progress.elapsedSeconds
    processSeconds = progress.processSeconds
    startedAt = metadata.startedAt
    lastSeenAt = progress.recordedAt.map {
      Date(timeIntervalSince1970: $0).formatted(.iso8601)
    }
    endedAt = progress.endedAt ?? (progress.state.isGoingOn ? nil : lastSeenAt)
    peakResidentBytes = progress.peakResidentBytes
    peakWALBytes = progress.peakWALBytes
    checkpoint = path
    output = metadata.output
    outputFiles = progress.parts?.files
    outputBytes = progress.parts?.bytes ?? progress.outputBytes
    invalidTexts = progress.invalidTexts ?? 0
    throttle = progress.throttle
    throttledSeconds = progress.throttledSeconds ?? 0
    waiting = progress.waiting
    stopReason = progress.stopReason
    error = progress.error
    failedAttempts = progress.failedAttempts ?? []
    afterwards = progress.afterwards
  }
}
