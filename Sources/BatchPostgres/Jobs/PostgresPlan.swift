#if PostgreSQL
package import BatchJobs
package import BatchRuns
package import BatchIdentifiers

/// A job resolved against a PostgreSQL database: every name found, every expression checked,
/// nothing run.
package struct PostgresPlan: Sendable {
  /// The job, or the one whose run is undone.
  package let job: Job
  /// What the run is for: the job, or the undo.
  package let cause: any RunCause
  package let database: PostgresDatabase
  package let address: ServerAddress
  package let parameters: ParameterValues
  package let query: PostgresQuery
  /// The file with the identifiers, if the job names one instead of selecting them.
  package let identifiers: IdentifierFile?
  /// The condition of the selection; nil for all rows.
  package let condition: CheckedExpression?
  /// The condition that a row must still satisfy when it is processed.
  package let recheck: PostgresChange.Condition
  package internal(set) var work: Work
  package let expected: ExpectedTables
  /// Where the run records the rows that it changes; nil for nowhere.
  package let undo: UndoRecords?
  /// The range of rows that the run exports; nil for a job without `since` or `changes`.
  package let increment: Increment?
  package let notes: [String]

  package enum Work: Sendable {
    case change(PostgresChange)
    /// Deletes rows into an archive that the run creates when it begins; until then, the change has
    /// no archive.
    case archiving(PostgresChange, NewArchive)
    case transform(PostgresTransform, Job.Transform, any RowHandler, ChildPool?)
    case export(PostgresExport, Job.Export)
    case load(PostgresInsertion)
    case undo(PostgresUndo, UndoneRun)
  }

  /// Whether chunks are committed in the order of the list, across all processes.
  var isInOrder: Bool {
    if case .undo(let undo, _) = work { return undo.isInOrder }
    if case .load(let insertion) = work { return insertion.isInOrder }
    return job.action.writes && job.source.isOrdered
  }

  package var table: PostgresTable { query.table }
  package var key: PostgresKey { query.key }

  /// Resolves a job, for a run that may create its archive if `createsArchive`; writes nothing.
  ///
  /// `recorded` is the schema that a run began with; empty for a run that begins now. `extent` is how
  /// far the files of a load are read. `identity` is the run that is begun or continued, and `run` the UUID under which changed rows are recorded, if the job wants that.
  ///
  /// - Throws: `BatchError` with the place in the job file: an unknown entity or column, an invalid
  ///   expression, or a missing right of the role.
  package init(
    _ job: Job,
    parameters: ParameterValues,
    handlers: [String: TransformHandler] = [:],
    creatingArchive createsArchive: Bool = false,
    reading extent: LoadedFiles.Extent = .names,
    expecting recorded: [String] = [],
    recordingIn run: String? = nil,
    of identity: RunIdentity = RunIdentity(),
    in session: PostgresSession
  ) throws(BatchError) {
    self.job = job
    cause = job
    self.parameters = parameters
    session.hide(parameters.secretTexts)
    address = session.address
    let database = try PostgresDatabase(of: session)
    self.database = database
    // Verified first, because a change of the schema explains other errors.
    let begun = ExpectedTables(recorded: recorded)
    try (begun?.isOf(database) == false ? begun?.anywhere : begun)?.verify(in: session)
    let path = try SearchPath(of: session)
    var values = PostgresParameters(parameters.postgresValues(declared: job.parameters))
    let place = job.place(
      of: job.source.query != nil ? .query : job.action.selectsRows ? .entity : .into
    )
    var table = try Self.table(of: job, at: place, values, path, in: session)
    var (increment, warnings) = (identity.increment, [String]())
    if let changes = try Self.changes(job, parameters, of: identity, in: table, session) {
      (increment, table) = changes
    }
    let compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: values,
      path: path
    )
    var condition = try job.source.where.map { text throws(BatchError) in
      try compiler.condition(PostgresExpression(text, at: job.place(of: .where)))
    }
    let key: PostgresKey
    var query: PostgresQuery
    do {
      key = try job.action.selectsRows ? table.requireKey(declared: job.source.key) : .record
      query = try PostgresQuery(
        table: table,
        key: key,
        where: condition,
        orderBy: job.partitions.map { .init($0.column, byText: true) }
          + job.source.orderBy.map { .init($0.column, descending: $0.descending) },
        limit: job.source.limit,
        parameters: values,
        path: path
      )
    } catch {
      var error = error
      if let remedy = job.source.remedy(for: error) { error.remedy = remedy }
      throw error.located(at: job.place(of: job.path(of: error.subject)))
    }
    var rechecked = job.source.recheck.applies(to: condition) ? condition : nil
    if let start = try IncrementStart(of: job, parameters, after: identity.last) {
      let range: CheckedExpression
      (increment, values, range, warnings) = try Self.located(at: job.place(of: .since)) {
        [query, condition, values] () throws(BatchError) in
        let rows = try CursorRows(start.since.column, of: query, where: condition)
        let (increment, warnings) =
          if let recorded = identity.increment { (recorded, [String]()) } else {
            try Self.increment(start, over: rows, in: session)
          }
        let terms = increment.condition(rows.cursor.term, rows.key.map(\.term))
        let all = values.adding(terms.values.mapValues { PostgresValue($0) })
        let range = try PostgresExpressionCompiler(
          session: session,
          table: table,
          parameters: all,
          path: path
        ).condition(PostgresExpression(terms.sql))
        return (increment, all, range, warnings)
      }
      condition = condition?.and(range) ?? range
      rechecked = rechecked?.and(range) ?? range
      query = query.selecting(condition, values)
    }
    self.increment = increment
    self.condition = condition
    self.query = query
    identifiers = try Self.identifiers(of: job, query, database)
    recheck = .init(rechecked, isRequired: job.source.recheck == .fail)
    var work: Work
    switch job.action {
    case .transform(let transform):
      work = try Self.transform(transform, of: job, query, recheck, parameters, handlers)
    case .export(var export):
      export.columns = export.columns ?? begun?.attributes
      if job.source.changes != nil { export.columns = export.columns.map(ChangeLog.adding) }
      export.file = export.file(of: identity)
      work = try Self.export(export, of: job, query, recheck)
    case .load(let load):
      work = try .load(Self.insertion(load, of: job, extent, query, in: session))
    case .update, .delete:
      let recheck = recheck
      func change(_ action: PostgresChange.Action) -> PostgresChange {
        PostgresChange(
          of: table,
          key: key,
          action,
          condition: recheck,
          leavesUnchanged: job.action.leavesUnchanged,
          parameters: values,
          path: path,
          inOrder: job.source.isOrdered
        )
      }
      if createsArchive, let archive = try Self.newArchive(of: job, for: table, in: session) {
        work = .archiving(change(.delete(archive: nil)), archive)
      } else {
        work = .change(change(try Self.action(of: job, table, key, compiler, in: session)))
      }
    }
    let checked = try Self.located(at: place) {
      [work] () throws(BatchError) -> [String] in
      switch work {
      case .change(let change), .archiving(let change, _): return try change.check(in: session)
      case .transform(let transform, _, _, _): return try transform.check(in: session)
      case .export(let export, _):
        try export.check(in: session)
        return []
      case .load(let insertion):
        try insertion.check(job, in: session)
        return []
      case .undo: preconditionFailure("a job that is an undo")
      }
    }
    undo = try work.records(of: job, run, over: table, key: key, in: session)
    work = work.recording(undo)
    if let begun, begun.isOf(database) {
      expected = begun
    } else {
      expected = try work.expectedTables(in: database, session)
    }
    work = work.expecting(expected)
    // A wrong name is told before large files are read.
    if case .load(var insertion) = work, case .load(let load) = job.action {
      try insertion.read(load, of: job, extent)
      work = .load(insertion)
    }
    self.work = work
    _ = try Self.afterwards(of: job, table, in: session)
    if job.sharedServer != nil, let report = job.report {
      try Self.located(at: job.place(of: .report)) { () throws(BatchError) in try report.check() }
    }
    // A program that cannot be started is refused before anything else is done.
    _ = try RunHooks(job, parameters: parameters)
    // A job that only reads does not hold up others.
    notes =
      try checked + warnings + Self.notes(on: table, of: job, since: begun)
      + (job.action.writes
        ? ServerHealth.notes(for: session) + Self.foreignNotes(for: session) : [])
  }

  /// Names the columns that an export of all columns omits because they were added after the run
  /// began.
  private static func notes(
    on table: PostgresTable,
    of job: Job,
    since begun: ExpectedTables?
  ) -> [String] {
    guard case .export(let export) = job.action, export.columns == nil, let begun else { return [] }
    let new = table.columns.map(\.name).filter { !begun.attributes.contains($0) }
    if new.isEmpty { return [] }
    return [
      "\(table.title.quotedForMessage) has got \(new.joined(separator: ", ")) since the run began; what it exports has"
        + " the columns of the beginning. A new run exports all of them"
    ]
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
    case .export, .transform, .load:
      preconditionFailure("an action that a valid job on PostgreSQL does not have")
    }
  }

  /// The archive that a run of the job must create; nil if the archive exists or the job needs
  /// none.
  private static func newArchive(
    of job: Job,
    for table: PostgresTable,
    in session: PostgresSession
  ) throws(BatchError) -> NewArchive? {
    guard case .delete(let delete) = job.action, delete.createsArchive, let name = delete.archive
    else { return nil }
    return try located(at: job.place(of: .archive)) { () throws(BatchError) in
      try session.transaction(TransactionOptions(isReadOnly: true)) { () throws(BatchError) in
        try NewArchive(ifMissing: name, for: table, in: session)
      }
    }
  }

  private static func identifiers(
    of job: Job,
    _ query: PostgresQuery,
    _ database: PostgresDatabase
  ) throws(BatchError) -> IdentifierFile? {
    let store = database.derivedIdentity
    let file = try job.identifierFile(of: query.table.title, in: store) { $0 == store }
    guard let file, file.list.count > 0,
      (file.list.header.keyKind == .integer) != query.key.isInteger
    else { return file }
    throw BatchError(
      .otherRun,
      "the keys of the identifiers are not \(query.key.columns.map(\.name).joined(separator: ", "))",
      at: job.place(of: .identifiers),
      remedy: "name an identifier file that a job with the same key has made"
    )
  }

  /// The identifiers of the file, if the job names one; inside the caller's transaction.
  package func givenIdentifiers(in session: PostgresSession) throws(BatchError)
    -> PackedIdentifiers?
  {
    if let undone { return undone.list }
    if let loaded { return loaded.list(inStore: database.derivedIdentity) }
    guard let identifiers else { return nil }
    try query.refuseDuplicates(in: session)
    do throws(BatchError) {
      // A row that is named twice, in whatever form, is processed once.
      return try query.canonical(identifiers.load().packed, in: session).distinct()
    } catch {
      guard error.postgres?.state?.errorClass == "22" else { throw error }
      throw BatchError(
        .invalidIdentifier,
        "a key of the list is no value of \(key.columns.map(\.name).joined(separator: ", ")): \(error.message)",
        at: job.place(of: .identifiers),
        remedy: "correct the text that the list was made from"
      )
    }
  }

  var newArchive: NewArchive? {
    if case .archiving(_, let archive) = work { archive } else { nil }
  }

  private static func export(
    _ export: Job.Export,
    of job: Job,
    _ query: PostgresQuery,
    _ recheck: PostgresChange.Condition
  ) throws(BatchError) -> Work {
    for (index, name) in (export.columns ?? []).enumerated() {
      _ = try located(at: job.place(of: .columns(index))) { () throws(BatchError) in
        try query.table.requireColumn(named: name)
      }
    }
    let columns = try query.table.columns(named: export.columns)
    for (name, path) in export.namedColumns where columns.column(named: name) == nil {
      throw .notWritten(name, at: job.place(of: path), among: columns.map(\.name))
    }
    var action = export
    let place = job.place(of: export.path)
    if !export.isInParts {
      action.file = try located(at: place) { () throws(BatchError) in
        try ExportFile.resolve(export.file)
      }
    }
    let work = try PostgresExport(
      of: query.table,
      key: query.key,
      export.columns,
      as: export.format,
      partitions: job.partitions,
      condition: recheck,
      parameters: query.parameters,
      path: query.path
    )
    return .export(work, action)
  }

  package static func located<Result>(
    at place: String,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    do {
      return try body()
    } catch {
      throw error.place == nil ? error.located(at: place) : error
    }
  }

  /// Refuses a run's record that was changed by hand, or a run of rows that another role has
  /// selected.
  package func refuse(unlessExpecting recorded: [String], at place: String) throws(BatchError) {
    guard let begun = ExpectedTables(recorded: recorded) else {
      throw BatchError(
        .otherRun,
        "the record of what the run expects of the schema was changed by hand",
        at: place,
        remedy: "run with --fresh to set the run aside"
      )
    }
    guard begun.reader != ExpectedTables.reader(of: table, in: database) else { return }
    throw BatchError(
      .otherRun,
      "row security is on for \(table.title.quotedForMessage), and the run's rows were selected as "
        + (begun.reader.map { "the role \($0.quotedForMessage)" }
          ?? "a role from which it hides none"),
      at: place,
      remedy: "go on as that role, or run with --fresh to set the run aside"
    )
  }

  /// The folder of an export to parts; nil for any other work.
  var exportFolder: ExportFolder? {
    guard case .export(_, let action) = work, action.isInParts else { return nil }
    return ExportFolder(path: action.file, permissions: job.files.permissions)
  }

  func refuseOccupiedFolder() throws(BatchError) {
    guard case .export(_, let action) = work, let exportFolder else { return }
    try Self.located(at: job.place(of: .exportFolder)) { () throws(BatchError) in
      try exportFolder.refuse(overwriting: action.overwrite) { name, _ in name == job.name }
    }
  }

  /// Notes on tables of runs that may keep hosts from finding this run.
  private static func foreignNotes(for session: PostgresSession) throws(BatchError) -> [String] {
    guard let tables = try? RunTables(of: session) else { return [] }
    return try tables.runsElsewhere(ofJob: "", in: session).unreadable.map { schema in
      "the schema \(schema.quotedForMessage) also has tables of runs, which the role may not read: hosts whose"
        + " search_path begins there do not take part in this run"
    }
  }

  func refuseRunsElsewhere(
    besides tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) {
    try tables.refuseRunsElsewhere(ofJob: cause.name, over: { tableIdentity }, in: session)
  }

  /// A hash of what the run works on, unless it selects rows.
  var givenHash: String? { identifiers?.contentHash ?? loaded?.contentHash }

  var tableIdentity: String { table.identity(in: database) }

  package var fingerprint: JobFingerprint {
    get throws(BatchError) {
      if let undone { return try undone.request.fingerprint }
      return JobFingerprint(
        job: job,
        parameters: parameters,
        store: "",
        identifiersHash: givenHash
      )
    }
  }
}

extension PostgresPlan.Work {
  /// The records that a run of a job keeps; nil if it keeps none.
  fileprivate func records(
    of job: Job,
    _ run: String?,
    over table: PostgresTable,
    key: PostgresKey,
    in session: PostgresSession
  ) throws(BatchError) -> UndoRecords? {
    guard job.undo != nil else { return nil }
    let columns: [String]?
    switch self {
    case .change(let change), .archiving(let change, _):
      if case .update(let assignments) = change.action {
        columns = assignments.map(\.column.name)
      } else {
        columns = nil
      }
    case .transform(let transform, _, _, _): columns = transform.writes.map(\.name)
    case .export, .load, .undo: return nil
    }
    do throws(BatchError) {
      try UndoRecords.requireSupport(for: table, deleting: columns == nil, in: session)
    } catch {
      throw error.located(at: job.place(of: JobPath("undo")))
    }
    guard let run else { return nil }
    return try UndoRecords(
      ofRun: run,
      inSchema: RunTables(of: session).schema,
      over: table,
      key: key,
      recording: columns ?? UndoRecords.columns(ofDeleted: table, besides: key),
      deleting: columns == nil
    )
  }

  func recording(_ undo: UndoRecords?) -> Self {
    switch self {
    case .change(var change):
      change.undo = undo
      return .change(change)
    case .archiving(var change, let archive):
      change.undo = undo
      return .archiving(change, archive)
    case .transform(var transform, let action, let handler, let children):
      transform.undo = undo
      return .transform(transform, action, handler, children)
    case .export, .load, .undo: return self
    }
  }

  fileprivate func expectedTables(
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    switch self {
    case .change(let change): try change.expectedTables(in: database, session)
    case .archiving(let change, _):
      try change.expectedTables(keepingCopies: true, in: database, session)
    case .transform(let transform, _, _, _): try transform.expectedTables(in: database, session)
    case .export(let export, _): try export.expectedTables(in: database, session)
    case .load(let insertion): try insertion.expectedTables(in: database, session)
    case .undo(let undo, _): try undo.expectedTables(in: database, session)
    }
  }

  fileprivate func expecting(_ expected: ExpectedTables) -> Self {
    switch self {
    case .change(var change):
      change.expected = expected
      return .change(change)
    case .archiving: return self
    case .transform(var transform, let action, let handler, let children):
      transform.expected = expected
      return .transform(transform, action, handler, children)
    case .export(var export, let action):
      export.expected = expected
      return .export(export, action)
    case .load(var insertion):
      insertion.expected = expected
      return .load(insertion)
    case .undo: return self
    }
  }
}

extension Job.Action {
  fileprivate var leavesUnchanged: Bool {
    if case .update(let update) = self { update.unchanged == .skip } else { false }
  }
}

extension ParameterValues {
  /// The values that the server's messages must not show.
  fileprivate var secretTexts: [String] {
    entries.values.filter(\.isSecret).compactMap { entry in
      switch entry.value {
      case .null: nil
      case .integer(let value): String(value)
      case .real(let value): String(value)
      case .text(let value): value
      }
    }
  }

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
  /// - Throws: `BatchError` of code `invalidJob` if libpq cannot read the URL.
  package func address() throws(BatchError) -> ServerAddress {
    switch self {
    case .url(let url):
      do throws(BatchError) {
        return try ServerAddress(url: url)
      } catch {
        var refusal = error
        refusal.code = .invalidJob
        throw refusal
      }
    case .service(let name): return ServerAddress(service: name)
    }
  }
}
#endif
