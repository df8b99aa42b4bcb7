public import BatchIdentifiers
import BatchStore

/// The insertion of many rows, one after the other, without objects: Core Data's
/// `NSBatchInsertRequest`.
///
///     var lines = file.lines.makeIterator()
///     let request = BatchInsertRequest<Order> { row in
///       guard let line = lines.next() else { return true }
///       row.set(\.price, to: line.price)
///       return false
///     }
///     let result = try context.execute(request)
///
/// Rows without a value for a column have its default. Integer keys that are rowids are given out
/// where none is set; other keys are set.
public struct BatchInsertRequest<Model: PersistentModel> {
  /// What becomes of a row that breaks a unique constraint.
  public enum Conflict: Sendable {
    /// It is an error.
    case error
    /// The row that is there stays as it is.
    case ignore
    /// The row that is there gets the values that the new one has.
    ///
    /// A row of a sub-entity stays one; one of another entity in the same table is an error.
    case update
  }

  /// A row to be inserted.
  public struct Row {
    fileprivate var assignments: [BatchAssignment<Model>] = []

    /// Sets a property.
    public mutating func set<Property>(_ property: KeyPath<Model, Property>, to value: Property) {
      assignments.append(.set(property, to: value))
    }

    /// Relates an object that was saved, or none: a relationship to one whose column is in the row's table.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to object: Destination?
    ) {
      assignments.append(.set(relationship, to: object))
    }

    /// Relates the object of an identifier.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to identifier: PersistentIdentifier
    ) {
      assignments.append(.set(relationship, to: identifier))
    }

    /// Relates the object of an identifier, or none, by the name of the relationship.
    public mutating func set(relationship name: String, to identifier: PersistentIdentifier?) {
      assignments.append(.set(relationship: name, to: identifier))
    }
  }

  /// What becomes of rows that break a unique constraint.
  public var conflict = Conflict.error
  /// What the result reports.
  public var resultType = BatchResultType.count
  /// How many rows one transaction inserts.
  public var chunkSize = 5_000
  /// Fills a row, or returns true if there are no more.
  let fill: (inout Row) throws -> Bool

  /// An insertion of the rows that a closure fills, until it returns true; that last one is not
  /// inserted.
  public init(_ fill: @escaping (inout Row) throws -> Bool) {
    self.fill = fill
  }

  /// An insertion of a row for each element of a sequence.
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
  /// If a later chunk fails, earlier commits stay. The result counts inserted and updated rows, not
  /// ignored ones.
  ///
  /// - Throws: What the request's closure throws; `BatchError` with code `unknownAttribute`,
  ///   `immutableAttribute` or `missingKey` for a row, `modelTypeMismatch` for one that would update
  ///   a row of another entity, `constraint` for what the database refuses, `readOnly`, `busy`.
  /// - Complexity: A statement for each row; memory for a chunk.
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
      // The caller's closure runs outside of the transaction, which others may be waiting for.
      try insertion.fill()
      try writeChunk(ofStore: entity.store, report) { _ throws(BatchError) in
        try insertion.write()
      }
    }
    return report.finish()
  }
}

/// A batch insertion that is under way.
private struct BatchInsertion<Model: PersistentModel> {
  private(set) var isDone = false
  private let request: BatchInsertRequest<Model>
  private let entity: ModelEntity
  private let container: ModelContainer
  private let report: BatchReport
  private let key: EntityKey
  private let writer: Connection
  /// The rows of the chunk.
  private var rows: [Row] = []

  private struct Row {
    /// The attributes that were set.
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

  /// Has the caller fill the rows of the next chunk.
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
      // Under the key's own name, whatever the case of the letters that the class maps it with.
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

  /// Writes the rows of the chunk, inside a transaction of the caller.
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

  /// New keys for the rows that have none.
  private func allocatedKeys() throws(BatchError) -> Range<Int64> {
    guard key.isRowID else { return 0..<0 }
    var taken: [Int64] = []
    var count = 0
    for row in rows {
      switch row.columns[key.columns[0]] ?? .null {
      case .null: count += 1
      case .integer(let key): taken.append(key)
      case .real, .text, .blob: break
      }
    }
    if count == 0 { return 0..<0 }
    return try KeySequence(of: entity.entity).take(count, after: taken, in: writer)
  }

  private func write(_ row: Row) throws(BatchError) {
    switch request.conflict {
    case .error: try insert(row)
    case .ignore: try insert(row, " ON CONFLICT DO NOTHING")
    case .update:
      // Of a statement that inserts or updates nobody could tell the history which it did. So a
      // trigger BEFORE INSERT sees a row that is there already twice.
      if report.tracksHistory, try insert(row, " ON CONFLICT DO NOTHING") > 0 { return }
      guard let update = updateClause(row) else {
        if !report.tracksHistory { try insert(row, " ON CONFLICT DO NOTHING") }
        return
      }
      let own = entity.entity.condition.map { " WHERE \($0)" } ?? ""
      let kind: HistoryChange.Kind = report.tracksHistory ? .update : .insert
      if try insert(row, update + own, as: kind) == 0, !own.isEmpty { try refuseOther(row) }
    }
  }

  /// Inserts a row.
  ///
  /// - Returns: How many rows were inserted or updated.
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

  /// What gives a row that is there the values of the new one; nil if there are none to give.
  private func updateClause(_ row: Row) -> String? {
    let version = entity.versionSlot.map { entity.columns[$0] }
    let concrete = entity.concrete.map { entity.columns[$0.slot] }
    let set = row.columns.keys.sorted().filter { column in
      column != version && column != concrete
        && !key.columns.contains { SQLName.equal($0, column) }
    }.map { "\(SQLName.quoted($0)) = excluded.\(SQLName.quoted($0))" }
    if set.isEmpty { return nil }
    let all = set + [entity.versionAssignment].compactMap(\.self)
    return " ON CONFLICT DO UPDATE SET \(all.joined(separator: ", "))"
  }

  /// Refuses a row for which there is one of another entity; the chunk is rolled back.
  private func refuseOther(_ row: Row) throws(BatchError) {
    guard let concrete = entity.concrete else { return }
    // An update of nothing finds the row by whatever constraint it was.
    let column = SQLName.quoted(entity.columns[concrete.slot])
    let columns = SQLName.list(key.columns + [entity.columns[concrete.slot]])
    let statement = try statement(
      inserting: row,
      " ON CONFLICT DO UPDATE SET \(column) = \(column) RETURNING \(columns)"
    )
    guard try statement.step() else { return }
    let value = statement.value(at: key.columns.count)
    // A trigger may have left out the update of a row of the entity's own.
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
