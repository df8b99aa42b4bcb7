#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
package import BatchPostgres
import BatchStore

/// A job resolved against a database of PostgreSQL: every name found, every expression checked, nothing run.
package struct PostgresPlan: Sendable {
  package let job: Job
  package let database: PostgresDatabase
  package let address: ServerAddress
  package let parameters: ParameterValues
  /// Which identifiers are selected.
  package let query: PostgresQuery
  /// What selects them; nil for all rows.
  package let condition: CheckedExpression?
  /// What is done with their rows.
  package let change: PostgresChange
  /// What somebody should know who has the job run.
  package let notes: [String]

  package var table: PostgresTable { query.table }
  package var key: PostgresKey { query.key }

  /// Resolves a job; writes nothing.
  ///
  /// - Throws: `BatchError` with the place in the job file: an unknown entity or column, an expression that is none, what
  ///   the role may not do.
  package init(
    _ job: Job,
    parameters: ParameterValues,
    in session: PostgresSession
  ) throws(BatchError) {
    self.job = job
    self.parameters = parameters
    address = session.address
    database = try PostgresDatabase(of: session)
    let path = try SearchPath(of: session)
    let values = PostgresParameters(parameters.postgresValues(declared: job.parameters))
    let entity = job.source.entity
    let table = try Self.located(at: job.place(of: .entity)) { () throws(BatchError) in
      try session.transaction(TransactionOptions(isReadOnly: true)) { () throws(BatchError) in
        try PostgresTable(named: entity, in: session)
      }
    }
    let compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: values,
      path: path
    )
    let condition = try job.source.where.map { text throws(BatchError) in
      try compiler.condition(PostgresExpression(text, at: job.place(of: .where)))
    }
    let key: PostgresKey
    let query: PostgresQuery
    do {
      key = try table.requireKey(declared: job.source.key)
      query = try PostgresQuery(
        table: table,
        key: key,
        where: condition,
        orderBy: job.source.orderBy.map { .init($0.column, descending: $0.descending) },
        limit: job.source.limit,
        parameters: values,
        path: path
      )
    } catch {
      var error = error
      if let remedy = job.source.remedy(for: error) { error.remedy = remedy }
      throw error.located(at: job.place(of: job.source.path(of: error.subject)))
    }
    self.condition = condition
    self.query = query
    change = PostgresChange(
      of: table,
      key: key,
      try Self.action(of: job, table, key, compiler, in: session),
      condition: .init(
        job.source.recheck.applies(to: condition) ? condition : nil,
        isRequired: job.source.recheck == .fail
      ),
      leavesUnchanged: job.action.leavesUnchanged,
      parameters: values,
      path: path
    )
    let change = change
    let checked = try Self.located(at: job.place(of: .entity)) { () throws(BatchError) in
      try change.check(in: session)
    }
    notes = try checked + ServerHealth.notes(for: session)
  }

  private static func action(
    of job: Job,
    _ table: PostgresTable,
    _ key: PostgresKey,
    _ compiler: PostgresExpressionCompiler,
    in session: PostgresSession
  ) throws(BatchError) -> PostgresChange.Action {
    switch job.action {
    case .update(let update):
      var assignments: [PostgresChange.Assignment] = []
      for assignment in update.set {
        let place = job.place(of: .set(assignment.column))
        assignments.append(
          try located(at: place) { () throws(BatchError) in
            try PostgresChange.Assignment(
              of: compiler.assignment(
                of: PostgresExpression(assignment.expression, at: place),
                to: assignment.column
              ),
              to: assignment.column,
              in: table,
              key: key
            )
          }
        )
      }
      return .update(assignments)
    case .delete(let delete):
      guard let name = delete.archive else { return .delete(archive: nil) }
      return try located(at: job.place(of: .archive)) { () throws(BatchError) in
        let archive = try session.transaction(TransactionOptions(isReadOnly: true)) {
          () throws(BatchError) in
          try PostgresChange.Archive.table(named: name, for: table, in: session)
        }
        return .delete(archive: try PostgresChange.Archive(archive, for: table))
      }
    case .export, .transform, .contexts, .undo:
      preconditionFailure("an action that a valid job on PostgreSQL does not have")
    }
  }

  private static func located<Result>(
    at place: String,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    do {
      return try body()
    } catch {
      throw error.place == nil ? error.located(at: place) : error
    }
  }

  /// The table as a run remembers it, so that another one is noticed.
  var shape: [String] {
    table.columns.map { "\($0.name) \($0.type)\($0.isOptional ? "" : " NOT NULL")" }
  }

  /// Which table it is, whatever its name and its columns.
  var tableIdentity: String { "\(database.derivedIdentity)/\(table.oid)" }

  /// What decides which rows are changed, and to what.
  var fingerprint: JobFingerprint { JobFingerprint(job: job, parameters: parameters, store: "") }
}

extension Recheck {
  /// Whether a condition must still hold when a row is written.
  ///
  /// A condition that reads other rows, or gives another value each time, only if that is asked for: the run's own work might
  /// answer it.
  fileprivate func applies(to condition: CheckedExpression?) -> Bool {
    switch self {
    case .off: false
    case .row: condition?.isAboutRow ?? false
    case .skip, .fail: true
    }
  }
}

extension Job.Action {
  fileprivate var leavesUnchanged: Bool {
    if case .update(let update) = self { update.unchanged == .skip } else { false }
  }
}

extension ParameterValues {
  /// The values as they are bound in PostgreSQL.
  fileprivate func postgresValues(
    declared declarations: [String: ParameterDeclaration]
  ) -> [String: PostgresValue] {
    var values: [String: PostgresValue] = [:]
    for (name, entry) in entries {
      values[name] =
        switch entry.value {
        case .null: .null
        case .integer(let value) where declarations[name]?.type == .boolean: .boolean(value != 0)
        case .integer(let value): .integer(value)
        case .real(let value): .real(value)
        case .text(let value): .text(value)
        }
    }
    return values
  }
}

extension Job.DatabaseOptions.Server {
  /// Where the database is, for libpq.
  package func address() throws(BatchError) -> ServerAddress {
    switch self {
    case .url(let url): try ServerAddress(url: url)
    case .service(let name): ServerAddress(service: name)
    }
  }
}
#endif
