import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// Inserts many rows, one after another, without objects: Core Data's `NSBatchInsertRequest`.
///
///     var lines = file.lines.makeIterator()
///     let request = BatchInsertRequest<Order> { row in
///       guard let line = lines.next() else { return true }
///       row.set(\.price, to: line.price)
///       return false
///     }
///     let result = try context.execute(request)
///
/// If a row has no value for a column, the column gets its default. Integer keys that are rowids
/// are assigned unless they are set; other keys must be set.
public struct BatchInsertRequest<Model: PersistentModel> {
  /// How to treat a row that violates a unique constraint.
  public enum Conflict: Sendable {
    /// It is an error.
    case error
    /// The existing row stays unchanged.
    case ignore
    /// The existing row gets the values of the new one.
    ///
    /// A row of a sub-entity keeps its entity; a row of another entity in the same table is an
    /// error.
    case update
  }

  /// A row to insert.
  public struct Row {
    fileprivate var assignments: [BatchAssignment<Model>] = []

    /// Sets a property.
    public mutating func set<Property>(_ property: KeyPath<Model, Property>, to value: Property) {
      assignments.append(.set(property, to: value))
    }

    /// Relates the row to a saved object, or to none, by a to-one relationship with a column in the
    /// row's table.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to object: Destination?
    ) {
      assignments.append(.set(relationship, to: object))
    }

    /// Relates the row to the object with an identifier.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to identifier: PersistentIdentifier
    ) {
      assignments.append(.set(relationship, to: identifier))
    }

    /// Relates the row to the object with an identifier, or to none, by the name of the
    /// relationship.
    public mutating func set(relationship name: String, to identifier: PersistentIdentifier?) {
      assignments.append(.set(relationship: name, to: identifier))
    }
  }

  /// How to treat rows that violate a unique constraint.
  public var conflict = Conflict.error
  /// The kind of result to return.
  public var resultType = BatchResultType.count
  /// The number of rows inserted per transaction.
  public var chunkSize = 5_000
  /// Fills a row, or returns true if there are no more.
  let fill: (inout Row) throws -> Bool

  /// Inserts the rows that a closure fills, until it returns true; in that call, no row is
  /// inserted.
  public init(_ fill: @escaping (inout Row) throws -> Bool) {
    self.fill = fill
  }

  /// Inserts a row for each element of a sequence.
  public init<Elements: Sequence>(
    _ elements: Elements,
    _ fill: @escaping (Elements.Element, inout Row) throws -> Void
  ) {
    var iterator = elements.makeIterator()
    self.fill = { row in
      guard let element = iterator.next() else { return true }
      try fill(element, &row)
      return false
    }
  }
}

extension ModelContext {
  /// Inserts rows in chunks, one transaction each.
  ///
  /// If a later chunk fails, earlier commits stay. The result counts inserted and updated rows, but
  /// not ignored ones.
  ///
  /// - Throws: The error of the request's closure; `BatchError` with code `unknownAttribute`,
  ///   `immutableAttribute` or `missingKey` for a row; `modelTypeMismatch` for a row that would
  ///   update a row of another entity; `constraint` for a row that the database refuses;
  ///   `readOnly`; `busy`.
  /// - Complexity: One statement per row; memory for one chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchInsertRequest<Model>
  ) throws -> BatchResult {
    try throwNoted()
    guard request.chunkSize > 0 else {
      throw BatchError(
        .invalidSQL,
        "the chunk size is \(request.chunkSize)",
        remedy: "give 1 or more"
      )
    }
    let entity = try container.writableEntity(named: Model.mapping.entityName)
    let writer = try writableConnection(to: entity.store)
    let report = BatchReport(request.resultType, entity, .insert, in: container)
    var insertion = try BatchInsertion(request, of: entity, in: container, report, writer)
    while !insertion.isDone {
      // The caller's closure runs outside the transaction, since others may be waiting for the
      // lock.
      try insertion.fill()
      try writeChunk(ofStore: entity.store, report) { _ throws(BatchError) in
        try insertion.write()
      }
    }
    return report.finish()
  }
}

private struct BatchInsertion<Model: PersistentModel> {
  private(set) var isDone = false
  private let request: BatchInsertRequest<Model>
  private let entity: ModelEntity
  private let container: ModelContainer
  private let report: BatchReport
  private let key: EntityKey
  private let writer: Connection
  private var rows: [Row] = []

  private struct Row {
    var attributes: [String] = []
    var columns: [String: SQLValue] = [:]
  }

  init(
    _ request: BatchInsertRequest<Model>,
    of entity: ModelEntity,
    in container: ModelContainer,
    _ report: BatchReport,
    _ writer: Connection
  ) throws(BatchError) {
    self.request = request
    self.entity = entity
    self.container = container
    self.report = report
    self.writer = writer
    key = try entity.entity.requireKey()
  }

  mutating func fill() throws {
    rows.removeAll(keepingCapacity: true)
    while rows.count < request.chunkSize {
      var row = BatchInsertRequest<Model>.Row()
      if try request.fill(&row) {
        isDone = true
        return
      }
      rows.append(try self.row(of: row))
    }
  }

  private func row(of row: BatchInsertRequest<Model>.Row) throws(BatchError) -> Row {
    var result = Row()
    for assignment in row.assignments {
      let (name, column, value) = try assignment.resolved(
        for: entity,
        in: container,
        lookingUpIn: nil
      )
      let slot = entity.slot(ofColumn: column)
      guard let slot, !entity.generatedSlots.contains(slot), entity.concrete?.slot != slot else {
        throw BatchError(
          .immutableAttribute,
          "attribute \(name.quotedForMessage) cannot be set",
          at: entity.entity.name
        )
      }
      guard case .constant(let constant) = value else { continue }
      // Under the name that the key itself uses, which may differ in case from that in the mapping.
      let part = entity.keySlots.firstIndex(of: slot)
      result.columns[part.map { key.columns[$0] } ?? entity.columns[slot]] = constant
      if part == nil { result.attributes.append(name) }
    }
    if let concrete = entity.concrete,
      let value = concrete.names.first(where: { $0.value == entity.entity.name })?.key
    {
      result.columns[entity.columns[concrete.slot]] = value
    }
    if let version = entity.versionSlot.map({ entity.columns[$0] }), result.columns[version] == nil
    {
      result.columns[version] = .integer(1)
    }
    return result
  }

  /// Writes the rows of the chunk, within the caller's transaction.
  mutating func write() throws(BatchError) {
    var keys = try allocatedKeys()
    for var row in rows {
      for column in key.columns where row.columns[column] ?? .null == .null {
        guard let next = keys.popFirst() else {
          throw BatchError(
            .missingKey,
            "column \(column.quotedForMessage) of the key has no value",
            at: entity.entity.name,
            remedy: "set it"
          )
        }
        row.columns[column] = .integer(next)
      }
      try write(row)
    }
  }

  /// Assigns new keys to the rows that have none.
  private func allocatedKeys() throws(BatchError) -> Range<Int64> {
    guard key.isRowID else { return 0..<0 }
    var taken: [Int64] = []
    var count = 0
    for row in rows {
      switch row.columns[key.columns[0]] ?? .null {
      case .null: count += 1
      case .integer(let key): taken.append(key)
      case .real, .text, .invalidText, .blob: break
      }
    }
    if count == 0 { return 0..<0 }
    return try KeySequence(of: entity.entity).take(count, after: taken, in: writer)
  }

  private func write(_ row: Row) throws(BatchError) {
    switch request.conflict {
    case .error: try insert(row)
    case .ignore, .update:
      do throws(BatchError) {
        try insertOrChange(row)
      } catch {
        // SQLite requires mandatory values before it looks for the row that has them.
        guard error.sqlite?.message.hasPrefix("NOT NULL constraint failed") == true,
          try change(existing: row)
        else { throw error }
      }
    }
  }

  private func insertOrChange(_ row: Row) throws(BatchError) {
    let skipping = " ON CONFLICT DO NOTHING"
    guard case .update = request.conflict else {
      try insert(row, skipping)
      return
    }
    // A statement that inserts or updates does not report which it did, but the history needs to
    // know. So for an existing row, a trigger BEFORE INSERT fires twice.
    if report.tracksHistory, try insert(row, skipping) > 0 { return }
    guard let update = updateClause(row) else {
      if !report.tracksHistory { try insert(row, skipping) }
      return
    }
    let own = entity.entity.condition.map { " WHERE \($0)" } ?? ""
    let kind: HistoryChange.Kind = report.tracksHistory ? .update : .insert
    if try insert(row, update + own, as: kind) == 0, !own.isEmpty { try refuseOther(row) }
  }

  /// Finds the row with the unique values of one that cannot be inserted, and updates it if the
  /// request says so; returns whether there is such a row.
  private func change(existing row: Row) throws(BatchError) -> Bool {
    let table = SQLName.quoted(entity.entity.table)
    let own = entity.entity.condition.map { " AND \($0)" } ?? ""
    let uniques =
      [key.columns.map { (name: $0, collation: "") }]
      + entity.entity.uniqueKeys.map {
        $0.columns.map { (name: $0.name, collation: " COLLATE \(SQLName.quoted($0.collation))") }
      }
    for unique in uniques {
      let values = unique.map { column in
        row.columns.first { SQLName.equal($0.key, column.name) }?.value ?? .null
      }
      if values.contains(.null) { continue }
      let terms = unique.map { "\(SQLName.quoted($0.name)) = ?\($0.collation)" }
      let condition = terms.joined(separator: " AND ") + own
      let found = try writer.prepare("SELECT 1 FROM \(table) WHERE \(condition)")
      for (index, value) in values.enumerated() { try found.bind(value, at: index + 1) }
      guard try found.step() else { continue }
      found.reset()
      let columns = updatedColumns(row)
      guard case .update = request.conflict, !columns.isEmpty else { return true }
      let set =
        columns.map { "\(SQLName.quoted($0)) = ?" } + [entity.versionAssignment].compactMap(\.self)
      let statement = try writer.prepare(
        "UPDATE \(table) SET \(set.joined(separator: ", ")) WHERE \(condition)"
          + report.requested.returning
      )
      let parameters = columns.map { row.columns[$0] ?? .null } + values
      for (index, value) in parameters.enumerated() { try statement.bind(value, at: index + 1) }
      _ = try report.run(
        statement,
        of: report.requested,
        as: report.tracksHistory ? .update : .insert,
        attributes: row.attributes,
        in: writer
      )
      return true
    }
    return false
  }

  /// Inserts a row, and returns the number of rows inserted or updated.
  @discardableResult
  private func insert(
    _ row: Row,
    _ resolution: String = "",
    as kind: HistoryChange.Kind = .insert
  ) throws(BatchError) -> Int {
    let statement = try statement(inserting: row, resolution + report.requested.returning)
    return try report.run(
      statement,
      of: report.requested,
      as: kind,
      attributes: row.attributes,
      in: writer
    )
  }

  private func statement(inserting row: Row, _ rest: String) throws(BatchError) -> Statement {
    let columns = row.columns.keys.sorted()
    let statement = try writer.prepare(
      """
      INSERT INTO \(SQLName.quoted(entity.entity.table)) (\(SQLName.list(columns))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))\(rest)
      """
    )
    for (index, column) in columns.enumerated() {
      try statement.bind(row.columns[column] ?? .null, at: index + 1)
    }
    return statement
  }

  private func updatedColumns(_ row: Row) -> [String] {
    let version = entity.versionSlot.map { entity.columns[$0] }
    let concrete = entity.concrete.map { entity.columns[$0.slot] }
    return row.columns.keys.sorted().filter { column in
      column != version && column != concrete
        && !key.columns.contains { SQLName.equal($0, column) }
    }
  }

  /// The SQL to give an existing row the values of the new one; nil if there are none.
  private func updateClause(_ row: Row) -> String? {
    let set = updatedColumns(row)
      .map { "\(SQLName.quoted($0)) = excluded.\(SQLName.quoted($0))" }
    if set.isEmpty { return nil }
    let all = set + [entity.versionAssignment].compactMap(\.self)
    return " ON CONFLICT DO UPDATE SET \(all.joined(separator: ", "))"
  }

  /// Refuses a row if one of another entity exists; the chunk is rolled back.
  private func refuseOther(_ row: Row) throws(BatchError) {
    guard let concrete = entity.concrete else { return }
    // An update without any change finds the row, whichever constraint was violated.
    let column = SQLName.quoted(entity.columns[concrete.slot])
    let columns = SQLName.list(key.columns + [entity.columns[concrete.slot]])
    let statement = try statement(
      inserting: row,
      " ON CONFLICT DO UPDATE SET \(column) = \(column) RETURNING \(columns)"
    )
    guard try statement.step() else { return }
    let value = statement.value(at: key.columns.count)
    // A trigger may have skipped the update of a row of the same entity.
    if concrete.names[value] != nil { return }
    let name = container.entities[entity.store].values.lazy
      .filter { SQLName.equal($0.entity.table, entity.entity.table) }
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
