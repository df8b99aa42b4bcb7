public import BatchRuns
public import BatchIdentifiers
import BatchSQLite
public import SystemPackage

/// The last runs of a job whose records were kept: the last one, as many earlier ones as the job's
/// `history` says, and those that were set aside.
///
/// Of runs that hosts share on PostgreSQL, those that the database knows.
public struct JobHistory: Sendable, Encodable {
  /// The folder with the records of earlier runs, or the database that has them.
  public let folder: String
  /// The size of these records, in bytes; 0 of those in a database.
  public let bytes: Int64
  /// The runs, newest first.
  public let runs: [RecordedRun]

  /// Reads the records of a job.
  ///
  /// - Throws: `BatchError` if the last one cannot be read; other unreadable ones are left out.
  public init(of job: Job) async throws(BatchError) {
    self = try await job.records.history()
  }

  /// The runs that some place has, newest first.
  init(folder: String, bytes: Int64, runs: [RecordedRun]) {
    (self.folder, self.bytes, self.runs) = (folder, bytes, runs)
  }
}

/// A run from its record.
public struct RecordedRun: Sendable, Encodable {
  /// Its state or end.
  public let summary: RunSummary
  /// What it did: `update`, `delete` and so on; nil if its record does not say.
  public let action: String?
  /// The entity of its rows.
  public let entity: String
  /// The condition that selected them, if any.
  public let condition: String?
  /// The values of its parameters, in words.
  public let parameters: [String: String]
  /// Who started it, and from where; nil for an undo of objects.
  public let invocation: RunInvocation?
  /// The run that it undid, if any.
  public let undone: String?
  /// The completed run that undid it, if any.
  package let undo: CompletedUndo?
  /// When it began, as an ISO 8601 timestamp in UTC.
  public let startedAt: String
  /// Its position among the runs, by start time.
  let place: (startedAt: String, microseconds: Int, run: String)

  /// One of the last runs of a job.
  ///
  /// - Parameters:
  ///   - run: Its UUID, or the first characters of it.
  ///   - job: The job.
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or several do.
  public init(_ run: String, of job: Job) async throws(BatchError) {
    self = try await job.records.run(named: run)
  }

  /// Rewrites a run's report from its record, replacing an earlier one.
  ///
  /// - Parameters:
  ///   - run: Its UUID, or the first characters of it; nil for the last run.
  ///   - job: The job.
  ///   - path: The file, which ends in `.html` or `.json`.
  /// - Throws: `BatchError` of code `unknownRun`, or if the file is no report or cannot be written.
  public static func report(
    _ run: String?,
    of job: Job,
    to path: FilePath
  ) async throws(BatchError) {
    try await report(run, ofWork: job, to: path)
  }

  /// The same of any work.
  package static func report(
    _ run: String?,
    ofWork cause: some RunCause,
    to path: FilePath
  ) async throws(BatchError) {
    let checkpoint = try Checkpoint.ofRun(run, of: cause)
    try await RunReport(RecordedRun(checkpoint, of: cause), checkpoint).write(
      to: Job.Report(path: path),
      permissions: cause.files.permissions
    )
  }

  init(_ checkpoint: Checkpoint, of cause: some RunCause) async throws(BatchError) {
    let (metadata, progress) = (checkpoint.metadata, checkpoint.progress)
    var summary = RunSummary(metadata, progress, checkpoint: checkpoint)
    if !progress.state.isFinished, let done = try? await checkpoint.doneRanges(of: cause) {
      summary.outcomes = done.outcomes
      summary.chunks = done.chunks
    }
    if summary.state.isGoingOn,
      checkpoint.path != cause.checkpointPath
        || RunLock.holder(ofCheckpoint: checkpoint.path) == nil
    {
      summary.state = .stopped
    }
    self.init(
      metadata,
      summary,
      entity: checkpoint.list.header.entityName,
      undo: metadata.undone == nil ? CompletedUndo(of: metadata.run, ofWork: cause) : nil
    )
  }

  /// A run by what is known of it.
  ///
  /// - Parameters:
  ///   - metadata: What it began with.
  ///   - summary: How it stands.
  ///   - entity: The entity of its rows; nil for the one of its job.
  ///   - undo: The run that undid it.
  init(
    _ metadata: RunMetadata,
    _ summary: RunSummary,
    entity: String? = nil,
    undo: CompletedUndo? = nil
  ) {
    self.summary = summary
    startedAt = metadata.startedAt
    place = (metadata.startedAt, metadata.startedMicroseconds, metadata.run)
    parameters = metadata.parameters ?? [:]
    invocation = metadata.invocation
    undone = metadata.undone
    self.undo = undo
    let fingerprint = try? JSONReader.read(Array(metadata.fingerprint.utf8), file: "fingerprint")
    self.entity = entity ?? fingerprint?.member("entity")?.text ?? ""
    condition = fingerprint?.member("where")?.text
    action = fingerprint?.member("action")?.member("type")?.text
  }

  private enum CodingKeys: String, CodingKey {
    case action, entity, condition = "where", parameters, invocation, undone, undoneBy
  }

  /// Encodes the summary, and the rest beside its fields.
  public func encode(to encoder: any Encoder) throws {
    try summary.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(action, forKey: .action)
    try container.encode(entity, forKey: .entity)
    try container.encode(condition, forKey: .condition)
    try container.encode(parameters, forKey: .parameters)
    try container.encode(invocation, forKey: .invocation)
    try container.encode(undone, forKey: .undone)
    try container.encode(undo?.run, forKey: .undoneBy)
  }
}

extension JSONValue {
  fileprivate func member(_ key: String) -> JSONValue? { members?.first { $0.key == key }?.value }

  fileprivate var text: String? {
    if case .string(let text) = content { text } else { nil }
  }
}

extension RunReport {
  /// Reports a run from its record alone, since the job may have changed.
  init(_ run: RecordedRun, _ checkpoint: Checkpoint) throws(BatchError) {
    summary = run.summary
    description = nil
    database = checkpoint.metadata.database ?? ""
    entity = run.entity
    condition = run.condition
    action = run.action ?? ""
    startedAt = run.startedAt
    failures = try Self.failures(checkpoint)
    pace = try checkpoint.pace()
    warnings = []
  }
}
