import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

struct RunReport: Encodable {
  struct Failure: Encodable {
    let identifier: String
    let code: String
    let message: String
    let attempt: Int
    let failedAt: String
  }

  static let failureLimit = 1000

  let description: String?
  let database: String
  let entity: String
  let condition: String?
  let action: String
  let startedAt: String
  let summary: RunSummary
  let failures: [Failure]
  let pace: RunPace
  /// Risks from programs that had the database open at the end; empty for a report written later.
  let warnings: [String]
  /// What people have done to the run.
  let actions: [OperatorAction]

  init(
    _ summary: RunSummary,
    of cause: some RunCause,
    _ checkpoint: Checkpoint
  ) throws(BatchError) {
    self.summary = summary
    description = cause.description
    // A server is shown by its address, without secrets.
    database =
      cause.database.server == nil
      ? cause.database.path.string : checkpoint.metadata.database ?? ""
    entity = cause.entity
    condition = cause.condition
    action = cause.actionName
    startedAt = checkpoint.metadata.startedAt
    failures = try Self.failures(checkpoint)
    pace = try checkpoint.pace()
    warnings = cause.risks
    actions = checkpoint.actions(of: cause)
  }

  static func failures(_ checkpoint: Checkpoint) throws(BatchError) -> [Failure] {
    let failed = try checkpoint.failedIdentifiers().prefix(failureLimit)
    return try failed.map { failed throws(BatchError) in
      Failure(
        identifier: try checkpoint.list.key(at: failed.position).description,
        code: failed.code,
        message: failed.message,
        attempt: failed.attempt,
        failedAt: failed.failedAt
      )
    }
  }

  private enum CodingKeys: String, CodingKey {
    // The mark sorts before all other keys, so it is at the beginning of the file.
    case form = "$form"
    case description, database, entity, condition = "where", action, startedAt, summary, failures,
      pace, warnings, actions
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Job.Report.mark, forKey: .form)
    try container.encode(description, forKey: .description)
    try container.encode(database, forKey: .database)
    try container.encode(entity, forKey: .entity)
    try container.encode(condition, forKey: .condition)
    try container.encode(action, forKey: .action)
    try container.encode(startedAt, forKey: .startedAt)
    try container.encode(summary, forKey: .summary)
    try container.encode(failures, forKey: .failures)
    try container.encode(pace, forKey: .pace)
    try container.encode(warnings, forKey: .warnings)
    if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
  }

  /// Writes the report atomically, replacing an earlier one.
  func write(
    to report: Job.Report,
    permissions: FilePermissions = [.ownerReadWrite, .groupRead, .otherRead]
  ) throws(BatchError) {
    try report.check()
    let bytes: [UInt8]
    if report.format == .html {
      bytes = Array(html.utf8)
    } else {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      do {
        bytes = try Array(encoder.encode(self))
      } catch {
        throw BatchError(
          .fileAccess,
          "the report cannot be encoded",
          at: report.path.string,
          underlying: error
        )
      }
    }
    do throws(BatchError) {
      try NewFile.write(bytes, to: report.path, permissions: permissions)
    } catch {
      var error = error
      error.message = "the report: \(error.message)"
      throw error
    }
  }
}
