import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The execution of a batch insertion: fills a chunk of rows, then writes them.
final class BatchInsertion {
  /// What happens to a row that violates a unique constraint.
  enum Resolution {
    case fail, skip, update
  }

  private(set) var isDone = false
  private let rows: InsertedRows
  private let chunkSize: Int
  private let resolution: Resolution
  private let report: BatchReport
  private let key: EntityKey
  private let writer: Connection
  /// The columns that all rows have in common, with their values.
  private let fixed: [(slot: Int, value: SQLValue)]
  /// How many rows earlier transactions have written.
  private var committed: Int
  /// The indexes of the rows among all; nil if they follow those that are written.
  private let indexes: [Int]?

  private var entity: ModelEntity { rows.entity }

  init(
    _ rows: InsertedRows,
    atOnce chunkSize: Int,
    onConflict resolution: Resolution,
    _ report: BatchReport,
    _ writer: Connection,
    after committed: Int = 0,
    indexes: [Int]? = nil
  ) throws(BatchError) {
    (self.committed, self.indexes) = (committed, indexes)
    self.rows = rows
    self.chunkSize = chunkSize
    self.resolution = resolution
    self.report = report
    self.writer = writer
    let entity = rows.entity
    key = try entity.entity.requireKey()
    var fixed: [(slot: Int, value: SQLValue)] = []
    if let concrete = entity.concrete,
      let value = concrete.names.first(where: { $0.value == entity.entity.name })?.key
    {
      fixed.append((concrete.slot, value))
    }
    if let version = entity.versionSlot { fixed.append((version, .integer(1))) }
    self.fixed = fixed
  }

  /// Fills the rows of the next chunk; `fill` returns true if there are no more.
  func fill(_ fill: () throws -> Bool) throws {
    rows.removeAll()
    while rows.chunk.rows.count < chunkSize, rows.chunk.byteCount < InsertedRows.byteLimit {
      do {
        guard try rows.fillRow(fill) else {
          isDone = true
          return
        }
      } catch let error as BatchError {
        throw located(.init(number: rows.chunk.rows.count, error: error))
      }
      if let problem = rows.chunk.problems.first { throw located(problem) }
    }
  }

  /// Notes that the chunk was committed; returns how many rows are written, or nil if it was empty.
  func noteCommit() -> Int? {
    committed += rows.chunk.rows.count
    return rows.chunk.rows.isEmpty ? nil : committed
  }

  // MARK: Writing

  /// Writes the rows of the chunk, within the caller's transaction.
  ///
  /// - Parameter policy: What to do with a row that fails.
  /// - Returns: The outcomes of the rows, by number.
  /// - Throws: The error of the row that exceeds the allowed failures, or one that concerns more than
  ///   one row.
  @discardableResult
  func write(onFailure policy: FailurePolicy = .failChunk) throws(BatchError) -> ChunkResult {
    try writer.resolvingReferences { unresolved throws(BatchError) in
      try noteReferences(&unresolved)
    } _: { unresolved throws(BatchError) in
      if !unresolved.isEmpty { report.beginAgain() }
      return try write(except: unresolved, policy)
    }
  }

  private func write(
    except unresolved: [Int: BatchError],
    _ policy: FailurePolicy
  ) throws(BatchError) -> ChunkResult {
    let chunk = rows.chunk
    let (shapes, values) = (chunk.shapes, chunk.values)
    var keys = try allocatedKeys(from: 0)
    var triggersWrote = false
    var statements: [RowStatements?] = Array(repeating: nil, count: shapes.count)
    var written = ChunkResult()
    var problems = chunk.problems[...]
    func fail(_ problem: InsertionProblem) throws(BatchError) {
      guard problem.error.isAboutObjects, !writer.isAutocommit,
        written.failures.count < policy.limit
      else { throw located(problem, refusedBy: policy) }
      var error = problem.error
      error.message = "\(place(of: problem)): \(error.message)"
      written.failures.append((problem.number, error))
    }
    for (place, row) in chunk.rows.enumerated() {
      while let problem = problems.first, problem.number < row.number {
        try fail(problems.removeFirst())
      }
      do throws(BatchError) {
        if let error = unresolved[row.number] { throw error }
        let shape = shapes[row.shape]
        let known: RowStatements
        if let prepared = statements[row.shape] {
          known = prepared
        } else {
          known = try RowStatements(self, shape)
          statements[row.shape] = known
        }
        let given = values[row.start..<row.start + shape.count]
        var assigned: Int64?
        if known.lacksKey(given) {
          guard key.isRowID else { throw missingKey(known, given) }
          // A trigger may have inserted rows into the same table since the keys were taken.
          if triggersWrote, try isTaken(keys) { keys = try allocatedKeys(from: place) }
          triggersWrote = false
          guard let next = keys.popFirst() else { throw missingKey(known, given) }
          assigned = next
        }
        let before = writer.totalChanges
        if try write(NewRow(statements: known, given: given, assignedKey: assigned)) {
          written.succeeded += 1
        } else {
          written.passedOver.unchanged.insert(row.number)
        }
        if writer.totalChanges - before != writer.changes { triggersWrote = true }
      } catch {
        try fail(explained(error, row))
      }
    }
    for problem in problems { try fail(problem) }
    return written
  }

  /// Finds the rows that refer to rows which do not exist.
  private func noteReferences(_ unresolved: inout [Int: BatchError]) throws(BatchError) {
    let chunk = rows.chunk
    var trials: [Int: ReferenceTrial] = [:]
    for row in chunk.rows where unresolved[row.number] == nil {
      let columns = chunk.shapes[row.shape].map { entity.columns[$0.slot] }
      let trial =
        if let known = trials[row.shape] { known } else {
          try ReferenceTrial(of: entity.entity, changing: columns, among: columns, in: writer)
        }
      trials[row.shape] = trial
      let values = Array(chunk.values[row.start..<row.start + columns.count])
      guard let problem = trial.problem(with: values, in: writer) else { continue }
      unresolved[row.number] = BatchError(
        .constraint,
        "FOREIGN KEY constraint failed: \(problem)",
        at: writer.path
      )
    }
  }

  /// Whether there are rows with keys that were taken for new ones.
  private func isTaken(_ keys: Range<Int64>) throws(BatchError) -> Bool {
    guard let next = keys.first else { return false }
    let (table, column) = (SQLName.quoted(entity.entity.table), SQLName.quoted(key.columns[0]))
    let sql = "SELECT 1 FROM \(table) WHERE \(column) >= ?"
    return try writer.value(sql, .integer(next)) != nil
  }

  /// Assigns new keys to the rows of the chunk, from one on, that have none.
  private func allocatedKeys(from first: Int) throws(BatchError) -> Range<Int64> {
    guard key.isRowID else { return 0..<0 }
    let keySlot = entity.keySlots[0]
    let places = rows.chunk.shapes.map { shape in shape.firstIndex { $0.slot == keySlot } }
    let values = rows.chunk.values
    var taken: [Int64] = []
    var count = 0
    for row in rows.chunk.rows[first...] {
      switch places[row.shape].map({ values[row.start + $0] }) ?? .null {
      case .null: count += 1
      case .integer(let key): taken.append(key)
      case .real, .text, .invalidText, .blob: break
      }
    }
    if count == 0 { return 0..<0 }
    return try KeySequence(of: entity.entity).take(count, after: taken, in: writer)
  }

  private func missingKey(_ statements: RowStatements, _ given: ArraySlice<SQLValue>) -> BatchError
  {
    let column = key.columns.indices.first { part in
      statements.keyPlaces[part].map { given[given.startIndex + $0] == .null } ?? true
    }
    return BatchError(
      .missingKey,
      "column \(key.columns[column ?? 0].quotedForMessage) of the key has no value",
      at: entity.entity.name,
      remedy: "set it"
    )
  }

  /// Writes a row; returns false if it was left out, since it exists.
  private func write(_ row: NewRow) throws(BatchError) -> Bool {
    switch resolution {
    case .fail: return try insert(row, row.statements.insert) > 0
    case .skip, .update:
      do throws(BatchError) {
        return try insertOrChange(row)
      } catch {
        // SQLite requires mandatory values before it looks for the row that has them.
        guard error.sqlite?.message.hasPrefix("NOT NULL constraint failed") == true,
          let isChanged = try change(existing: row)
        else { throw error }
        return isChanged
      }
    }
  }

  private func insertOrChange(_ row: NewRow) throws(BatchError) -> Bool {
    // A statement that inserts or updates does not report which it did, but the history needs to
    // know. So for an existing row, a trigger BEFORE INSERT fires twice.
    guard row.statements.updates else { return try insert(row, row.statements.insert) > 0 }
    if report.tracksHistory, try insert(row, row.statements.insert) > 0 { return true }
    let kind: HistoryChange.Kind = report.tracksHistory ? .update : .insert
    if try insert(row, row.statements.insertOrUpdate, as: kind) > 0 { return true }
    if entity.entity.condition != nil { try refuseOther(row) }
    return false
  }

  /// Finds the row with the unique values of one that cannot be inserted, and updates it if the
  /// request says so; returns whether it did, or nil if there is no such row.
  private func change(existing row: NewRow) throws(BatchError) -> Bool? {
    let table = SQLName.quoted(entity.entity.table)
    let own = entity.entity.condition.map { " AND \($0)" } ?? ""
    let uniques =
      [key.columns.map { (name: $0, collation: "") }]
      + entity.entity.uniqueKeys.map {
        $0.columns.map { (name: $0.name, collation: " COLLATE \(SQLName.quoted($0.collation))") }
      }
    for unique in uniques {
      let values = unique.map { row.value(ofColumn: $0.name) }
      if values.contains(.null) { continue }
      let terms = unique.map { "\(SQLName.quoted($0.name)) = ?\($0.collation)" }
      let condition = terms.joined(separator: " AND ") + own
      let found = try writer.prepare("SELECT 1 FROM \(table) WHERE \(condition)")
      for (index, value) in values.enumerated() { try found.bind(value, at: index + 1) }
      guard try found.step() else { continue }
      found.reset()
      let columns = row.statements.updated
      guard resolution == .update, !columns.isEmpty else { return false }
      let set =
        columns.map { "\(SQLName.quoted($0)) = ?" } + [entity.versionAssignment].compactMap(\.self)
      let statement = try writer.prepare(
        "UPDATE \(table) SET \(set.joined(separator: ", ")) WHERE \(condition)"
          + report.requested.returning
      )
      let parameters = columns.map { row.value(ofColumn: $0) } + values
      for (index, value) in parameters.enumerated() { try statement.bind(value, at: index + 1) }
      _ = try report.run(
        statement,
        of: report.requested,
        as: report.tracksHistory ? .update : .insert,
        attributes: row.statements.attributes,
        in: writer
      )
      return true
    }
    return nil
  }

  /// Inserts a row, and returns the number of rows inserted or updated.
  private func insert(
    _ row: NewRow,
    _ statement: borrowing Statement,
    as kind: HistoryChange.Kind = .insert
  ) throws(BatchError) -> Int {
    try row.bind(to: statement)
    defer { statement.reset() }
    return try report.run(
      statement,
      of: report.requested,
      as: kind,
      attributes: row.statements.attributes,
      in: writer
    )
  }

  /// Refuses a row if one of another entity exists; the chunk is rolled back.
  private func refuseOther(_ row: NewRow) throws(BatchError) {
    guard let concrete = entity.concrete else { return }
    // An update without any change finds the row, whichever constraint was violated.
    let column = SQLName.quoted(entity.columns[concrete.slot])
    let columns = SQLName.list(key.columns + [entity.columns[concrete.slot]])
    let statement = try row.statements.prepare(
      " ON CONFLICT DO UPDATE SET \(column) = \(column) RETURNING \(columns)",
      in: writer
    )
    try row.bind(to: statement)
    guard try statement.step() else { return }
    let value = statement.value(at: key.columns.count)
    // A trigger may have skipped the update of a row of the same entity.
    if concrete.names[value] != nil { return }
    let name = rows.container.entities[entity.store].values.lazy
      .filter { SQLName.equal($0.entity.table, self.entity.entity.table) }
      .compactMap { $0.concrete?.names[value] }.first
    let identifier = PersistentIdentifier(
      storeIdentifier: entity.space.storeIdentifier,
      entityName: name ?? "?",
      key: statement.key(of: key)
    )
    throw BatchError(
      .modelTypeMismatch,
      "a new \(entity.entity.name) would update a row of another entity",
      at: identifier.description,
      remedy: "give it another key, or delete that row first"
    )
  }
}

// MARK: - Statements

extension BatchInsertion {
  /// The statements for the rows of a shape.
  ///
  /// Their parameters are the columns that the rows set, then an assigned key, then the columns
  /// whose values all rows have in common.
  private final class RowStatements {
    /// The columns of all parameters.
    let columns: [String]
    /// Where the parts of the key are among the columns that the rows set.
    let keyPlaces: [Int?]
    /// The attributes and relationships that are not part of the key.
    let attributes: [String]
    /// The columns that an existing row gets from a new one.
    let updated: [String]
    /// Whether an existing row is updated.
    let updates: Bool
    /// Inserts a row, or skips one that exists unless that is an error.
    let insert: Statement
    /// Inserts or updates a row; the same as ``insert`` if ``updates`` is false.
    let insertOrUpdate: Statement
    /// The values of the last columns.
    fileprivate let fixed: [SQLValue]
    private let sql: String

    init(_ insertion: BatchInsertion, _ set: [InsertedColumn]) throws(BatchError) {
      let (entity, key) = (insertion.entity, insertion.key)
      let keySlots = entity.keySlots
      // A part of the key has the name that the key itself uses, which may differ in case from that
      // in the mapping.
      let names = set.map { column in
        keySlots.firstIndex(of: column.slot).map { key.columns[$0] } ?? entity.columns[column.slot]
      }
      let fixed = insertion.fixed.filter { fixed in !set.contains { $0.slot == fixed.slot } }
      self.fixed = fixed.map(\.value)
      keyPlaces = keySlots.map { slot in set.firstIndex { $0.slot == slot } }
      let assigned = key.isRowID && keyPlaces[0] == nil ? key.columns : []
      columns = names + assigned + fixed.map { entity.columns[$0.slot] }
      attributes = set.filter { !keySlots.contains($0.slot) }.map(\.name)
      updated = zip(set, names)
        .filter { column, _ in
          column.slot != entity.versionSlot && !keySlots.contains(column.slot)
        }
        .map(\.1)
      sql = """
        INSERT INTO \(SQLName.quoted(entity.entity.table)) (\(SQLName.list(columns))) \
        VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
        """
      let resolution = insertion.resolution
      updates = resolution == .update && !updated.isEmpty
      let returning = insertion.report.requested.returning
      let skipping = resolution == .fail ? "" : " ON CONFLICT DO NOTHING"
      let assignments =
        updated.map { "\(SQLName.quoted($0)) = excluded.\(SQLName.quoted($0))" }
        + [entity.versionAssignment].compactMap(\.self)
      let own = entity.entity.condition.map { " WHERE \($0)" } ?? ""
      let updating =
        updates
        ? " ON CONFLICT DO UPDATE SET \(assignments.joined(separator: ", "))\(own)" : skipping
      insert = try insertion.writer.prepare(sql + skipping + returning)
      insertOrUpdate = try insertion.writer.prepare(sql + updating + returning)
    }

    func prepare(_ rest: String, in connection: Connection) throws(BatchError) -> Statement {
      try connection.prepare(sql + rest)
    }

    /// Whether a part of the key has no value.
    func lacksKey(_ given: ArraySlice<SQLValue>) -> Bool {
      for place in keyPlaces {
        guard let place, given[given.startIndex + place] != .null else { return true }
      }
      return false
    }
  }

  /// The values of a new row.
  private struct NewRow {
    let statements: RowStatements
    let given: ArraySlice<SQLValue>
    let assignedKey: Int64?

    func bind(to statement: borrowing Statement) throws(BatchError) {
      var parameter = 1
      for value in given {
        try statement.bind(value, at: parameter)
        parameter += 1
      }
      if let assignedKey {
        // A key that is set to nil has its parameter among the given values.
        let place = statements.keyPlaces[0].map { $0 + 1 }
        try statement.bind(assignedKey, at: place ?? parameter)
        if place == nil { parameter += 1 }
      }
      for value in statements.fixed {
        try statement.bind(value, at: parameter)
        parameter += 1
      }
    }

    func value(ofColumn name: String) -> SQLValue {
      guard let index = statements.columns.firstIndex(where: { SQLName.equal($0, name) }) else {
        return .null
      }
      if let assignedKey, index == statements.keyPlaces[0] ?? given.count {
        return .integer(assignedKey)
      }
      if index < given.count { return given[given.startIndex + index] }
      return statements.fixed[statements.fixed.count - (statements.columns.count - index)]
    }
  }
}

// MARK: - Errors

extension BatchInsertion {
  func interruption() -> BatchError {
    located(BatchError(.interrupted, "the task was cancelled", at: entity.entity.name))
  }

  /// The error with how many rows are done.
  func located(_ error: BatchError) -> BatchError { located(error, nil) }

  /// The error of a row, with its index and how many rows are done.
  private func located(
    _ problem: InsertionProblem,
    refusedBy policy: FailurePolicy = .failChunk
  ) -> BatchError {
    var error = located(problem.error, problem)
    let place = place(of: problem)
    error.place = error.place.map { $0 == entity.entity.name ? place : "\(place): \($0)" } ?? place
    return problem.error.isAboutObjects ? policy.refusal(error) : error
  }

  private func located(_ error: BatchError, _ problem: InsertionProblem?) -> BatchError {
    if error.insertFailure != nil { return error }
    var result = error
    switch committed {
    case 0: result.message += "; no row was written"
    case 1: result.message += "; 1 row is done"
    case let count: result.message += "; \(count.grouped) rows are done"
    }
    result.underlying = BatchInsertFailure(
      index: problem.map(index),
      property: problem?.property,
      value: problem?.value,
      committed: committed,
      cause: error
    )
    return result
  }

  private func index(of problem: InsertionProblem) -> Int {
    indexes?[problem.number] ?? committed + problem.number
  }

  private func place(of problem: InsertionProblem) -> String {
    "row \((index(of: problem) + 1).grouped) of \(entity.entity.name)"
  }

  /// The problem of a row that the database refuses, with the property and value that violate a
  /// constraint.
  private func explained(_ error: BatchError, _ row: InsertedChunk.Row) -> InsertionProblem {
    let columns = rows.chunk.shapes[row.shape]
    let named = error.constrainedColumns(of: entity.entity.table).compactMap { name in
      entity.slot(ofColumn: name).flatMap { slot in columns.firstIndex { $0.slot == slot } }
    }
    var error = error
    let shown = named.map { place in
      "\(columns[place].name) is \(rows.chunk.values[row.start + place].shortForMessage)"
    }
    if !shown.isEmpty { error.message += " (\(shown.joined(separator: ", ")))" }
    return InsertionProblem(
      number: row.number,
      error: error,
      property: named.first.map { columns[$0].name },
      value: named.first.map { rows.chunk.values[row.start + $0] }
    )
  }
}

extension BatchError {
  /// The columns of a table that a violated constraint names.
  func constrainedColumns(of table: String) -> [String] {
    guard let message = sqlite?.message,
      let prefix = ["UNIQUE", "NOT NULL"].lazy.map({ "\($0) constraint failed: " })
        .first(where: message.hasPrefix)
    else { return [] }
    return message.dropFirst(prefix.count).split(separator: ", ").map { column in
      String(column.hasPrefix("\(table).") ? column.dropFirst(table.count + 1) : column)
    }
  }
}
