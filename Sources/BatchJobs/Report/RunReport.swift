package import BatchIdentifiers
import BatchPlatform
package import BatchRuns
package import SystemPackage

/// What a run's report says, in either format.
package struct RunReport: Encodable {
  package struct Failure: Encodable {
    let identifier: String
    let code: String
    let message: String
    let attempt: Int
    let failedAt: String

    package init(_ failed: FailedIdentifier, _ identifier: String) {
      (self.identifier, code, message) = (identifier, failed.code, failed.message)
      (attempt, failedAt) = (failed.attempt, failed.failedAt)
    }
  }

  package static let failureLimit = 1000

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

  /// The report of a run that ends.
  package init(
    _ summary: RunSummary,
    of cause: some RunCause,
    _ metadata: RunMetadata,
    _ failures: [Failure],
    _ pace: RunPace,
    _ actions: [OperatorAction],
    warnings: [String] = []
  ) {
    self.summary = summary
    description = cause.description
    // A server is shown by its address, without secrets.
    database =
      cause.database.server == nil ? cause.database.path.string : metadata.database ?? ""
    entity = cause.entity
    condition = cause.condition
    action = cause.actionName
    startedAt = metadata.startedAt
    self.failures = failures
    self.pace = pace
    self.warnings = warnings
    self.actions = actions
  }

  /// The report of a recorded run, whose job may have changed.
  package init(
    _ run: RecordedRun,
    in database: String?,
    _ failures: [Failure],
    _ pace: RunPace
  ) {
    summary = run.summary
    description = nil
    self.database = database ?? ""
    entity = run.entity
    condition = run.condition
    action = run.action ?? ""
    startedAt = run.startedAt
    self.failures = failures
    self.pace = pace
    warnings = []
    actions = run.actions
  }

  private enum CodingKeys: String, CodingKey {
    // The mark sorts before all other keys, so it is at the beginning of the file.
    case form = "$form"
    case description, database, entity, condition = "where", action, startedAt, summary, failures,
      pace, warnings, actions
  }

  package func encode(to encoder: any Encoder) throws {
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
    try container.encode(pace.points, forKey: .pace)
    try container.encode(warnings, forKey: .warnings)
    if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
  }

  /// Writes the report atomically, replacing an earlier one.
  package func write(
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
