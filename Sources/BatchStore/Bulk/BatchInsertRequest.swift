import BatchIdentifiers

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
    case update
  }

  /// A row to be inserted.
  public struct Row {
    fileprivate var assignments: [BatchAssignment<Model>] = []

    /// Sets a property.
    public mutating func set<Property>(_ property: KeyPath<Model, Property>, to value: Property) {
      assignments.append(.set(property, to: value))
    }
  }

  /// What becomes of rows that break a unique constraint.
  public var conflict = Conflict.error
  /// What the result tells.
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
  /// Inserts rows a chunk at a time, each in a transaction of its own.
  ///
  /// What was committed stays so if a later chunk fails. The result counts rows that were inserted
  /// or updated, and not those that were ignored.
  ///
  /// - Throws: What the request's closure throws; `BatchError` with code `unknownAttribute`,
  ///   `immutableAttribute` or `missingKey` for a row, `constraint` for what the database refuses,
  ///   `readOnly`, `busy`.
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
    var insertion = try BatchInsertion(request, of: entity, in: writer)
    while !insertion.isDone {
      // The caller's closure runs outside of the transaction, which others may be waiting for.
      try insertion.fill()
      try container.turns[entity.store].withLock { _ throws(BatchError) in
        try writer.transaction(.immediate) { () throws(BatchError) in try insertion.write() }
      }
    }
    return insertion.finish()
  }
}

/// A batch insertion that is under way.
private struct BatchInsertion<Model: PersistentModel>: ~Copyable {
  private(set) var isDone = false
  private let request: BatchInsertRequest<Model>
  private let entity: ModelEntity
  private let key: EntityKey
  private let writer: Connection
  /// The rows of the chunk, by column.
  private var rows: [[String: SQLValue]] = []
  private var count = 0
  private var builder: IdentifierListBuilder

  init(
    _ request: BatchInsertRequest<Model>,
    of entity: ModelEntity,
    in writer: Connection
  ) throws(BatchError) {
    self.request = request
    self.entity = entity
    self.writer = writer
    key = try entity.entity.requireKey()
    builder = IdentifierListBuilder(
      storeIdentifier: entity.space.storeIdentifier ?? "",
      entityName: entity.entity.name,
      keyKind: key.isRowID ? .integer : .encoded
    )
  }

  consuming func finish() -> BatchResult {
    let count = count
    let isAsked = request.resultType == .identifiers
    let list = builder.finish()
    return BatchResult(count: count, identifiers: isAsked ? list : nil)
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
      rows.append(try columns(of: row))
    }
  }

  private func columns(
    of row: BatchInsertRequest<Model>.Row
  ) throws(BatchError) -> [String: SQLValue] {
    var columns: [String: SQLValue] = [:]
    for assignment in row.assignments {
      let (attribute, value) = try assignment.resolved()
      let slot = entity.slot(ofColumn: attribute.column)
      guard let slot, !entity.generatedSlots.contains(slot), entity.concrete?.slot != slot else {
        throw BatchError(
          .immutableAttribute,
          "attribute \(attribute.name.quotedForMessage) cannot be set",
          at: entity.entity.name
        )
      }
      if case .constant(let constant) = value { columns[entity.columns[slot]] = constant }
    }
    if let concrete = entity.concrete,
      let value = concrete.names.first(where: { $0.value == entity.entity.name })?.key
    {
      columns[entity.columns[concrete.slot]] = value
    }
    if let version = entity.versionSlot.map({ entity.columns[$0] }), columns[version] == nil {
      columns[version] = .integer(1)
    }
    return columns
  }

  /// Writes the rows of the chunk, inside a transaction of the caller.
  mutating func write() throws(BatchError) {
    var keys = try allocatedKeys()
    for var row in rows {
      for column in key.columns where row[column] ?? .null == .null {
        guard let next = keys.popFirst() else {
          throw BatchError(
            .missingKey,
            "column \(column.quotedForMessage) of the key has no value",
            at: entity.entity.name,
            remedy: "set it"
          )
        }
        row[column] = .integer(next)
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
      switch row[key.columns[0]] ?? .null {
      case .null: count += 1
      case .integer(let key): taken.append(key)
      case .real, .text, .blob: break
      }
    }
    if count == 0 { return 0..<0 }
    return try KeySequence(of: entity.entity).take(count, after: taken, in: writer)
  }

  private mutating func write(_ row: [String: SQLValue]) throws(BatchError) {
    let columns = row.keys.sorted()
    let statement = try writer.prepare(
      """
      INSERT INTO \(SQLName.quoted(entity.entity.table)) (\(SQLName.list(columns))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))\(resolution(of: columns)) \
      RETURNING \(SQLName.list(key.columns))
      """
    )
    for (index, column) in columns.enumerated() {
      try statement.bind(row[column] ?? .null, at: index + 1)
    }
    guard try statement.step() else { return }
    count += 1
    if request.resultType == .identifiers { builder.append(statement.key(of: key)) }
    while try statement.step() {}
  }

  private func resolution(of columns: [String]) -> String {
    switch request.conflict {
    case .error: return ""
    case .ignore: return " ON CONFLICT DO NOTHING"
    case .update:
      let version = entity.versionSlot.map { entity.columns[$0] }
      let table = SQLName.quoted(entity.entity.table)
      let assignments = columns.filter { column in
        !key.columns.contains { SQLName.equal($0, column) }
      }.map { column in
        let name = SQLName.quoted(column)
        return column == version
          ? "\(name) = coalesce(\(table).\(name), 0) + 1" : "\(name) = excluded.\(name)"
      }
      return assignments.isEmpty
        ? " ON CONFLICT DO NOTHING"
        : " ON CONFLICT DO UPDATE SET \(assignments.joined(separator: ", "))"
    }
  }
}
