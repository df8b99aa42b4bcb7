#if PostgreSQL
package import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import SystemPackage

/// The run that an undo undoes, and the rows that it restores.
package struct UndoneRun: Sendable {
  package let request: UndoRequest
  package let recorded: RecordedUndo
  /// The keys of the rows, in the order in which they are restored.
  package let list: PackedIdentifiers
}

extension PostgresPlan {
  /// Resolves the undo of a run of a job; writes nothing.
  ///
  /// - Parameters:
  ///   - request: Which run to undo, and how.
  ///   - job: The job.
  ///   - undone: The run that an unfinished undo undoes; nil to choose one.
  ///   - recorded: The schema with which an unfinished undo began; empty for one that begins now.
  ///   - session: The session, in no transaction.
  /// - Throws: `BatchError` of code `noUndo` if there is nothing to undo, or if the table has changed
  ///   so that rows cannot be restored.
  package init(
    undoing request: UndoRequest,
    of job: Job,
    _ undone: String? = nil,
    expecting recorded: [String] = [],
    in session: PostgresSession
  ) throws(BatchError) {
    (self.job, cause) = (job, request.program)
    (parameters, identifiers, condition, recheck) = (ParameterValues(), nil, nil, .init())
    address = session.address
    let tables = try RunTables(of: session)
    let run = try tables.run(undone, toUndo: request, in: session)
    database = try PostgresDatabase(of: session)
    let begun = ExpectedTables(recorded: recorded)
    try begun?.verify(in: session)
    let path = try SearchPath(of: session)
    let table = try session.transaction(TransactionOptions(isReadOnly: true)) {
      () throws(BatchError) in
      try PostgresTable(named: run.entity, in: session)
    }
    let key: PostgresKey
    let records: UndoRecords
    do {
      key = try table.requireKey(declared: run.key)
      records = try UndoRecords(
        ofRun: run.run.run,
        inSchema: tables.schema,
        over: table,
        key: key,
        recording: run.columns,
        deleting: run.isDeletion
      )
      try records.requireFit(in: session)
    } catch {
      guard [.unknownAttribute, .unstableKey].contains(error.code) else { throw error }
      throw UndoRecords.changed(table, error.message)
    }
    let undo = try PostgresUndo(
      of: records,
      overwriting: request.overwrites,
      path: path,
      in: session
    )
    query = try PostgresQuery(table: table, key: key, path: path)
    if let begun {
      expected = begun
    } else {
      expected = try undo.expectedTables(in: database, session)
    }
    self.undo = nil
    // An undo that has begun has a list of its own.
    let list =
      undone == nil
      ? try tables.recordedKeys(
        of: run,
        only: request.identifiers,
        reversed: undo.isInOrder,
        in: session
      ) : IdentifierList.empty(storeIdentifier: "", entityName: "").packed
    increment = nil
    notes = try undo.check(in: session)
    work = .undo(
      undo.expecting(expected),
      UndoneRun(request: request, recorded: run, list: list)
    )
  }

  /// How the rows of an undo would end, and the first messages about those that it would leave; read
  /// in one transaction.
  package func foreseenUndo(
    telling limit: Int,
    in session: PostgresSession
  ) throws(BatchError) -> (Outcomes, [String]) {
    guard case .undo(let undo, let undone) = work else {
      preconditionFailure("an undo that is none")
    }
    let options = TransactionOptions(.repeatableRead, isReadOnly: true, searchPath: query.path)
    return try session.transaction(options) { () throws(BatchError) in
      try undo.foresee(undone.list, telling: limit, in: session)
    }
  }

  /// What an undo leaves as the run made it, in words.
  package func leftovers(in session: PostgresSession) throws(BatchError) -> [String] {
    guard case .undo(let undo, let undone) = work else { return [] }
    let table = query.table
    var messages: [String] = []
    if undo.records.isDeletion, case .delete(let delete) = job.action, let name = delete.archive,
      let archive = try? PostgresTable(named: name, in: session),
      let copies = try copies(in: archive, of: table, undo.key, session)
    {
      messages.append(copies)
    }
    let set = Set(undone.recorded.columns)
    let event = undo.records.isDeletion ? "DELETE" : "UPDATE"
    let keys = table.referrers.filter { key in
      let action = undo.records.isDeletion ? key.onDelete : key.onUpdate
      return !["NO ACTION", "RESTRICT"].contains(action)
        && (undo.records.isDeletion || !set.isDisjoint(with: key.targetColumns))
    }.map { "in \($0.table) by the foreign key \($0.name.quotedForMessage)" }
    let triggers = table.triggers.filter { trigger in
      trigger.isEnabled && trigger.events.contains(event)
        && (undo.records.isDeletion || trigger.columns.isEmpty
          || !set.isDisjoint(with: trigger.columns))
    }.map { "by the trigger \($0.name.quotedForMessage)" }
    let others = Set(keys + triggers).sorted()
    if !others.isEmpty {
      messages.append(
        "not undone: what the run may have changed or deleted \(others.joined(separator: ", "))"
      )
    }
    return messages
  }

  /// The copies of restored rows in an archive that have the same values; nil if there are none.
  ///
  /// A copy with other data stays, since that data exists nowhere else.
  private func copies(
    in archive: PostgresTable,
    of table: PostgresTable,
    _ key: PostgresKey,
    _ session: PostgresSession
  ) throws(BatchError) -> String? {
    let names = table.columns.map(\.name).filter { name in
      archive.columns.contains { $0.name == name }
    }
    let keys = key.columns.map(\.name)
    guard keys.allSatisfy(names.contains) else { return nil }
    func row(_ alias: String) -> String {
      "ROW(\(names.map { "\(alias).\(PostgresName.quoted($0))" }.joined(separator: ", ")))"
    }
    let matches = keys.map {
      "copy.\(PostgresName.quoted($0)) = original.\(PostgresName.quoted($0))"
    }
    let condition =
      (matches + ["pg_catalog.record_image_eq(\(row("copy")), \(row("original")))"])
      .joined(separator: " AND ")
    let count = try session.text(
      "SELECT count(*) FROM \(archive.sql) AS copy JOIN \(table.sql) AS original ON \(condition)"
    )
    guard let count = count.flatMap({ Int($0) }), count > 0 else { return nil }
    return "not undone: \(count.grouped) \(count == 1 ? "copy" : "copies") in \(archive.title);"
      + " this removes them: DELETE FROM \(archive.sql) AS copy USING \(table.sql) AS original WHERE \(condition)"
  }

  /// The run that is undone; nil for a job.
  var undone: UndoneRun? {
    if case .undo(_, let undone) = work { undone } else { nil }
  }

  /// Prepares the records of the undone run, and prevents it from going on, in the transaction in
  /// which the undo begins.
  func beginUndo(in tables: RunTables, _ session: PostgresSession) throws(BatchError) {
    guard case .undo(let undo, let undone) = work else { return }
    let run = undone.recorded.run.run
    try tables.setAside(run, in: session)
    if undone.request.identifiers == nil {
      try undo.records.requireAll(undone.list.count, in: session)
    }
    try undo.records.makeIndex(in: session)
    try tables.noteUndo(of: run, in: session)
  }
}

extension PostgresUndo {
  fileprivate func expecting(_ expected: ExpectedTables) -> PostgresUndo {
    var undo = self
    undo.expected = expected
    return undo
  }
}

extension RunTables {
  /// The run to undo: the one that an unfinished undo undoes, or else the one that was asked for.
  func run(
    _ undone: String? = nil,
    toUndo request: UndoRequest,
    in session: PostgresSession
  ) throws(BatchError) -> RecordedUndo {
    let place = session.address.description
    let (job, undoing) = (request.cause.name, request.program.name)
    let undos = try exist(in: session) ? undos(ofJob: job, in: session) : []
    if let undone {
      if let run = undos.first(where: { $0.run.run == undone }) { return run }
      throw BatchError(
        .noUndo,
        "the undo records of run \(undone) are gone",
        at: place,
        remedy: "bring them back to go on with the undo"
      )
    }
    var unrecorded: [(run: String, startedAt: String)] = []
    for run in try runs(ofJobIfThere: job, in: session)
    where !undos.contains(where: { $0.run.run == run.run }) {
      guard let snapshot = try snapshot(ofRun: run.run, in: session),
        snapshot.outcomes.succeeded > 0
      else { continue }
      unrecorded.append((run.run, run.startedAt))
    }
    var completed: [String: CompletedUndo] = [:]
    for undo in undos {
      completed[undo.run.run] = try completedUndo(of: undo.run.run, by: undoing, in: session)
    }
    let chosen = try request.chosen(
      among: undos.map(\.undoable),
      besides: unrecorded,
      at: place
    ) { completed[$0.run] }
    guard let run = undos.first(where: { $0.run.run == chosen.run }) else {
      preconditionFailure("a run that is none of those to choose from")
    }
    return run
  }

  /// The keys of the rows that a run has recorded, or of those among `identifiers`.
  fileprivate func recordedKeys(
    of run: RecordedUndo,
    only identifiers: IdentifierList?,
    reversed isReversed: Bool,
    in session: PostgresSession
  ) throws(BatchError) -> PackedIdentifiers {
    let all = try list(ofRun: run.run.run, in: session).packed
    guard all.count == run.run.total else {
      throw BatchError(
        .noUndo,
        "the identifiers of run \(run.run.run) are gone from the database",
        at: session.address.description
      )
    }
    let outcomes = try rowOutcomes(ofRun: run.run.run, in: session)
    var list = try IdentifierSelection(
      all,
      .succeeded,
      outcomes,
      permissions: .ownerReadWrite
    ).list
    if let identifiers {
      let header = identifiers.header
      guard header.storeIdentifier == all.header.storeIdentifier,
        header.entityName == all.header.entityName, header.keyKind == all.header.keyKind
      else {
        throw BatchError(
          .foreignIdentifier,
          "the identifiers belong to entity \(header.entityName.quotedForMessage) of store"
            + " \(header.storeIdentifier)",
          remedy: "give identifiers of \(all.header.entityName.quotedForMessage) in this database"
        )
      }
      list = try list.kept(in: identifiers)
    }
    return isReversed ? try list.reversed() : list
  }
}

extension PackedIdentifiers {
  private static var together: Int { 16_384 }

  /// The keys that another list has too, in the order of this one.
  fileprivate func kept(in other: IdentifierList) throws(BatchError) -> PackedIdentifiers {
    var kept: [Range<Int>] = []
    let wanted = try other.sortedUnique()
    for start in stride(from: 0, to: count, by: Self.together) {
      var keys: [PrimaryKey] = []
      for position in start..<min(start + Self.together, count) {
        keys.append(try key(at: position))
      }
      let isWanted = try wanted.packed.contains(keys)
      for position in isWanted.indices.filter({ isWanted[$0] }).map({ start + $0 }) {
        if let last = kept.last, last.upperBound == position {
          kept[kept.count - 1] = last.lowerBound..<position + 1
        } else {
          kept.append(position..<position + 1)
        }
      }
    }
    return try slice(kept).packed
  }

  fileprivate func reversed() throws(BatchError) -> PackedIdentifiers {
    var builder = IdentifierListBuilder(
      storeIdentifier: header.storeIdentifier,
      entityName: header.entityName,
      keyKind: header.keyKind
    )
    var end = count
    while end > 0 {
      let piece = max(0, end - Self.together)..<end
      switch header.keyKind {
      case .integer: builder.append(contentsOf: try integers(in: piece).reversed())
      case .encoded:
        for key in try encodedKeys(in: piece).reversed() { builder.append(encoded: key.bytes.span) }
      }
      end = piece.lowerBound
    }
    return builder.finish().packed
  }
}

extension UndoRecords {
  /// The error for a table that has changed so that rows cannot be restored.
  static func changed(_ table: PostgresTable, _ reason: String) -> BatchError {
    BatchError(
      .noUndo,
      "\(table.title.quotedForMessage) has changed since the run: \(reason)",
      remedy: "restore the table's columns, then undo"
    )
  }

  /// Refuses a table whose columns have other types than the records.
  fileprivate func requireFit(in session: PostgresSession) throws(BatchError) {
    let recorded = try session.transaction(TransactionOptions(isReadOnly: true)) {
      () throws(BatchError) in
      try PostgresTable(named: sql, in: session)
    }
    for (index, column) in columns.enumerated() {
      let kept = try recorded.requireColumn(named: Self.before(index))
      guard kept.type != column.type else { continue }
      throw Self.changed(table, "\(column.name) was \(kept.type) and is \(column.type)")
    }
  }

  /// Refuses records that are not exactly those of the run.
  fileprivate func requireAll(_ count: Int, in session: PostgresSession) throws(BatchError) {
    let found = try session.integer("SELECT count(*) FROM \(sql)") ?? 0
    guard found != Int64(count) else { return }
    throw BatchError(
      .damagedFile,
      "\(sql) has \(Int(found).grouped) rows, and the run has recorded \(count.grouped)",
      at: session.address.description,
      remedy:
        "records were removed or added by hand; restore them, or undo with --ids the remaining rows"
    )
  }

  /// Lets the server find the record of a key, and know how many there are.
  fileprivate func makeIndex(in session: PostgresSession) throws(BatchError) {
    let index = PostgresName.quoted("\(Self.name(ofRun: run))_key")
    let keys = PostgresName.list(key.columns.map(\.name))
    try session.execute("CREATE INDEX IF NOT EXISTS \(index) ON \(sql) (\(keys))")
    try session.execute("ANALYZE \(sql)")
  }
}
#endif
