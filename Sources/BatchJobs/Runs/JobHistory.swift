public import BatchRuns
import BatchIdentifiers
import SystemPackage

/// The runs of a job whose records were kept.
///
/// These are the last run, as many earlier ones as the job's `history` keeps, and those that were
/// set aside. If hosts share the runs on PostgreSQL, they are those in the database.
public struct JobHistory: Sendable, Encodable {
  /// The folder with the records of earlier runs, or the database that contains them.
  public let folder: String
  /// The size of these records in bytes; 0 if they are in a database.
  public let bytes: Int64
  /// The runs, newest first.
  public let runs: [RecordedRun]

  /// The runs must be sorted, newest first.
  package init(folder: String, bytes: Int64, runs: [RecordedRun]) {
    (self.folder, self.bytes, self.runs) = (folder, bytes, runs)
  }
}

/// A run according to its record.
public struct RecordedRun: Sendable, Encodable {
  /// The state of the run, or how it ended.
  public let summary: RunSummary
  /// The type of the action, such as `update` or `delete`; nil if the record does not say.
  public let action: String?
  /// The entity of the rows.
  public let entity: String
  /// The condition that selected the rows, if any.
  public let condition: String?
  /// The values of the parameters, as text.
  public let parameters: [String: String]
  /// Who started the run, and from where; nil for an undo of objects.
  public let invocation: RunInvocation?
  /// The run that this run has undone, if any.
  public let undone: String?
  package let undo: CompletedUndo?
  /// What people have done to the run, in the order of their times: the last 20 of each kind.
  public let actions: [OperatorAction]
  /// When the run began, in ISO 8601 and UTC.
  public let startedAt: String
  /// Sorts runs by start time.
  package let place: (startedAt: String, microseconds: Int, run: String)

  /// - Parameters:
  ///   - metadata: The facts recorded when the run began.
  ///   - summary: The state of the run.
  ///   - entity: The entity of the rows; nil for the one of its job.
  ///   - undo: The run that has undone this one.
  ///   - actions: What people have done to the run.
  package init(
    _ metadata: RunMetadata,
    _ summary: RunSummary,
    entity: String? = nil,
    undo: CompletedUndo? = nil,
    actions: [OperatorAction]
  ) {
    self.summary = summary
    self.actions = actions
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
    case action, entity, condition = "where", parameters, invocation, undone, undoneBy, actions
  }

  /// Encodes the summary, and the other values beside its fields.
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
    if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
  }
}

extension JSONValue {
  fileprivate func member(_ key: String) -> JSONValue? { members?.first { $0.key == key }?.value }

  fileprivate var text: String? {
    if case .string(let text) = content { text } else { nil }
  }
}
