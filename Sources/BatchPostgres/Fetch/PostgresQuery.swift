#if PostgreSQL
package import BatchIdentifiers
import BatchPlatform

/// Which identifiers to fetch, and in which order: builds the SQL that selects the keys of rows.
package struct PostgresQuery: Sendable {
  /// A term of an order.
  package struct SortTerm: Sendable, Hashable {
    package let column: String
    package let isDescending: Bool
    /// Whether to sort by the bytes of its text, so that rows with equal texts follow one another.
    let isByText: Bool

    package init(_ column: String, descending: Bool = false, byText isByText: Bool = false) {
      self.column = column
      isDescending = descending
      self.isByText = isByText
    }
  }

  package let table: PostgresTable
  package let key: PostgresKey
  package private(set) var parameters: PostgresParameters
  /// Where names in the condition are looked up, as when it was checked.
  package let path: SearchPath
  private var condition: CheckedExpression?
  private let orderBy: [SortTerm]
  private let limit: Int?
  /// The rows of some keys, in their order, instead of those of the condition.
  var selection: Selection?

  /// Rows that were found otherwise: where they are read from, the condition, and their order.
  struct Selection {
    let source: String
    let condition: String
    let order: String
  }

  /// The key breaks ties of `orderBy`.
  ///
  /// The key breaks ties of `orderBy`. If that is empty, the key alone decides, or the rows come as they lie in the table:
  /// see ``isInTableOrder``.
  ///
  /// - Throws: `BatchError` that names the missing column.
  package init(
    table: PostgresTable,
    key: PostgresKey,
    where condition: CheckedExpression? = nil,
    orderBy: [SortTerm] = [],
    limit: Int? = nil,
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath
  ) throws(BatchError) {
    self.table = table
    self.key = key
    self.condition = condition
    self.limit = limit
    self.parameters = parameters
    self.path = path
    var terms: [SortTerm] = []
    for term in orderBy {
      let column = try table.requireColumn(named: term.column)
      terms.append(SortTerm(column.name, descending: term.isDescending, byText: term.isByText))
    }
    self.orderBy = terms
  }

  /// The same query for the rows of another condition.
  func selecting(
    _ condition: CheckedExpression?,
    _ parameters: PostgresParameters
  ) -> PostgresQuery {
    var query = self
    (query.condition, query.parameters) = (condition, parameters)
    return query
  }

  /// The SELECT, with values in the form that the surrounding statement needs.
  ///
  /// - Parameters:
  ///   - form: How it refers to values.
  ///   - range: The integer keys to select; nil for all.
  /// - Returns: A statement without foreign values.
  func sql(_ form: PostgresParameters.Form, in range: ClosedRange<Int64>? = nil) -> String {
    sql(form, selecting: key.columns.map(\.selection), in: range, atMost: limit)
  }

  /// The SELECT of other columns of the same rows; with a limit, of the first rows only.
  func sql(
    _ form: PostgresParameters.Form,
    selecting columns: [String],
    in range: ClosedRange<Int64>? = nil,
    atMost limit: Int?
  ) -> String {
    var sql = "SELECT \(columns.joined(separator: ", ")) FROM "
    if let selection {
      return sql
        + "\(selection.source) WHERE \(selection.condition) ORDER BY \(selection.order)"
    }
    sql += table.sql
    var conditions = condition.map { [$0.sql(parameters, form)] } ?? []
    if let range {
      let name = PostgresName.quoted(key.columns[0].name)
      // With parentheses: a minus sign binds less tightly than a cast.
      conditions.append(
        isInTableOrder
          ? table.condition(ofPages: range)
          : "\(name) BETWEEN (\(range.lowerBound)) AND (\(range.upperBound))"
      )
    }
    if !conditions.isEmpty { sql += " WHERE \(conditions.joined(separator: " AND "))" }
    var terms = orderBy.map {
      PostgresName.qualified(table.name, $0.column) + ($0.isByText ? "::text COLLATE \"C\"" : "")
        + ($0.isDescending ? " DESC" : "")
    }
    // A scan of a range of pages has them in their order.
    if !isInTableOrder {
      terms += key.columns.map { $0.order(in: table) }
    } else if range == nil {
      terms = [PostgresName.qualified(table.name, "ctid")]
    }
    if !terms.isEmpty { sql += " ORDER BY \(terms.joined(separator: ", "))" }
    if let limit = [limit, self.limit].compactMap(\.self).min() { sql += " LIMIT \(limit)" }
    return sql
  }

  /// Whether this selects all rows that satisfy the condition, and no order is asked for.
  private var isInAnyOrder: Bool { orderBy.isEmpty && limit == nil && selection == nil }

  /// Whether rows come in the order in which they lie in the table, so that those of a chunk share pages.
  ///
  /// Integer keys come in their own order, which is that of the table where a sequence has made them, and takes less
  /// room in a list.
  var isInTableOrder: Bool { isInAnyOrder && table.hasPlaces(of: key) }

  /// Ranges that several readers can fetch, of keys or of pages, in order; nil if one reader should fetch everything.
  ///
  /// The transaction keeps the table as it is: a rewrite between the ranges would move rows from one to another.
  func ranges(
    for readers: Int,
    perReader count: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [ClosedRange<Int64>]? {
    if isInTableOrder {
      guard var ranges = try pages(in: session)?.split(into: readers * count),
        let last = ranges.popLast()
      else { return nil }
      return ranges + [last.lowerBound...PostgresTable.lastPage]
    }
    // A smaller span of keys does not justify a second connection.
    guard readers > 1, isInAnyOrder, key.isInteger, let range = try rangeOfKeys(in: session),
      range.span >= 100_000
    else { return nil }
    return range.split(into: readers * count)
  }

  /// The pages of the table, if a scan of a range of them finds the rows; nil otherwise, and for a small table.
  private func pages(in session: PostgresSession) throws(BatchError) -> ClosedRange<Int64>? {
    let count = try session.integer(
      "SELECT pg_relation_size(\(table.oid)::oid) / current_setting('block_size')::bigint"
    )
    guard let count, count >= 1_000, let part = (0...(count - 1)).split(into: 16).first,
      try plan(in: part, session)?.kind == "Tid Range Scan"
    else { return nil }
    return 0...(count - 1)
  }

  /// The least and the greatest key, if an index finds the rows of a key range without reading others; nil otherwise,
  /// and for an empty table.
  private func rangeOfKeys(in session: PostgresSession) throws(BatchError) -> ClosedRange<Int64>? {
    guard let index = key.index else { return nil }
    let name = PostgresName.quoted(key.columns[0].name)
    let bounds = try session.execute("SELECT min(\(name)), max(\(name)) FROM \(table.sql)")
    guard let least = bounds.integer(0, 0), let greatest = bounds.integer(0, 1), least <= greatest
    else { return nil }
    let range = least...greatest
    // A sixteenth, about what a reader gets: for a greater part the server may prefer to scan the table.
    guard let part = range.split(into: 16).first else { return nil }
    let plan = try plan(in: part, session)
    let isByKey = plan?.index == index && plan?.indexCondition != nil
    return isByKey ? range : nil
  }

  private func plan(
    in range: ClosedRange<Int64>,
    _ session: PostgresSession
  ) throws(BatchError) -> Explanation.Plan? {
    let text = try session.text("EXPLAIN (FORMAT JSON) \(sql(.setting, in: range))") ?? ""
    return try? JSONDecoder().decode([Explanation].self, from: Data(text.utf8)).first?.plan
  }

  private struct Explanation: Decodable {
    struct Plan: Decodable {
      let kind: String
      /// The index, if the outermost step uses one.
      let index: String?
      let indexCondition: String?

      enum CodingKeys: String, CodingKey {
        case kind = "Node Type"
        case index = "Index Name"
        case indexCondition = "Index Cond"
      }
    }

    let plan: Plan

    enum CodingKeys: String, CodingKey {
      case plan = "Plan"
    }
  }

  /// Refuses a key that the database does not keep unique if a selected row shares it with another row, selected or
  /// not: rows are found again by their key alone.
  ///
  /// Call it inside a transaction that has the parameters as settings.
  package func refuseDuplicates(in session: PostgresSession) throws(BatchError) {
    guard key.origin == .declared else { return }
    let columns = PostgresName.list(key.columns.map(\.name))
    let selected = condition.map { " AND bool_or(\($0.sql(parameters, .setting)))" } ?? ""
    let found = try session.execute(
      "SELECT 1 FROM \(table.sql) GROUP BY \(columns) HAVING count(*) > 1\(selected) LIMIT 1"
    )
    guard found.count > 0 else { return }
    let whose =
      table.title.quotedForMessage
      + (table.hasChildren ? " and the tables that inherit from it" : "")
    throw BatchError(
      .unstableKey,
      "two rows of \(whose) have the same \(key.columns.map(\.name).joined(separator: ", "))",
      advice: table.hasChildren
        ? "name columns in \(.key) that identify a row, or run a job for each of the tables"
        : "name columns in \(.key) that identify a row"
    )
  }
}
#endif
