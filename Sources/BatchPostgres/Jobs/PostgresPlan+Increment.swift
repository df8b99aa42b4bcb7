#if PostgreSQL
package import BatchIdentifiers
import BatchJobs
import BatchRuns

extension PostgresPlan {
  /// The increment that a run which begins now exports, and what an operator should know about it.
  ///
  /// Reads the smallest and the largest cursor and counts rows without one, all of which an index finds.
  static func increment(
    _ start: IncrementStart,
    over rows: CursorRows,
    in session: PostgresSession
  ) throws(BatchError) -> (Increment, warnings: [String]) {
    var start = start
    var options = TransactionOptions(isReadOnly: true, searchPath: rows.query.path)
    options.hasValueSettings = true
    let (without, smallest, largest, last) = try session.transaction(options) {
      [start] () throws(BatchError) in
      let behind = start.increment(to: nil).beginning(rows.cursor.term, rows.key.map(\.term))
      return (
        try rows.countWithout(in: session),
        try rows.first("ORDER BY \(rows.cursor.name)", in: session)?.cursor,
        try rows.first("ORDER BY \(rows.cursor.name) DESC", in: session)?.cursor,
        try rows.first(rows.inReverse, where: behind, in: session)
      )
    }
    start.note(withoutCursor: without)
    if case .time(let lag) = start.since.lag {
      let moment = try moment(lag, start, rows.cursor, smallest, largest, in: session)
      return (try start.increment(before: moment), start.warnings)
    }
    if let largest, rows.cursor.isTime { throw start.timeWithoutLag(largest) }
    if last == nil, let largest, largest != start.bound?.cursor {
      start.noteLostEnd(largest: largest)
    }
    return (try start.increment(upTo: last), start.warnings)
  }

  /// The present time less `lag`, by the server's clock, as the column has it.
  private static func moment(
    _ lag: Duration,
    _ start: IncrementStart,
    _ cursor: CursorRows.Column,
    _ smallest: KeyComponent?,
    _ largest: KeyComponent?,
    in session: PostgresSession
  ) throws(BatchError) -> KeyComponent {
    let time = "(pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1))"
    let seconds = PostgresValue.real(lag / .seconds(1))
    let format = "'YYYY-MM-DD HH24:MI:SS.US'"
    let sql: String
    switch cursor.type {
    case 1184: sql = "pg_catalog.to_char(\(time) AT TIME ZONE 'UTC', \(format)) || '+00'"
    // As rows get it, under the settings of the role.
    case 1114: sql = "pg_catalog.to_char(\(time)::pg_catalog.timestamp, \(format))"
    case 1082: sql = "pg_catalog.to_char(\(time)::pg_catalog.date, 'YYYY-MM-DD')"
    default:
      let now = try session.integer(
        "SELECT (extract(epoch FROM \(time)) * 1000000)::pg_catalog.int8",
        seconds
      )
      guard let smallest, let largest, let now else { return start.bound?.cursor ?? .integer(0) }
      let form = try start.form(
        of: cursor.number(smallest),
        cursor.number(largest),
        isCoreData: false
      )
      return form.value(at: now)
    }
    return .text(try session.text("SELECT \(sql)", seconds) ?? "")
  }
}

/// The rows of a job that have a cursor.
struct CursorRows: Sendable {
  /// A column in SQL.
  struct Column: Sendable {
    /// Its name, with the table's: the bare one would be that of the selected text in an order.
    let name: String
    /// The base type.
    let type: UInt32
    private let column: PostgresKey.Column

    init(_ name: String, of table: PostgresTable) throws(BatchError) {
      let found = try table.requireColumn(named: name)
      self.name = PostgresName.qualified(table.name, found.name)
      type = found.baseType
      column = try PostgresKey.Column(found, of: table)
    }

    var isTime: Bool { [1184, 1114, 1082].contains(type) }

    /// A value of the column, as a number if the column has numbers.
    func number(_ value: KeyComponent) -> KeyComponent {
      guard case .text(let text) = value, [700, 701, 1700].contains(type),
        let number = Double(text)
      else { return value }
      return .real(number)
    }

    /// The column, and how to convert a parameter to its type.
    var term: Increment.Column { (name, "::\(column.type)") }

    /// The value, as an integer, bytes or its text.
    var selection: String {
      switch column.form {
      case .integer: "\(name)::pg_catalog.int8"
      case .blob: name
      case .uuid, .text, .binary, .other: "\(name)::pg_catalog.text"
      }
    }

    func component(_ rows: PostgresResult, _ place: Int) -> KeyComponent {
      switch column.form {
      case .integer: rows.integer(0, place).map(KeyComponent.integer) ?? .null
      case .blob: rows.blob(0, place).map(KeyComponent.blob) ?? .null
      case .uuid, .text, .binary, .other: rows.text(0, place).map(KeyComponent.text) ?? .null
      }
    }
  }

  let query: PostgresQuery
  let condition: CheckedExpression?
  let cursor: Column
  let key: [Column]

  init(
    _ cursor: String,
    of query: PostgresQuery,
    where condition: CheckedExpression?
  ) throws(BatchError) {
    self.query = query
    self.condition = condition
    self.cursor = try Column(cursor, of: query.table)
    var key: [Column] = []
    for column in query.key.columns { key.append(try Column(column.name, of: query.table)) }
    self.key = key
  }

  /// The order that has the last row first.
  var inReverse: String {
    "ORDER BY " + ([cursor] + key).map { "\($0.name) DESC" }.joined(separator: ", ")
  }

  /// The first row in an order, of those that also satisfy other terms.
  func first(
    _ order: String,
    where terms: Increment.Terms? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> Increment.Bound? {
    let columns = [cursor] + key
    let selected = columns.map(\.selection).joined(separator: ", ")
    let (sql, values) = rows(and: "\(cursor.name) IS NOT NULL", terms)
    let found = try session.execute("SELECT \(selected) FROM \(sql) \(order) LIMIT 1", values)
    guard found.count > 0 else { return nil }
    let row = columns.enumerated().map { $1.component(found, $0) }
    return Increment.Bound(row[0], Array(row.dropFirst()))
  }

  func countWithout(in session: PostgresSession) throws(BatchError) -> Int {
    let (sql, values) = rows(and: "\(cursor.name) IS NULL", nil)
    return Int(try session.execute("SELECT count(*) FROM \(sql)", values).integer(0, 0) ?? 0)
  }

  private func rows(and other: String, _ terms: Increment.Terms?) -> (String, [PostgresValue]) {
    var values = query.parameters.values
    var conditions = [condition?.sql(query.parameters, .place), other].compactMap(\.self)
    if var sql = terms?.sql {
      for (name, value) in terms?.values ?? [:] {
        values.append(PostgresValue(value))
        sql = sql.replacing(
          ":\(name)::",
          with: "$\(values.count)::\(PostgresParameters.type(of: values[values.count - 1]))::"
        )
      }
      conditions.append(sql)
    }
    return ("\(query.table.sql) WHERE \(conditions.joined(separator: " AND "))", values)
  }
}

extension PostgresValue {
  init(_ component: KeyComponent) {
    switch component {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let text): self = .text(text)
    case .blob(let bytes), .invalidText(let bytes): self = .blob(bytes)
    }
  }
}

extension PostgresPlan {
  /// The increment of an export of the log of changes, and its rows; nil for any other job.
  static func changes(
    _ job: Job,
    _ parameters: ParameterValues,
    of run: RunIdentity,
    in table: PostgresTable,
    _ session: PostgresSession
  ) throws(BatchError) -> (Increment, PostgresTable)? {
    guard job.source.changes != nil else { return nil }
    return try located(at: job.place(of: .changes)) { () throws(BatchError) in
      let tracked = try PostgresTrackedTable(table)
      let log = try session.transaction(TransactionOptions(isReadOnly: true)) {
        () throws(BatchError) in try tracked.log(in: session)
      }
      let increment = try log.increment(of: job, parameters, for: run)
      return (increment, tracked.rows(of: increment))
    }
  }

  /// Notes from where on the job needs the log of changes, if it exports that.
  package func enterIncrement(in session: PostgresSession) throws(BatchError) {
    guard job.source.changes != nil, let increment else { return }
    let table = try session.transaction(TransactionOptions(isReadOnly: true)) {
      () throws(BatchError) in try PostgresTable(named: job.source.entity, in: session)
    }
    try PostgresTrackedTable(table).enter(job.name, increment, in: session)
  }

  /// A warning if no index finds the rows of an increment.
  var warningsAboutIncrement: [String] {
    guard let since = job.source.since, table.kind == .table || table.kind == .partitionedTable,
      let column = table.columns.column(named: since.column)?.name,
      !table.indexes.contains(where: { $0.isValid && $0.columns.first == column })
    else { return [] }
    return [
      "no index finds rows of \(table.title.quotedForMessage) by \(column), so each run reads all of them"
    ]
  }
}
#endif
