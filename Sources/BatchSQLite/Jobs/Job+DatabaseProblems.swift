import BatchRuns
package import BatchIdentifiers
package import BatchJobs

extension Job {
  /// An error about the job and its database, together with all others if there are more.
  ///
  /// A plan stops at the first name or expression that does not fit, but the author of a job needs
  /// all of them.
  package func refusal(_ error: BatchError) async -> BatchError {
    let codes: [BatchError.Code] = [.invalidSQL, .unknownEntity, .unknownAttribute, .invalidJob]
    guard codes.contains(error.code) else { return error }
    let databaseProblems = await databaseProblems().map { problem in
      origin.map(problem.located) ?? problem
    }
    guard databaseProblems.count > 1 else { return error }
    return .invalidJob(databaseProblems, file: origin?.file) ?? error
  }

  /// The names and expressions of the job that do not fit its database; none if the database or the
  /// entity cannot be read.
  ///
  /// Reports nothing more about the values in `broken`.
  package func databaseProblems(except broken: Set<JobPath> = []) async -> [JobProblem] {
    let needed: [JobPath] = [JobPath("database"), .database, JobPath("source"), .entity, .query]
    guard action.selectsRows, broken.isDisjoint(with: needed), let store = try? await storeToRead()
    else { return [] }
    let problems = try? await store.makeConnection(label: "batch.databaseProblems").perform {
      connection throws(BatchError) in
      var databaseProblems = DatabaseProblems(
        job: self,
        schema: store.schema,
        connection: connection
      )
      databaseProblems.find(
        inAction: broken.isDisjoint(with: [JobPath("action"), JobPath("action", "type")])
      )
      return databaseProblems.problems
    }
    return (problems ?? []).filter { problem in
      !sequence(first: problem.path, next: \.parent).contains { broken.contains($0) }
    }
  }
}

private struct DatabaseProblems {
  package let job: Job
  package let schema: Schema
  package let connection: Connection
  private(set) var problems: [JobProblem] = []

  init(job: Job, schema: Schema, connection: Connection) {
    self.job = job
    self.schema = schema
    self.connection = connection
  }

  package mutating func find(inAction looksAtAction: Bool) {
    guard let entity = entity() else { return }
    let (source, schema, connection) = (job.source, schema, connection)
    let enforcesForeignKeys = job.database.foreignKeys
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: entity,
      parameters: job.parameters.keys
    )
    for (index, name) in (source.key ?? []).enumerated() {
      look(for: name, in: entity, .key(index))
    }
    if let condition = source.where {
      note(.where) { () throws(BatchError) in try compiler.check(SQLExpression(condition)) }
    }
    for (index, term) in source.orderBy.enumerated() {
      note(.orderBy(index)) { () throws(BatchError) in
        do throws(BatchError) {
          _ = try entity.requireAttribute(named: term.column)
        } catch {
          var error = error
          if let meant = term.meantBySQL { error.remedy = "write \(meant.quotedForMessage)" }
          throw error
        }
      }
    }
    guard looksAtAction else { return }
    switch job.action {
    case .update(let update):
      for assignment in update.set {
        let path = JobPath.set(assignment.column)
        lookForSettable(assignment.column, in: entity, path)
        note(path) { () throws(BatchError) in
          try compiler.check(SQLExpression(assignment.expression))
        }
      }
    case .delete(let delete):
      guard let archive = delete.archive else { break }
      note(.archive) { () throws(BatchError) in
        try BulkChange.Archive(
          named: archive,
          for: entity,
          creating: delete.createsArchive,
          among: schema,
          enforcesForeignKeys: enforcesForeignKeys,
          in: connection
        )
      }
    case .export(let export):
      for (index, name) in (export.columns ?? []).enumerated() {
        look(for: name, in: entity, .columns(index))
      }
    case .load: break
    case .transform(let transform):
      for (index, name) in transform.columns.enumerated() {
        look(for: name, in: entity, .columns(index))
      }
      for (index, name) in transform.writes.enumerated() {
        lookForSettable(name, in: entity, .writes(index))
      }
    }
  }

  private mutating func entity() -> Entity? {
    let (source, schema) = (job.source, schema)
    guard let query = source.query else {
      return note(.entity) { () throws(BatchError) in
        try schema.entity(named: source.entity)
      }
    }
    let compiler = QueryCompiler(
      connection: connection,
      schema: schema,
      parameters: job.parameters.keys
    )
    return note(.query) { () throws(BatchError) in
      try compiler.entity(of: SQLExpression(query))
    }
  }

  private mutating func look(for name: String, in entity: Entity, _ path: JobPath) {
    note(path) { () throws(BatchError) in try entity.requireAttribute(named: name) }
  }

  private mutating func lookForSettable(_ name: String, in entity: Entity, _ path: JobPath) {
    // Only the plan knows the job's own key.
    guard entity.key != nil, job.source.key == nil else {
      return look(for: name, in: entity, path)
    }
    note(path) { () throws(BatchError) in try entity.settableAttribute(named: name) }
  }

  @discardableResult
  private mutating func note<Found>(
    _ path: JobPath,
    _ find: () throws(BatchError) -> Found
  ) -> Found? {
    do throws(BatchError) {
      return try find()
    } catch {
      problems.append(JobProblem(path, error.message, remedy: error.inWordsOfJobs.remedy))
      return nil
    }
  }
}
