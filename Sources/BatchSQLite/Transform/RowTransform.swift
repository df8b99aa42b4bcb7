package import BatchRuns
package import BatchIdentifiers

/// A change whose values are computed outside SQL: workers read rows, a handler computes, and the
/// writer lane sets the results.
package struct RowTransform: Sendable {
  /// Where the values are written, and which rows still match.
  package private(set) var target: BulkChange
  /// Where rows are read: the entity itself, or the view of a Core Data model's entity.
  private let source: Entity
  /// The condition that a row of the source must still satisfy.
  private let condition: SQLExpression?
  let reads: [String]
  let writes: [String]
  let assignments: [BulkChange.Assignment]
  let handler: any RowHandler
  /// What changing a row may affect besides the row.
  ///
  /// If it affects anything, rows are read again before they are changed, with a statement for
  /// each. The run's own changes may have outdated what a worker read, and one statement for all
  /// rows would check `where` before the first change and foreign keys after the last.
  let reach: BulkChange.Reach
  /// Whether each row is set by its own statement, in the order of the list.
  let isOrdered: Bool
  /// Whether rows fail if they lack their computed values after their triggers have run.
  private(set) var isExact = false
  /// The handler's time limit for a chunk; nil if the handler itself limits its time.
  package let timeout: Duration?

  /// Makes a transform of an entity's rows, written to `written` if that is another table.
  ///
  /// - Precondition: The predicate has been checked.
  package init(
    entity: Entity,
    into written: WrittenEntity? = nil,
    key: EntityKey,
    reads: [Attribute],
    writes: [Attribute],
    handler: any RowHandler,
    timeout: Duration? = nil,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue],
    enforcesForeignKeys: Bool,
    ordered isAsked: Bool = false,
    connection: Connection
  ) throws(BatchError) {
    self.reads = reads.map(\.column)
    self.writes = writes.map(\.column)
    self.handler = handler
    self.timeout = timeout
    source = entity
    condition = predicate
    assignments =
      written?.assignments(of: writes)
      ?? writes.enumerated().map { .init(column: $1.column, number: $0) }
    target = BulkChange(
      entity: written?.entity ?? entity,
      key: key,
      action: .assign(assignments),
      predicate: written.flatMap { written in predicate.map(written.expression) } ?? predicate,
      recheck: recheck,
      parameters: parameters
    )
    reach = try target.reach(enforcesForeignKeys: enforcesForeignKeys, in: connection)
    target.orderMatters = try target.dependsOnOrder(
      isAsked,
      enforcesForeignKeys: enforcesForeignKeys,
      in: connection
    )
    isOrdered = isAsked && target.orderMatters
  }

  /// Makes a conflict fail the row despite the table's own conflict clauses.
  package func abortingOnConflict() -> RowTransform {
    var transform = self
    transform.target.abortsOnConflict = true
    return transform
  }

  /// The same transform, in which a conflict fails the row; see
  /// ``BulkChange/failingOnConflict(in:)``.
  package func failingOnConflict(in connection: Connection) throws(BatchError) -> RowTransform {
    var transform = self
    transform.target = try target.failingOnConflict(in: connection)
    return transform
  }

  /// Makes a row fail if it lacks its computed values after its triggers have run.
  package func exactly() -> RowTransform {
    var transform = self
    transform.isExact = true
    return transform
  }

  package func recorded(forRun run: String) -> RowTransform {
    var transform = self
    transform.target = target.recorded(forRun: run)
    return transform
  }

  package func expecting(_ schema: ExpectedSchema) -> RowTransform {
    var transform = self
    transform.target.expected = schema
    return transform
  }

  // MARK: The statements

  /// The statement that reads rows by keys of this form; after the declared columns, it collects
  /// whether a row satisfies `where`, if that is checked again, and the key of a range.
  package func readSQL(for keys: ChunkKeys) -> String {
    var columns = reads.map(SQLName.quoted)
    // As in an export, a column distinguishes rows that no longer satisfy `where` from missing
    // ones.
    if let predicate { columns.append("\(predicate.sql) IS TRUE") }
    if keys.isRange { columns.append(keys.rowID(of: target.key)) }
    // In key order.
    let order = keys.scan(of: target.key)
    return """
      SELECT \(RowCollector.columns(columns)) FROM \(SQLName.quoted(source.table))\(order) \
      WHERE \(keys.condition(key: target.key))
      """
  }

  private var predicate: SQLExpression? { target.recheck == .off ? nil : condition }

  /// Compiles the statements and the triggers they fire; runs nothing.
  package func compile(in connection: Connection) throws(BatchError) {
    _ = try connection.prepare(readSQL(for: .shape(of: target.key)))
    try target.compile(in: connection)
  }

  /// Reads the declared columns of a chunk's rows, in the caller's transaction; stops at the row
  /// whose texts and blobs reach `byteLimit` bytes.
  func read(
    _ keys: ChunkKeys,
    at first: Int,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> ReadRows<ReadKeys> {
    try target.expected?.verify(in: connection)
    let identifiers = keys
    let isTable = source.table == target.entity.table
    let keys =
      isTable ? try identifiers.located(by: target.key, in: target.entity, connection) : identifiers
    let statement = try connection.prepare(readSQL(for: keys))
    try statement.bind(target.parameters)
    let selected = keys.identifierCount
    let isChecked = predicate != nil
    let keyColumn = reads.count + (isChecked ? 1 : 0)
    var values = ValueBlock(columns: keyColumn + (keys.isRange ? 1 : 0), capacity: selected)
    var read = ReadKeys(identifiers)
    if case .located(let located) = keys { read.isRangeOfKeys = located.isRangeOfKeys }
    var rows = ReadRows(columns: reads, keys: read, at: first)
    var reached = selected
    rows.numbers.reserveCapacity(selected)
    let hasRowIDs = keys.isRange && !read.isRangeOfKeys
    if hasRowIDs { rows.marks.reserveCapacity(selected) }
    // The rows that satisfy `where`, usually all of a chunk.
    var matching: [Int] = []
    matching.reserveCapacity(selected)
    try keys.forEachBinding(of: statement, key: target.key) { numbers throws(BatchError) in
      guard reached == selected else { return }
      let found = values.count
      let collected = try connection.collector.collect(
        from: statement,
        into: &values,
        upTo: byteLimit
      )
      if collected == .tooMany { throw BatchError.ambiguousKey(of: target.entity, target.key) }
      var numbers = numbers
      for row in found..<values.count {
        let rowID = keys.isRange ? values.word(row, keyColumn) : 0
        guard let number = numbers.next(rowID) else {
          throw BatchError.ambiguousKey(of: target.entity, target.key)
        }
        if collected == .some { reached = number + 1 }
        if isChecked, values.word(row, reads.count) == 0 {
          rows.notMatching.append(number)
          continue
        }
        matching.append(row)
        rows.numbers.append(number)
        if hasRowIDs { rows.marks.append(rowID) }
      }
    }
    values.keepColumns(reads.count)
    let isWhole = matching.count == values.count && reached == selected
    rows.values = isWhole ? values : values.selecting(matching)
    if reached < selected { rows.keys = read.part(0..<reached) }
    guard rows.count + rows.notMatching.count <= reached else {
      throw BatchError.ambiguousKey(of: target.entity, target.key)
    }
    if !rows.notMatching.isEmpty { try target.recheck.check(rows.passedOver.counts) }
    return rows
  }
}
