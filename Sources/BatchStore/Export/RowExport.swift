package import BatchEngine
package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in the order of the list.
package struct RowExport: Sendable {
  private let entity: Entity
  private let key: EntityKey
  private let columns: [String]
  /// The columns whose 1 and 0 are true and false.
  private let booleans: Set<Int>
  private let format: RowFormat
  private let predicate: SQLExpression?
  private let recheck: Recheck
  private let parameters: [String: SQLValue]
  /// What rows are read from instead of the entity; nil if they are looked up there.
  private var copy: RowCopy?

  /// An export of some attributes of the rows of `entity`; the predicate must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    attributes: [Attribute],
    format: RowFormat,
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
    self.predicate = recheck == .off ? nil : predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  /// What a file begins with, before any row.
  package var header: [UInt8] { RowEncoder(format: format, columns: columns).header }

  /// The statement that reads rows found by keys of this shape.
  package func sql(for keys: ChunkKeys) -> String { sql(for: keys, of: entity) }

  private func sql(for keys: ChunkKeys, of entity: Entity) -> String {
    // The predicate is a column rather than a condition, which tells rows that no longer satisfy
    // it from rows that are gone. IS TRUE is the truth of a WHERE, where 0.5 is true.
    let check = predicate.map { ", \($0.sql) IS TRUE" } ?? ""
    // The key says which of a range a row is.
    let rowID = if keys.isRange { ", \(SQLName.quoted(key.columns[0]))" } else { "" }
    let order = if keys.isRange { " ORDER BY \(SQLName.quoted(key.columns[0]))" } else { "" }
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
  ///   - policy: What becomes of the lines if an identifier fails.
  ///   - byteLimit: How many bytes are held; the row that comes to as many is the last.
  ///   - connection: The worker's connection.
  /// - Returns: The lines, in the order of the list, of as many of the first identifiers as the
  ///   outcomes are.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  package func lines(
    for keys: ChunkKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> ExportedLines {
    let entity = try prepareRows(in: connection)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      var lines = ExportedLines()
      var bisection = Bisection(0..<keys.identifierCount, policy)
      while lines.bytes.count < byteLimit, let part = bisection.next() {
        let start = lines.bytes.count
        do throws(BatchError) {
          let partKeys = part.count == keys.identifierCount ? keys : keys.part(part)
          let passedOver = try append(
            partKeys,
            of: entity,
            to: &lines.bytes,
            upTo: byteLimit,
            in: connection
          )
          lines.succeeded += passedOver.reached - passedOver.identifiers.counts.passedOver
          lines.passedOver.formUnion(passedOver.identifiers, from: part.lowerBound)
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

  /// Appends the lines of some keys, until there are as many bytes as are held.
  ///
  /// - Returns: How many identifiers were reached, and those of them that have no line.
  private func append(
    _ keys: ChunkKeys,
    of entity: Entity,
    to lines: inout [UInt8],
    upTo byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> (reached: Int, identifiers: PassedOver) {
    let encoder = RowEncoder(format: format, columns: columns, booleans: booleans)
    let statement = try connection.prepare(sql(for: keys, of: entity))
    try statement.bind(parameters)
    var passedOver = PassedOver()
    /// The number of the identifier whose row is to come next.
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
          encoder.append(statement, to: &lines)
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
    return (next, passedOver)
  }
}

// MARK: - Where rows are read from

extension RowExport {
  /// How many steps of SQLite's a row may take to be found: some of them may be of rows beside it,
  /// such as those that an aggregate is made of, but not so many as a table has.
  private static let stepsPerRow = 1_000
  /// How many rows are looked up to know that.
  package static let probedRows = 32

  /// Whether rows are copied before they are read, by one worker.
  package var copiesRows: Bool { copy != nil }

  /// The same export, which copies rows before it reads them if they are not found fast by keys as
  /// these.
  ///
  /// - Parameters:
  ///   - keys: Some keys, ``probedRows`` or fewer.
  ///   - connection: A connection to look them up, which takes some milliseconds at most.
  /// - Returns: The export that is to be run.
  /// - Throws: What is about more than a row.
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
    // The condition may be about any column.
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

  /// The entity whose rows are read: of the copy, which is made where it is missing, if there is one.
  package func prepareRows(in connection: Connection) throws(BatchError) -> Entity {
    guard let copy, try copy.make(in: connection) else { return entity }
    return copy.entity
  }
}
