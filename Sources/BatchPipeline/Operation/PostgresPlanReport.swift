#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
import BatchPlatform
import BatchPostgres
package import BatchStore

/// What a job on PostgreSQL would do, as `batch plan` shows it.
package struct PostgresPlanReport: Sendable, Encodable {
  /// A row, before and after.
  package struct Sample: Sendable, Encodable {
    package let identifier: String
    package let columns: [String]
    package let before: [String?]
    package let after: [String?]?

    private enum CodingKeys: String, CodingKey { case identifier, before, after }

    package func encode(to encoder: any Encoder) throws {
      let values = { (row: [String?]) in Dictionary(zip(columns, row)) { first, _ in first } }
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(identifier, forKey: .identifier)
      try container.encode(values(before), forKey: .before)
      try container.encodeIfPresent(after.map(values), forKey: .after)
    }
  }

  package let job: String
  package let action: String
  package let database: String
  package let server: String
  package let role: String
  package let entity: String
  package let key: [String]
  /// The file that has the identifiers, if none are selected.
  package let identifiers: String?
  package let matches: Int
  /// The number of chunks; if they adapt to a target, their number at the size of the first.
  package let chunks: Int
  /// The number of rows in the first chunk, if the next ones adapt to a target.
  package let firstChunk: Int?
  package let sql: PlanReport.Statements
  /// How the server finds the rows that are selected, and those of a chunk.
  package let queryPlan: [String]
  package let lookUp: [String]
  /// What is rechecked of a row when its turn comes.
  package let recheck: PlanReport.Rechecking
  package let locks: [String]
  package let triggers: [String]
  package let foreignKeys: [String]
  /// What would spare the server work.
  package let advice: [String]
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
  ///   - options: What may differ from one run to the next.
  ///   - handlers: Handlers that the `handler` of a transform may name.
  /// - Throws: `BatchError` with the place in the job file if the job does not fit its database.
  package init(
    of job: Job,
    parameters: ParameterValues,
    chunkSize: Int? = nil,
    options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) {
    let next = await NextStep(of: job, options: options, handlers: handlers)
    self = try await job.inSession { session throws(BatchError) in
      let plan = try PostgresPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: true,
        in: session
      )
      if job.sharedServer != nil { try RunTables(of: session).requireUse(in: session) }
      let options = TransactionOptions(
        .repeatableRead,
        isReadOnly: true,
        searchPath: plan.query.path
      )
      return try session.transaction(options) { () throws(BatchError) in
        try PostgresPlanReport(plan, chunkSize, next, in: session)
      }
    }
  }

  private init(
    _ plan: PostgresPlan,
    _ chunkSize: Int?,
    _ next: NextStep,
    in session: PostgresSession
  ) throws(BatchError) {
    let (query, table) = (plan.query, plan.table)
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
      if let identifiers = plan.identifiers {
        matches = try identifiers.list.distinct().count
      } else {
        matches = try query.count(in: session)
      }
    } catch {
      throw query.explained(error)
    }
    let adapts = chunkSize == nil && plan.job.chunk.target != nil
    let chunkSize = ChunkSizing(
      plan.job.policy,
      ofSize: chunkSize,
      preparedWithin: plan.job.action.patience
    ).size
    chunks = (matches + chunkSize - 1) / chunkSize
    firstChunk = adapts ? chunkSize : nil
    identifiers = plan.identifiers?.path.string
    sql = PlanReport.Statements(
      create: plan.newArchive?.statement,
      fetch: identifiers.map { "the identifiers of \($0)" } ?? query.statementText,
      apply: try plan.statementText()
    )
    queryPlan = identifiers == nil ? try query.explanation(in: session) : []
    lookUp = try plan.lookUp(in: session)
    recheck = plan.rechecking
    locks = plan.locks
    triggers = plan.firingTriggers
    foreignKeys = plan.metForeignKeys
    advice = try plan.advice(for: matches, in: session)
    var warnings = plan.notes + plan.warnings
    var sample: [Sample] = []
    do {
      let columns = plan.previewedColumns
      sample = try session.savepoint { () throws(BatchError) in
        try plan.preview(5, in: session)
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
    (self.next, nextWords) = (next.name, next.words)
  }
}

extension PostgresPlan {
  /// What is run for each chunk.
  fileprivate func statementText() throws(BatchError) -> String {
    switch work {
    case .change(let change), .archiving(let change, _): try change.statementText()
    case .transform(let transform, _, _, _): try transform.statementText()
    case .export(let export, _): try export.statementText()
    }
  }

  /// How the server finds the rows of a chunk.
  fileprivate func lookUp(in session: PostgresSession) throws(BatchError) -> [String] {
    switch work {
    case .change(let change), .archiving(let change, _): try change.explanation(in: session)
    case .transform(let transform, _, _, _): try transform.explanation(in: session)
    case .export(let export, _): try export.explanation(in: session)
    }
  }

  /// The columns that are shown of the first rows.
  fileprivate var previewedColumns: [String] {
    switch work {
    case .change(let change), .archiving(let change, _): change.previewedColumns
    case .transform(let transform, _, _, _): transform.reads.map(\.name)
    case .export(let export, _): export.columns
    }
  }

  /// The columns that are set, or all of a row that is deleted.
  private var changedColumns: [String] {
    switch work {
    case .change(let change), .archiving(let change, _): change.previewedColumns
    case .transform(let transform, _, _, _): transform.writes.map(\.name)
    case .export: []
    }
  }

  /// The first rows, and what they would be where SQL alone decides.
  fileprivate func preview(
    _ limit: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    let query = try shownQuery(limit)
    return switch work {
    case .change(let change), .archiving(let change, _):
      try change.preview(limit, of: query, in: session)
    case .transform(let transform, _, _, _): try transform.preview(limit, of: query, in: session)
    case .export(let export, _): try export.preview(limit, of: query, in: session)
    }
  }

  /// What selects the first rows, or those of the first identifiers.
  private func shownQuery(_ limit: Int) throws(BatchError) -> PostgresQuery {
    guard let list = identifiers?.list, list.count > 0 else { return query }
    return try query.restricted(to: RowKeys(list, 0..<min(limit, list.count), key: key))
  }

  /// What must still hold of a row when its turn comes.
  fileprivate var rechecking: PlanReport.Rechecking {
    let term = condition?.expression.text.onOneLine
    let isRechecked = recheck.predicate != nil
    let reason =
      job.source.recheck == .off
      ? "recheck is off" : "reads other rows, or gives another value each time"
    return PlanReport.Rechecking(
      mode: job.source.recheck.rawValue,
      terms: isRechecked ? term.map { [$0] } ?? [] : [],
      notRechecked: isRechecked ? [] : term.map { [.init(term: $0, because: reason)] } ?? [],
      secondsPerChunk: nil,
      isInterrupted: false
    )
  }

  /// What each chunk locks.
  fileprivate var locks: [String] {
    guard job.action.writes else {
      return ["ACCESS SHARE on \(table.title), which only DDL waits for"]
    }
    let seconds = job.database.busyTimeout / .seconds(1)
    let rows = job.action.type == "delete" ? "FOR UPDATE" : "FOR NO KEY UPDATE"
    return [
      "ROW EXCLUSIVE on \(table.title), which only DDL and LOCK TABLE wait for",
      "\(rows) on the rows of a chunk, until it is committed",
      "waits at most \(seconds) s for a lock (database.busyTimeout)",
    ]
  }

  /// What happens to rows, as triggers know it; nil if nothing does.
  private var event: String? {
    guard job.action.writes else { return nil }
    return job.action.type == "delete" ? "DELETE" : "UPDATE"
  }

  /// The triggers that a chunk sets off.
  fileprivate var firingTriggers: [String] {
    guard let event else { return [] }
    return table.triggers.filter { $0.isEnabled && $0.events.contains(event) }.map {
      "\($0.name), \($0.isForEachRow ? "each row" : "each statement"), calls \($0.function)"
    }
  }

  /// The foreign keys that are looked at.
  fileprivate var metForeignKeys: [String] {
    guard let event else { return [] }
    let set = Set(changedColumns)
    let isDeletion = event == "DELETE"
    let own = isDeletion ? [] : table.references.filter { !set.isDisjoint(with: $0.columns) }
    let others = table.referrers.filter { isDeletion || !set.isDisjoint(with: $0.targetColumns) }
    return (own + others).map { key in
      let action = isDeletion ? ", on delete \(key.onDelete.lowercased())" : ""
      return
        "\(key.name): \(key.table) (\(key.columns.joined(separator: ", "))) to \(key.target)\(action)"
    }
  }

  /// What would spare the server work in a run over so many rows.
  fileprivate func advice(
    for count: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    guard let event else { return [] }
    let columns = event == "DELETE" ? nil : changedColumns
    return try ServerAdvice(on: table, setting: columns, count: count, in: session).lines
  }

  fileprivate var warnings: [String] {
    var warnings: [String] = []
    let moving = key.columns.map(\.name).filter(table.partitionColumns.contains)
    if !moving.isEmpty, key.columns.count > 1 {
      warnings.append(
        "a row that somebody moves to another partition during the run counts as vanished: the key has"
          + " \(moving.joined(separator: ", ")), by which \(table.title.quotedForMessage) is partitioned;"
          + " if columns that stay as they are identify a row, name only these in source.key"
      )
    }
    let cascades = table.referrers.filter { !["NO ACTION", "RESTRICT"].contains($0.onDelete) }
    if event == "DELETE", !cascades.isEmpty {
      let tables = Set(cascades.map(\.table)).sorted().joined(separator: ", ")
      warnings.append("rows of \(tables) are changed or deleted too, by their foreign keys")
    }
    if isInOrder {
      warnings.append(
        "rows change in the order of the list (source), by one process at a time: others wait, and go on when it"
          + " ends"
      )
    }
    if condition != nil, recheck.predicate == nil, job.source.recheck == .row, job.action.writes {
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
  package init(
    of job: Job,
    parameters: ParameterValues,
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) {
    try job.refuseMissingFolders()
    try job.refuseOccupiedOutput()
    (entity, notes) = try await job.inSession { session throws(BatchError) in
      let plan = try PostgresPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: true,
        in: session
      )
      try plan.refuseOccupiedFolder()
      if job.sharedServer != nil { try RunTables(of: session).requireUse(in: session) }
      return (plan.table.title, plan.notes)
    }
  }
}
#endif
