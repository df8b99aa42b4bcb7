#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
import BatchPostgres
import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a job on PostgreSQL would do, as `batch plan` shows it.
package struct PostgresPlanReport: Sendable, Encodable {
  /// The SQL that would be run.
  package struct SQL: Sendable, Encodable {
    package let fetch: String
    package let apply: String
  }

  /// A row, before and after.
  package struct Sample: Sendable, Encodable {
    package let identifier: String
    package let columns: [String]
    package let before: [String?]
    package let after: [String?]?
  }

  package let job: String
  package let action: String
  package let database: String
  package let server: String
  package let role: String
  package let entity: String
  package let key: [String]
  package let matches: Int
  package let chunks: Int
  package let sql: SQL
  /// How the server finds the rows that are selected, and those of a chunk.
  package let queryPlan: [String]
  package let lookUp: [String]
  /// What is rechecked of a row when its turn comes.
  package let recheck: String
  package let locks: [String]
  package let triggers: [String]
  package let foreignKeys: [String]
  package let sample: [Sample]
  package let warnings: [String]
  /// What `batch run` would do, in a word and in words.
  package let next: String
  package let nextWords: String

  /// Resolves a job and looks what it would do; writes nothing.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - parameters: The values of its parameters.
  ///   - chunkSize: How many identifiers a chunk has; nil for the job's number.
  ///   - runID: The identifier of the work, if it has one.
  /// - Throws: `BatchError` with the place in the job file if the job does not fit its database.
  package init(
    of job: Job,
    parameters: ParameterValues,
    chunkSize: Int? = nil,
    runID: String? = nil
  ) async throws(BatchError) {
    self = try await job.inSession { session throws(BatchError) in
      let plan = try PostgresPlan(job, parameters: parameters, in: session)
      let tables = try RunTables(of: session)
      let runs = try tables.runs(ofJobIfThere: job.name, in: session)
      let decision = Result { () throws(BatchError) in
        try SharedRunDecision(runs, BatchRunRequest(runID: runID), job: job.name)
      }
      let options = TransactionOptions(
        .repeatableRead,
        isReadOnly: true,
        searchPath: plan.query.path
      )
      return try session.transaction(options) { () throws(BatchError) in
        try PostgresPlanReport(plan, chunkSize ?? job.chunk.size, decision, in: session)
      }
    }
  }

  private init(
    _ plan: PostgresPlan,
    _ chunkSize: Int,
    _ decision: Result<SharedRunDecision, BatchError>,
    in session: PostgresSession
  ) throws(BatchError) {
    let (change, query, table) = (plan.change, plan.query, plan.table)
    job = plan.job.name
    action = plan.job.action.type
    database = plan.address.description
    server = plan.database.version
    role = plan.database.role
    entity = table.title
    key = plan.key.columns.map(\.name)
    do {
      try query.parameters.apply(in: session)
      try query.refuseDuplicates(in: session)
      matches = try query.count(in: session)
    } catch {
      throw query.explained(error)
    }
    chunks = (matches + chunkSize - 1) / chunkSize
    sql = SQL(fetch: query.statementText, apply: try change.statementText())
    queryPlan = try query.explanation(in: session)
    lookUp = try change.explanation(in: session)
    recheck = plan.recheckWords
    locks = plan.locks
    triggers = plan.firingTriggers
    foreignKeys = plan.metForeignKeys
    var warnings = plan.notes + plan.warnings
    var sample: [Sample] = []
    do {
      let columns = change.previewedColumns
      sample = try session.savepoint { () throws(BatchError) in
        try change.preview(5, of: query, in: session)
      }.map { row in
        Sample(
          identifier: row.key.map { $0 ?? "NULL" }.joined(separator: ", "),
          columns: columns,
          before: row.before,
          after: row.after
        )
      }
    } catch {
      guard error.isAboutRows else { throw error }
      warnings.append("one of the first rows would fail: \(error.message)")
    }
    self.sample = sample
    self.warnings = warnings
    switch decision {
    case .success(let decision): (next, nextWords) = (decision.name, decision.words)
    case .failure(let error): (next, nextWords) = ("refuse", "refuses: \(error)")
    }
  }
}

extension PostgresPlan {
  /// What must still hold of a row when its turn comes.
  fileprivate var recheckWords: String {
    guard let condition else { return "the row" }
    let text = condition.expression.text.onOneLine
    if change.condition.predicate != nil { return "the row, and `\(text)`" }
    let reason =
      job.source.recheck == .off
      ? "recheck is off" : "it reads other rows, or gives another value each time"
    return "the row; not rechecked: `\(text)`, since \(reason)"
  }

  /// What each chunk locks.
  fileprivate var locks: [String] {
    let seconds = job.database.busyTimeout / .seconds(1)
    let rows = job.action.type == "delete" ? "FOR UPDATE" : "FOR NO KEY UPDATE"
    return [
      "ROW EXCLUSIVE on \(table.title), which only DDL and LOCK TABLE wait for",
      "\(rows) on the rows of a chunk, until it is committed",
      "waits at most \(seconds) s for a lock (database.busyTimeout)",
    ]
  }

  private var event: String { job.action.type == "delete" ? "DELETE" : "UPDATE" }

  /// The triggers that a chunk sets off.
  fileprivate var firingTriggers: [String] {
    table.triggers.filter { $0.isEnabled && $0.events.contains(event) }.map {
      "\($0.name), \($0.isForEachRow ? "each row" : "each statement"), calls \($0.function)"
    }
  }

  /// The foreign keys that are looked at.
  fileprivate var metForeignKeys: [String] {
    let set = Set(change.previewedColumns)
    let isDeletion = event == "DELETE"
    let own = isDeletion ? [] : table.references.filter { !set.isDisjoint(with: $0.columns) }
    let others = table.referrers.filter { isDeletion || !set.isDisjoint(with: $0.targetColumns) }
    return (own + others).map { key in
      let action = isDeletion ? ", on delete \(key.onDelete.lowercased())" : ""
      return
        "\(key.name): \(key.table) (\(key.columns.joined(separator: ", "))) to \(key.target)\(action)"
    }
  }

  fileprivate var warnings: [String] {
    var warnings: [String] = []
    let cascades = table.referrers.filter { !["NO ACTION", "RESTRICT"].contains($0.onDelete) }
    if event == "DELETE", !cascades.isEmpty {
      let tables = Set(cascades.map(\.table)).sorted().joined(separator: ", ")
      warnings.append("rows of \(tables) are changed or deleted too, by their foreign keys")
    }
    if condition != nil, change.condition.predicate == nil, job.source.recheck == .row {
      warnings.append(
        "a row that somebody changes after it was selected is written anyway: where reads other rows;"
          + " source.recheck \"skip\" applies it again"
      )
    }
    return warnings
  }
}

/// What `batch validate` says of a job on PostgreSQL.
package struct PostgresValidation: Sendable {
  /// The entity that the job concerns.
  package let entity: String
  package let notes: [String]

  /// Resolves a job; writes nothing.
  package init(of job: Job, parameters: ParameterValues) async throws(BatchError) {
    (entity, notes) = try await job.inSession { session throws(BatchError) in
      let plan = try PostgresPlan(job, parameters: parameters, in: session)
      return (plan.table.title, plan.notes)
    }
  }
}
#endif
