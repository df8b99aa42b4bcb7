import BatchIdentifiers
import BatchJobs
import BatchPlatform
import BatchRuns

extension JobPlan {
  /// The increment that a run which begins now exports, and what an operator should know about it.
  ///
  /// Reads the smallest and the largest cursor and counts rows without one, all of which an index finds. Rows after
  /// the beginning of the increment are read if their cursors are texts of times.
  static func increment(
    _ start: IncrementStart,
    over query: IdentifierQuery,
    isCoreData: Bool,
    in connection: Connection
  ) throws(BatchError) -> (Increment, warnings: [String]) {
    var start = start
    let attribute = try query.entity.requireAttribute(named: start.since.column)
    let rows = CursorRows(query: query, cursor: attribute.column, connection: connection)
    start.note(withoutCursor: try rows.countWithout())
    guard let smallest = try rows.first("ORDER BY \(rows.name)")?.cursor,
      let largest = try rows.first("ORDER BY \(rows.name) DESC")?.cursor
    else { return (start.increment(to: nil), start.warnings) }
    try start.refuseMixture(smallest, largest)
    if case .time(let lag) = start.since.lag {
      let form = try form(of: smallest, largest, start, isCoreData: isCoreData, in: rows)
      let now = Int64((Date.now.timeIntervalSince1970 * 1_000_000).rounded(.down))
      let moment = form.value(at: now - Int64(lag / .microseconds(1)))
      return (try start.increment(before: moment), start.warnings)
    }
    if case .text = CursorForm(largest, isCoreData: isCoreData) {
      throw start.timeWithoutLag(largest)
    }
    // Only the database knows the order of its collations.
    let behind = start.increment(to: nil).beginning((rows.name, ""), rows.key)
    let last = try rows.first(rows.inReverse, where: behind?.sql, behind?.values ?? [:])
    if last == nil, let bound = start.bound, largest != bound.cursor, !bound.key.isEmpty {
      start.noteLostEnd(largest: largest)
    }
    return (try start.increment(upTo: last), start.warnings)
  }

  /// The form of all times that the increment may have.
  private static func form(
    of smallest: KeyComponent,
    _ largest: KeyComponent,
    _ start: IncrementStart,
    isCoreData: Bool,
    in rows: CursorRows
  ) throws(BatchError) -> CursorForm {
    let form = try start.form(of: smallest, largest, isCoreData: isCoreData)
    // Between the two, texts may have other forms. Whatever the form, a time that no increment has yet begins with
    // the day on which the last one ended, or a later one.
    guard let condition = form.condition(on: rows.name) else { return form }
    var since: (sql: String, values: [String: KeyComponent]) = ("", [:])
    if case .text(let text)? = start.bound?.cursor {
      since = (
        "\(rows.name) >= :_since_from0 AND ", ["_since_from0": .text(String(text.prefix(10)))]
      )
    }
    let other = try rows.first("", where: "\(since.sql)NOT (\(condition))", since.values)
    if let other { throw start.invalid("are times in different forms", other.cursor, largest) }
    return form
  }
}

extension Increment {
  /// The condition that a row is in the range, whose values join those of the job's parameters.
  func range(
    of query: IdentifierQuery,
    in connection: Connection,
    _ parameters: inout [String: SQLValue]
  ) throws(BatchError) -> Condition {
    let cursor = try query.entity.requireAttribute(named: column).column
    let range = condition(
      (SQLName.standard(cursor), ""),
      query.key.columns.map { (SQLName.standard($0), "") }
    )
    for (name, value) in range.values { parameters[name] = SQLValue(value) }
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: query.entity,
      parameters: parameters.keys
    )
    return try compiler.condition(SQLExpression(range.sql))
  }
}

/// The rows of a job that have a cursor.
private struct CursorRows {
  let query: IdentifierQuery
  let name: String
  let key: [(name: String, cast: String)]
  private let connection: Connection

  init(query: IdentifierQuery, cursor: String, connection: Connection) {
    self.query = query
    name = SQLName.quoted(cursor)
    key = query.key.columns.map { (SQLName.quoted($0), "") }
    self.connection = connection
  }

  /// The order that has the last row first.
  var inReverse: String {
    "ORDER BY " + ([name] + key.map(\.name)).map { "\($0) DESC" }.joined(separator: ", ")
  }

  /// The first row in an order, of those that also satisfy a condition.
  func first(
    _ order: String,
    where condition: String? = nil,
    _ values: [String: KeyComponent] = [:]
  ) throws(BatchError) -> Increment.Bound? {
    let columns = ([name] + key.map(\.name)).joined(separator: ", ")
    let conditions = ["\(name) IS NOT NULL", condition].compactMap(\.self).joined(
      separator: " AND "
    )
    let statement = try query.prepare(
      "SELECT \(columns) FROM \(query.rows(where: conditions)) \(order) LIMIT 1",
      in: connection
    )
    try statement.bind(values.mapValues { SQLValue($0) })
    guard try statement.step() else { return nil }
    let row = (0...key.count).map { KeyComponent(statement.value(at: $0)) }
    return Increment.Bound(row[0], Array(row.dropFirst()))
  }

  func countWithout() throws(BatchError) -> Int {
    let statement = try query.prepare(
      "SELECT count(*) FROM \(query.rows(where: "\(name) IS NULL"))",
      in: connection
    )
    return try statement.step() ? Int(statement.integer(at: 0)) : 0
  }
}

extension JobPlan {
  /// A warning if no index finds the rows of an increment.
  func warningsAboutIncrement(in connection: Connection) throws(BatchError) -> [String] {
    guard let increment, let attribute = entity.attribute(named: increment.column) else {
      return []
    }
    let name = SQLName.quoted(attribute.column)
    let search = "SELECT 1 FROM \(entity.rowSource) WHERE \(name) > ?"
    guard try QueryPlan(of: search, in: connection).scans else { return incrementWarnings }
    var remedy = ""
    if entity.kind == .table {
      remedy = ": \(IndexCandidate(table: entity.table, columns: [attribute.column]).sql)"
    }
    return incrementWarnings + [
      "no index finds rows of \(entity.name.quotedForMessage) by \(attribute.name), so each run reads all of"
        + " them\(remedy)"
    ]
  }
}
