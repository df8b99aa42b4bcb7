package import BatchEngine
package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in list order.
package struct RowExport: Sendable {
  private let entity: Entity
  private let key: EntityKey
  package let columns: [String]
  /// The columns whose 1 and 0 mean true and false.
  private let booleans: Set<Int>
  private let format: RowFormat
  private let invalidText: InvalidText
  private let predicate: SQLExpression?
  private let recheck: Recheck
  private let parameters: [String: SQLValue]
  /// The source of rows instead of the entity; nil if rows are looked up.
  private var copy: RowCopy?
  /// What the schema must be like; nil for anything.
  private var expected: ExpectedSchema?

  /// Makes an export of some attributes of an entity's rows; the predicate must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    attributes: [Attribute],
    format: RowFormat,
    invalidText: InvalidText = .replace,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue]
  ) {
    self.entity = entity
    self.key = key
    self.columns = attributes.map(\.column)
    booleans = Set(
      attributes.indices.filter {
        entity.kind == .model && attributes[$0].type == CoreDataType.booleanDeclaration
      }
    )
    self.format = format
    self.invalidText = invalidText
    self.predicate = recheck == .off ? nil : predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  /// The same export, which fails if the schema is not as expected.
  package func expecting(_ schema: ExpectedSchema) -> RowExport {
    var export = self
    export.expected = schema
    return export
  }

  /// The beginning of a file, before any row.
  package var header: [UInt8] { RowEncoder(format: format, columns: columns).header }

  /// The statement that reads rows by keys of this kind.
  package func sql(for keys: ChunkKeys) -> String { sql(for: keys, of: entity) }

  private func sql(for keys: ChunkKeys, of entity: Entity) -> String {
    // The predicate is a column instead of a condition, to tell rows that no longer match from rows
    // that are gone. IS TRUE is the truth of a WHERE, where 0.5 is true.
    let check = predicate.map { ", \($0.sql) IS TRUE" } ?? ""
    // The key tells the rows of a range apart.
    let rowID = if keys.isRange { ", \(keys.rowID(of: key))" } else { "" }
    let order = if keys.isRange { " ORDER BY \(keys.order(of: key))" } else { "" }
    return """
      SELECT \(SQLName.list(columns))\(check)\(rowID) FROM \(entity.rowSource) \
      WHERE \(keys.condition(key: key))\(order)
      """
  }

  /// The lines of one chunk, read in one transaction.
  ///
  /// A part that fails is read again in halves, down to single identifiers, as in a change.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - policy: What happens to the lines if an identifier fails.
  ///   - byteLimit: How many bytes to hold; the row that reaches this is the last.
  ///   - connection: The worker's connection.
  /// - Returns: The lines, in list order, of as many of the first identifiers as the outcomes
  ///   count.
  /// - Throws: The error of the row that exceeds the allowed failures, or one that concerns more
  ///   than a row.
  package func lines(
    for keys: ChunkKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> ExportedLines {
    // Copying rows, and measuring whether that is needed, compile statements before the transaction.
    try expected?.verify(in: connection)
    let entity = try prepareRows(in: connection)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      try expected?.verify(in: connection)
      var lines = ExportedLines()
      var bisection = Bisection(0..<keys.identifierCount, policy)
      while lines.bytes.count < byteLimit, let part = bisection.next() {
        let start = lines.bytes.count
        do throws(BatchError) {
          let partKeys = part.count == keys.identifierCount ? keys : keys.part(part)
          let read = try append(
            partKeys,
            of: entity,
            to: &lines.bytes,
            upTo: byteLimit,
            in: connection
          )
          lines.succeeded += read.reached - read.passedOver.counts.passedOver
          lines.passedOver.formUnion(read.passedOver, from: part.lowerBound)
          lines.invalidTexts += read.invalidTexts
        } catch {
          guard error.isAboutRows else { throw error }
          lines.bytes.removeLast(lines.bytes.count - start)
          try bisection.failed(part, error) { $0.about(keys.key(at: part.lowerBound)) }
        }
      }
      lines.failures = bisection.failures.map { ($0.position, $0.error) }
      return lines
    }
  }

  /// Appends the lines of some keys, up to the number of bytes to hold.
  ///
  /// - Returns: How many identifiers were reached, those of them without a line, and how many texts
  ///   are not UTF-8.
  private func append(
    _ keys: ChunkKeys,
    of entity: Entity,
    to lines: inout [UInt8],
    upTo byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> (reached: Int, passedOver: PassedOver, invalidTexts: Int) {
    let keys = entity.kind == .table ? try keys.located(by: key, in: entity, connection) : keys
    let encoder = RowEncoder(
      format: format,
      columns: columns,
      booleans: booleans,
      invalidText: invalidText
    )
    let statement = try connection.prepare(sql(for: keys, of: entity))
    try statement.bind(parameters)
    var passedOver = PassedOver()
    var invalidTexts = 0
    /// The number of the identifier whose row comes next.
    var next = 0
    let keyColumn = columns.count + (predicate == nil ? 0 : 1)
    try keys.forEachBinding(of: statement, key: key) { numbers throws(BatchError) in
      var numbers = numbers
      while lines.count < byteLimit, try statement.step() {
        let rowID = keys.isRange ? statement.integer(at: keyColumn) : 0
        guard let number = numbers.next(rowID), number >= next else {
          throw BatchError.ambiguousKey(of: entity, key)
        }
        passedOver.vanished.insert(contentsOf: next..<number)
        next = number + 1
        if predicate == nil || statement.integer(at: columns.count) != 0 {
          invalidTexts += try encoder.append(statement, to: &lines)
        } else {
          passedOver.noLongerMatching.insert(number)
        }
      }
    }
    if lines.count < byteLimit {
      passedOver.vanished.insert(contentsOf: next..<keys.identifierCount)
      next = keys.identifierCount
    }
    if !passedOver.noLongerMatching.isEmpty { try recheck.check(passedOver.counts) }
    return (next, passedOver, invalidTexts)
  }
}

// MARK: - Where rows are read from

extension RowExport {
  /// How many steps SQLite may take to find a row: a few rows beside it, such as those of an
  /// aggregate, but not as many as a table has.
  private static let stepsPerRow = 1_000
  /// How many rows are looked up to measure that.
  package static let probedRows = 32

  /// Whether one worker copies rows before they are read.
  package var copiesRows: Bool { copy != nil }

  /// The same export, which first copies rows if finding them by keys is slow.
  ///
  /// - Parameters:
  ///   - keys: Some keys, at most ``probedRows``.
  ///   - connection: A connection to look them up, which takes a few milliseconds at most.
  /// - Returns: The export to run.
  /// - Throws: Errors that concern more than a row.
  package func suited(
    to keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> RowExport {
    var export = self
    export.copy = nil
    switch key.origin {
    case .rowID, .primaryKey, .uniqueIndex: return export
    case .viewOrigin, .wholeRow, .declared: break
    }
    guard try !isFast(keys, in: connection) else { return export }
    // The condition may use any column.
    var columns = key.columns
    columns += (predicate == nil ? self.columns : entity.attributes.map(\.column))
      .filter { column in !key.columns.contains { SQLName.equal($0, column) } }
    export.copy = RowCopy(of: entity, columns: columns, key: key, parameters: parameters)
    return export
  }

  private func isFast(_ keys: ChunkKeys, in connection: Connection) throws(BatchError) -> Bool {
    let count = keys.identifierCount
    let found = try connection.within(steps: count * Self.stepsPerRow) { () throws(BatchError) in
      let statement = try connection.prepare(sql(for: keys))
      try statement.bind(parameters)
      try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
        do throws(BatchError) {
          while try statement.step() {}
        } catch {
          guard error.isAboutRows else { throw error }
        }
      }
      return true
    }
    return found != nil
  }

  /// The entity to read rows from: the copy, made if missing, where there is to be one.
  package func prepareRows(in connection: Connection) throws(BatchError) -> Entity {
    guard let copy, try copy.make(in: connection) else { return entity }
    return copy.entity
  }
}
