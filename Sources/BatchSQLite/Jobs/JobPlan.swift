package import BatchRuns
package import BatchIdentifiers
package import BatchJobs
import SystemPackage

/// A job resolved against its database: every name found, every expression compiled, nothing run.
///
/// Making a plan writes nothing and reads only the schema.
package struct JobPlan: Sendable {
  package let job: Job
  package let store: Store
  package let parameters: ParameterValues
  package internal(set) var query: IdentifierQuery
  /// The condition that selects them, and what its terms read; nil without one.
  package let condition: Condition?
  package let work: Work
  package let expected: ExpectedSchema
  /// The definitions of the triggers that the changes of rows set off.
  let triggers: [String]
  /// The range of rows that the run exports; nil for a job without `since` or `changes`.
  package let increment: Increment?
  /// What an operator should know about it; none if it was recorded before.
  package let incrementWarnings: [String]
  package let hooks: RunHooks

  package enum Work: Sendable {
    /// Changes rows by SQL, each by a separate statement if a change may affect other rows.
    case change(BulkChange, isRowByRow: Bool)
    case export(RowExport, Job.Export)
    case transform(RowTransform, Job.Transform, ChildPool?)
  }

  /// The job's change of the store; nil for an export.
  package var change: BulkChange? {
    switch work {
    case .change(let change, _): change
    case .transform(let transform, _, _): transform.target
    case .export: nil
    }
  }

  package var entity: Entity { query.entity }

  /// The columns that an update sets, under the entity's names; none for other actions.
  package var assignments: [(column: String, value: SQLExpression)] {
    guard case .change(let change, _) = work, case .update(let assignments) = change.action else {
      return []
    }
    guard entity.kind == .model, case .update(let update) = job.action else { return assignments }
    return update.set.compactMap { assignment in
      entity.attribute(named: assignment.column).map {
        ($0.column, SQLExpression(assignment.expression))
      }
    }
  }

  package var traps: [String] {
    let condition = job.source.where.map { text in
      SQLExpression(text).traps().map { "\(JobPath.where): \($0)" }
    }
    guard case .update(let update) = job.action else { return condition ?? [] }
    return (condition ?? [])
      + update.set.flatMap { assignment in
        SQLExpression(assignment.expression).traps(setting: assignment.column).map {
          "\(JobPath.set(assignment.column)): \($0)"
        }
      }
  }

  /// Resolves a job.
  ///
  /// - Throws: `BatchError` with the place in the job file: an unknown entity or attribute, an
  ///   invalid expression, an archive that does not fit, a handler that is not registered, an
  ///   impossible hook or report, a database that cannot be written.
  package init(
    _ job: Job,
    parameters: ParameterValues,
    handlers: [String: TransformHandler] = [:],
    of run: RunIdentity = RunIdentity()
  ) async throws(BatchError) {
    do throws(BatchError) {
      try await self.init(job, parameters: parameters, handlers: handlers, of: run, store: nil)
    } catch {
      throw await job.refusal(error).inWordsOfJobs
    }
  }

  /// Resolves a job against its database, which may be open already, for a new run or for one that
  /// requires an earlier schema.
  package init(
    _ job: Job,
    parameters: ParameterValues,
    handlers: [String: TransformHandler],
    of run: RunIdentity,
    store open: Store?,
    expecting recorded: ExpectedSchema? = nil,
    stoppedBy stop: StopSwitch? = nil
  ) async throws(BatchError) {
    let store: Store
    do throws(BatchError) {
      store =
        if let open { open } else {
          try await job.openStore()
        }
    } catch {
      throw job.located(openingStore: error)
    }
    // A rehearsal writes to a clone, which is writable even if its database is not.
    let writesHere = job.action.writes && !job.isRehearsal
    if writesHere { try job.refuseCoreData(store) }
    let values = parameters.sqlValues
    let predicate = job.source.where.map { SQLExpression($0, at: job.place(of: .where)) }
    let request = job.fetchRequest(predicate, values)
    let start = try IncrementStart(of: job, parameters, after: run.last)
    let reader = store.connection(label: "batch.plan")
    let resolve: @Sendable (Connection) throws(BatchError) -> Resolved = {
      connection throws(BatchError) in
      var (values, request) = (values, request)
      try recorded?.verify(in: connection)
      let changes = try LoggedChanges(job, parameters, of: run, store.schema, in: connection)
      if let changes {
        request.query = SQLExpression(changes.query, at: job.place(of: .changes))
        request.key = changes.key
      }
      try job.refuseAfterwards(in: connection)
      var query: IdentifierQuery
      do throws(BatchError) {
        query = try IdentifierQuery(
          request,
          schema: store.schema,
          expecting: recorded,
          connection: connection
        ).inRowIDOrder()
        if start == nil, recorded == nil { query = try query.expectingSchema(in: connection) }
      } catch {
        var error = error
        if let remedy = job.source.remedy(for: error) { error.remedy = remedy }
        throw error.located(at: job.place(of: job.path(of: error.subject)))
      }
      let compiler = ExpressionCompiler(
        connection: connection,
        entity: query.entity,
        parameters: values.keys
      )
      var condition: Condition? =
        if let predicate { try compiler.condition(predicate) } else { nil }
      var (increment, warnings) = (run.increment ?? changes?.increment, [String]())
      if let start {
        if increment == nil {
          let isCoreData = store.coreData != nil
          do throws(BatchError) {
            (increment, warnings) =
              try Self.increment(start, over: query, isCoreData: isCoreData, in: connection)
          } catch {
            throw error.place == nil ? error.located(at: job.place(of: .since)) : error
          }
        }
        let range = try increment?.range(of: query, in: connection, &values)
        request.parameters = values
        condition = range.map { condition?.and($0) ?? $0 }
        request.predicate = condition?.expression
        query = try IdentifierQuery(
          request,
          schema: store.schema,
          expecting: recorded,
          connection: connection
        ).inRowIDOrder()
        if recorded == nil { query = try query.expectingSchema(in: connection) }
      }
      let work = try Work(
        job,
        of: run,
        query: query,
        predicate: condition?.applied(by: job.source.recheck),
        values: values,
        store: store,
        handlers: handlers,
        connection: connection
      )
      let expected =
        if let recorded { recorded } else {
          try work.expectedSchema(for: query, keepsCopies: job.undo != nil, in: connection)
        }
      return Resolved(
        query: query,
        condition: condition,
        work: work,
        expected: expected,
        triggers: try work.triggers(in: connection),
        increment: increment,
        warnings: warnings
      )
    }
    let resolved: Resolved
    if let stop, start != nil {
      resolved = try await stop.interruptible(at: store.path, by: { reader.interrupt() }) {
        () throws(BatchError) in try await reader.perform(resolve)
      }
    } else {
      resolved = try await reader.perform(resolve)
    }
    if writesHere, store.isReadOnly {
      throw BatchError(
        .readOnly,
        "the database is read-only, and this job writes to it",
        at: job.place(of: .database),
        remedy: "make the file and its folder writable, or export instead"
      )
    }
    if writesHere { try store.refuseIfLinked() }
    try job.refuseMissingFolders()
    if let report = job.report {
      do throws(BatchError) {
        try report.check()
      } catch {
        throw error.located(at: job.place(of: .report))
      }
    }
    hooks = try RunHooks(job, parameters: parameters)
    self.job = job
    self.store = store
    self.parameters = parameters
    query = resolved.query
    condition = resolved.condition
    work = resolved.work
    expected = resolved.expected
    triggers = resolved.triggers
    increment = resolved.increment
    incrementWarnings = resolved.warnings
  }

  /// What the database says about a job.
  private struct Resolved: Sendable {
    let query: IdentifierQuery
    let condition: Condition?
    let work: Work
    let expected: ExpectedSchema
    let triggers: [String]
    let increment: Increment?
    let warnings: [String]
  }
}

extension JobPlan.Work {
  fileprivate init(
    _ job: Job,
    of run: RunIdentity,
    query: IdentifierQuery,
    predicate: SQLExpression?,
    values: [String: SQLValue],
    store: Store,
    handlers: [String: TransformHandler],
    connection: Connection
  ) throws(BatchError) {
    if case .export(var action) = job.action {
      do throws(BatchError) {
        action.file = action.file(of: run)
        if job.source.changes != nil { action.columns = action.columns.map(ChangeLog.adding) }
        if !action.isInParts { action.file = try ExportFile.resolve(action.file) }
      } catch {
        throw error.located(at: job.place(of: action.path))
      }
      let attributes = try query.entity.attributes(for: action, of: job)
      try JobPlan.refuseOtherColumns(of: action, attributes, of: job)
      let export = RowExport(
        entity: query.entity,
        key: query.key,
        attributes: attributes,
        format: action.format,
        partitions: job.partitions,
        invalidText: action.invalidText,
        predicate: predicate,
        recheck: job.source.recheck,
        parameters: values
      )
      self = .export(export, action)
      return
    }
    guard query.entity.kind == .table || query.entity.kind == .model else {
      throw BatchError(
        .readOnly,
        "\"\(query.entity.name)\" is a \(query.entity.kind.words), which cannot be written",
        at: job.place(of: .entity),
        remedy: "name the table behind it, or export instead"
      )
    }
    let written = try WrittenEntity(query.entity, in: store)
    if case .transform(let transform) = job.action {
      self = try .transform(
        transform,
        of: job,
        query: query,
        into: written,
        predicate: predicate,
        values: values,
        handlers: handlers,
        store: store,
        connection: connection
      )
      return
    }
    var change = BulkChange(
      entity: written.entity,
      key: query.key,
      action: try query.entity.change(
        for: job,
        written,
        values: values,
        store.schema,
        connection
      ),
      predicate: predicate.map(written.expression),
      recheck: job.source.recheck,
      parameters: values
    )
    if case .update(let update) = job.action, update.unchanged == .skip,
      case .update(let assignments) = change.action
    {
      change.isUnchanged = BulkChange.unchanged(assignments, of: written.entity)
    }
    change = try change.failingOnConflict(in: connection)
    do throws(BatchError) {
      try change.compile(in: connection)
    } catch {
      throw error.located(at: job.place(of: JobPath("action")))
    }
    let reach = try change.reach(enforcesForeignKeys: job.database.foreignKeys, in: connection)
    change.orderMatters = try change.dependsOnOrder(
      job.source.isOrdered,
      enforcesForeignKeys: job.database.foreignKeys,
      in: connection
    )
    // A statement for several rows changes them in an order of its own.
    let isOrdered = job.source.isOrdered && change.orderMatters
    if reach == .nothing, !isOrdered {
      change.isIndependent = try !change.replaces(in: connection)
    }
    self = .change(change, isRowByRow: reach != .nothing || isOrdered)
  }
}

extension Store {
  /// Refuses a database with several names.
  package func refuseIfLinked() throws(BatchError) {
    guard let links = FileSystem.status(of: FilePath(path))?.linkCount, links > 1 else { return }
    throw BatchError(
      .fileAccess,
      "the database has \(links) names, and SQLite keeps a log for each: changes by one are lost by"
        + " another",
      at: path,
      remedy: "remove the other names, or run the job on a copy: cp FILE COPY"
    )
  }
}

extension Entity {
  fileprivate func attributes(
    for export: Job.Export,
    of job: Job
  ) throws(BatchError) -> [Attribute] {
    guard let names = export.columns else { return attributes }
    return try attributes(named: names, of: job)
  }

  package func attributes(named names: [String], of job: Job) throws(BatchError) -> [Attribute] {
    var chosen: [Attribute] = []
    for (index, name) in names.enumerated() {
      do throws(BatchError) {
        chosen.append(try requireAttribute(named: name))
      } catch {
        throw error.located(at: job.place(of: .columns(index)))
      }
    }
    return chosen
  }

  fileprivate func change(
    for job: Job,
    _ written: WrittenEntity,
    values: [String: SQLValue],
    _ schema: Schema,
    _ connection: Connection
  ) throws(BatchError) -> BulkChange.Action {
    switch job.action {
    case .update(let update):
      let compiler = ExpressionCompiler(
        connection: connection,
        entity: self,
        parameters: values.keys
      )
      var assignments: [(column: String, value: SQLExpression)] = []
      for assignment in update.set {
        let place = job.place(of: .set(assignment.column))
        do throws(BatchError) {
          let attribute = try settableAttribute(named: assignment.column)
          let value = SQLExpression(assignment.expression, at: place)
          try compiler.check(value)
          assignments += written.assignments(of: attribute, to: value)
        } catch {
          throw error.located(at: place)
        }
      }
      return .update(assignments)
    case .delete(let delete):
      guard let name = delete.archive else { return .delete(archive: nil) }
      do throws(BatchError) {
        let archive = try BulkChange.Archive(
          named: name,
          for: written.entity,
          creating: delete.createsArchive,
          among: schema,
          enforcesForeignKeys: job.database.foreignKeys,
          in: connection
        )
        return .delete(archive: archive)
      } catch {
        throw error.located(at: job.place(of: .archive))
      }
    case .export, .transform, .load:
      preconditionFailure("there is no SQL for what a \(job.action.type) does")
    }
  }

  func settableAttribute(named name: String) throws(BatchError) -> Attribute {
    let attribute = try requireAttribute(named: name)
    if attribute.isGenerated {
      throw BatchError(
        .unknownAttribute,
        "column \"\(attribute.name)\" is generated and cannot be set",
        remedy: "set the columns it is computed from"
      )
    }
    if try requireKey().columns.contains(attribute.column) {
      throw BatchError(
        .unstableKey,
        "column \"\(attribute.name)\" identifies the rows and cannot be set",
        remedy: "a run could not find its place again: copy the rows instead"
      )
    }
    return attribute
  }
}

extension Job {
  fileprivate func fetchRequest(
    _ predicate: SQLExpression?,
    _ values: [String: SQLValue]
  ) -> FetchRequest {
    var request = FetchRequest(
      entity: source.entity,
      predicate: predicate,
      orderBy: partitions.map { FetchRequest.SortTerm(textOf: $0.column) }
        + source.orderBy.map { .init($0.column, descending: $0.descending) },
      limit: source.limit,
      parameters: values,
      key: source.key
    )
    request.query = source.query.map { SQLExpression($0, at: place(of: .query)) }
    return request
  }
}
