public import BatchRuns
import BatchIdentifiers
import SystemPackage

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

  /// The runs that some place has, newest first.
  package init(folder: String, bytes: Int64, runs: [RecordedRun]) {
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
  package let place: (startedAt: String, microseconds: Int, run: String)

  /// A run by what is known of it.
  ///
  /// - Parameters:
  ///   - metadata: What it began with.
  ///   - summary: How it stands.
  ///   - entity: The entity of its rows; nil for the one of its job.
  ///   - undo: The run that undid it.
  package init(
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
