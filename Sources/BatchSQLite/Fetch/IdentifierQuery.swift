import BatchRuns
package import BatchIdentifiers

package struct IdentifierQuery: Sendable {
  package let entity: Entity
  package let key: EntityKey
  let condition: String
  private var order: String
  /// The order without the key, or empty.
  private var termOrder: String
  private var window: Window
  /// The caller's condition, without the entity's own.
  private let predicate: String?
  private(set) var predicatePlace: String?
  private let parameters: Parameters
  /// Whether this is a part of another query, which has already checked the keys.
  private var isPart = false
  /// Whether the condition reads other rows than the one it is applied to.
  package let readsRelatedRows: Bool
  /// The schema that the fetch requires; nil to accept any.
  var expected: ExpectedSchema?

  private struct Window {
    var offset = 0
    var limit: Int?

    var isWhole: Bool { offset == 0 && limit == nil }
    var sql: String {
      isWhole ? "" : " LIMIT \(limit ?? -1)\(offset == 0 ? "" : " OFFSET \(offset)")"
    }
  }

  private enum Parameters {
    case named([String: SQLValue])
    case numbered([StatementParameter])
  }

  /// Resolves, checks and compiles a request; runs nothing.
  ///
  /// - Throws: `BatchError` that names the invalid entity, attribute or expression.
  package init(
    _ request: FetchRequest,
    schema: Schema,
    expecting expected: ExpectedSchema? = nil,
    connection: Connection
  ) throws(BatchError) {
    var entity: Entity
    if let query = request.query {
      entity = try QueryCompiler(
        connection: connection,
        schema: schema,
        parameters: request.parameters.keys
      ).entity(of: query)
    } else {
      entity = try schema.entity(named: request.entity)
    }
    if let expected { entity = try expected.limiting(entity, in: connection) }
    if let names = request.key {
      entity = try entity.identified(by: entity.declaredKey(names))
    }
    if let predicate = request.predicate {
      let compiler = ExpressionCompiler(
        connection: connection,
        entity: entity,
        parameters: request.parameters.keys
      )
      try compiler.check(predicate)
    }
    var order: [String] = []
    for term in request.orderBy {
      let attribute = try entity.requireAttribute(named: term.attribute)
      let column = SQLName.quoted(attribute.column)
      let value = term.isByText ? "CAST(\(column) AS TEXT) COLLATE BINARY" : column
      order.append(value + (term.isDescending ? " DESC" : ""))
    }
    try self.init(
      entity,
      where: request.predicate.map { SQLText($0.sql) },
      orderBy: order,
      Window(limit: request.limit),
      .named(request.parameters),
      readsRelatedRows: true
    )
    predicatePlace = request.predicate?.place
    _ = try connection.prepare(sql)
  }

  /// Makes a query with an internal condition and order, whose parameters are numbered.
  package init(
    _ entity: Entity,
    where condition: SQLText?,
    orderBy order: [String] = [],
    limit: Int? = nil,
    offset: Int = 0,
    parameters: [StatementParameter],
    readsRelatedRows: Bool
  ) throws(BatchError) {
    try self.init(
      entity,
      where: condition,
      orderBy: order,
      Window(offset: offset, limit: limit),
      .numbered(parameters),
      readsRelatedRows: readsRelatedRows
    )
  }

  private init(
    _ entity: Entity,
    where predicate: SQLText?,
    orderBy order: [String],
    _ window: Window,
    _ parameters: Parameters,
    readsRelatedRows: Bool
  ) throws(BatchError) {
    for (name, number) in [("limit", window.limit ?? 0), ("offset", window.offset)] where number < 0
    {
      throw BatchError(.invalidSQL, "the \(name) is \(number)", remedy: "give 0 or more, or nil")
    }
    key = try entity.requireKey()
    self.entity = entity
    self.window = window
    self.parameters = parameters
    self.predicate = predicate?.text
    self.readsRelatedRows = readsRelatedRows
    let columns = key.columns.map(SQLName.quoted)
    self.order = (order + columns).joined(separator: ", ")
    termOrder = order.joined(separator: ", ")
    let conditions = [entity.condition.map { SQLText($0) }, predicate].compactMap(\.self)
    condition = conditions.isEmpty ? "" : " WHERE " + SQLText.all(conditions).text
  }

  /// `SELECT key … FROM table WHERE … ORDER BY …`.
  package var sql: String {
    "SELECT \(SQLName.list(key.columns)) FROM \(entity.rowSource)\(condition)"
      + " ORDER BY \(order)\(window.sql)"
  }

  /// The order and the limit as SQL.
  package var orderAndLimit: String { "ORDER BY \(order)\(window.sql)" }

  /// The query in rowid order, unless an order was requested or decides which rows are selected; in
  /// rowid order, the rows of a chunk share pages, whatever their keys are.
  package func inRowIDOrder() -> IdentifierQuery {
    guard let name = key.rowIDName, entity.kind == .table, termOrder.isEmpty, window.isWhole else {
      return self
    }
    var query = self
    query.order = SQLName.quoted(name)
    return query
  }

  package var isOrdered: Bool { !termOrder.isEmpty }

  /// Whether the order decides which rows are selected.
  package var isLimited: Bool { !window.isWhole }

  package func ordered(by terms: [String]) -> IdentifierQuery {
    var query = self
    query.order = (terms + key.columns.map(SQLName.quoted)).joined(separator: ", ")
    query.termOrder = terms.joined(separator: ", ")
    return query
  }

  package func first(_ count: Int) -> IdentifierQuery {
    var query = self
    query.window.limit = min(count, window.limit ?? count)
    query.isPart = true
    return query
  }

  /// Fetches the identifiers directly into a list.
  ///
  /// Must be called inside one read transaction.
  ///
  /// - Complexity: O(*n*) time. Needs memory only for the compressed list.
  package func fetch(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList {
    try fetch(in: connection, store: store, spill: nil).loaded()
  }

  /// Fetches the identifiers, whose blocks go where `spill` says; must be called inside one read
  /// transaction.
  func fetch(
    in connection: Connection,
    store: StoreIdentity,
    spill: BlockSpill?
  ) throws(BatchError) -> PackedIdentifiers {
    if !isPart { try refuseDuplicates(in: connection) }
    if key.prefersIntegers,
      let list = try fetchIntegers(in: connection, store: store, spill: spill)
    {
      return list
    }
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    return try keys(from: statement, store: store, spill: spill)
  }

  /// The list of all rows of a table whose rowids have no gaps; nil for others.
  ///
  /// Must be called inside one read transaction. To count rows, SQLite reads the pages of the
  /// smallest index without their entries, which takes a tenth of the time, so a table that only
  /// grew is not read at all. First looks up a few rowids, since most tables with gaps lack one of
  /// them and need not be counted.
  func fetchUnbroken(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList? {
    guard isOfRowIDs, condition.isEmpty, let bounds = try boundsOfRowIDs(in: connection),
      bounds.span >= Self.smallestUnbroken
    else { return nil }
    let table = SQLName.quoted(entity.table)
    let column = SQLName.quoted(key.columns[0])
    for _ in 0..<64 {
      let rowID = Int64.random(in: bounds)
      let sql = "SELECT 1 FROM \(table) WHERE \(column) = ?"
      guard try connection.value(sql, .integer(rowID)) != nil else { return nil }
    }
    guard case .integer(let count) = try connection.value("SELECT count(*) FROM \(table)"),
      count - 1 == bounds.span
    else { return nil }
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer
    )
    for start in stride(from: bounds.lowerBound, through: bounds.upperBound, by: 4096) {
      let end = bounds.upperBound - start < 4096 ? bounds.upperBound : start + 4095
      builder.append(contentsOf: Array(start...end))
    }
    return builder.finish()
  }

  /// A smaller span of rowids is fast to fetch.
  private static let smallestUnbroken = 10_000

  /// Whether it selects all rows that satisfy its condition, in ascending order of the rowids,
  /// which are the keys.
  var isOfRowIDs: Bool {
    key.origin == .rowID && order == SQLName.quoted(key.columns[0]) && window.isWhole
  }

  private var rowIDColumn: String { SQLName.quoted(key.rowIDName ?? key.columns[0]) }

  /// Whether it selects all rows that satisfy the condition in rowid order, whatever their keys
  /// are.
  private var isInRowIDOrder: Bool {
    (key.isRowID || key.rowIDName != nil) && order == rowIDColumn && window.isWhole
  }

  /// The smallest and the greatest rowid of the table; nil if it has no rows.
  func boundsOfRowIDs(in connection: Connection) throws(BatchError) -> ClosedRange<Int64>? {
    let column = rowIDColumn
    let table = SQLName.quoted(entity.table)
    guard case .integer(let least) = try connection.value("SELECT min(\(column)) FROM \(table)"),
      case .integer(let greatest) = try connection.value("SELECT max(\(column)) FROM \(table)")
    else { return nil }
    guard least <= greatest else { throw outOfOrder(in: connection) }
    return least...greatest
  }

  /// The range of rowids, if a part of it can be fetched without reading rows outside; otherwise
  /// nil, and for an empty table.
  func rangeOfRowIDs(in connection: Connection) throws(BatchError) -> ClosedRange<Int64>? {
    // A column of integers may have other values, which would make all keys another kind.
    guard isInRowIDOrder, isOfRowIDs || !key.prefersIntegers, case .named = parameters else {
      return nil
    }
    let plan = try connection.explain(rangeSQL)
    guard plan.count == 1, plan[0].contains("rowid>? AND rowid<?") else { return nil }
    return try boundsOfRowIDs(in: connection)
  }

  func fetch(
    _ range: ClosedRange<Int64>,
    in connection: Connection,
    store: StoreIdentity,
    spill: BlockSpill?
  ) throws(BatchError) -> PackedIdentifiers {
    let statement = try connection.prepare(rangeSQL)
    if case .named(var parameters) = parameters {
      parameters["_batch_first"] = .integer(range.lowerBound)
      parameters["_batch_last"] = .integer(range.upperBound)
      try statement.bind(parameters)
    }
    guard isOfRowIDs else { return try keys(from: statement, store: store, spill: spill) }
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer,
      spill: spill
    )
    while try statement.step() {
      let rowID = statement.integer(at: 0)
      guard range.contains(rowID) else { throw outOfOrder(in: connection) }
      builder.append(rowID)
    }
    let list = builder.finishPacked()
    guard list.isSorted else { throw outOfOrder(in: connection) }
    return list
  }

  private var rangeSQL: String {
    let column = rowIDColumn
    let range = "\(column) BETWEEN :_batch_first AND :_batch_last"
    let conditions = condition.isEmpty ? " WHERE \(range)" : "\(condition) AND \(range)"
    return """
      SELECT \(SQLName.list(key.columns)) FROM \(entity.rowSource)\(conditions) ORDER BY \(column)
      """
  }

  package func count(in connection: Connection) throws(BatchError) -> Int {
    let statement = try connection.prepare(
      window.isWhole
        ? "SELECT count(*) FROM \(entity.rowSource)\(condition)"
        : "SELECT count(*) FROM (SELECT 1 FROM \(entity.rowSource)\(condition)\(window.sql))"
    )
    try bind(to: statement)
    do throws(BatchError) {
      return try statement.step() ? Int(statement.integer(at: 0)) : 0
    } catch { throw located(error) }
  }

  package func countAll(in connection: Connection) throws(BatchError) -> Int {
    let statement = try connection.prepare("SELECT count(*) FROM \(entity.rowSource)")
    try bind(to: statement)
    return try statement.step() ? Int(statement.integer(at: 0)) : 0
  }

  package func queryPlan(in connection: Connection) throws(BatchError) -> QueryPlan {
    try QueryPlan(of: sql, in: connection)
  }

  /// Whether rows are found by key without reading others.
  package var findsRowsByKey: Bool {
    switch key.origin {
    case .rowID, .primaryKey, .uniqueIndex: true
    case .viewOrigin, .wholeRow, .declared: false
    }
  }

  /// Measures how long it takes to check the condition again for the rows of some keys; nil if
  /// longer than `limit`.
  package func timeToRecheck(
    _ keys: ChunkKeys,
    atMost limit: Duration,
    in connection: Connection
  ) throws(BatchError) -> Duration? {
    let conditions = [keys.condition(key: key), predicate].compactMap(\.self)
    let statement = try connection.prepare(
      "SELECT count(*) FROM \(entity.rowSource) WHERE "
        + conditions.joined(separator: " AND ")
    )
    try bind(to: statement)
    let start = ContinuousClock.now
    return try connection.within(limit) { () throws(BatchError) in
      try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
        _ = try statement.step()
      }
      return start.duration(to: .now)
    }
  }

  func select(
    _ expressions: [String],
    by keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> Statement {
    let statement = try connection.prepare(
      """
      SELECT \(expressions.joined(separator: ", ")) FROM \(entity.rowSource) \
      WHERE \(keys.condition(key: key))
      """
    )
    try bind(to: statement)
    return statement
  }

  /// Reads columns other than the key of the rows that satisfy the request, up to `limit`.
  package func select(
    _ expressions: [String],
    limit: Int? = nil,
    in connection: Connection
  ) throws(BatchError) -> Statement {
    var window = window
    if let limit { window.limit = min(limit, window.limit ?? limit) }
    let statement = try connection.prepare(
      """
      SELECT \(expressions.joined(separator: ", ")) FROM \(entity.rowSource)\
      \(condition) ORDER BY \(order)\(window.sql)
      """
    )
    try bind(to: statement)
    return statement
  }

  /// The table and ` WHERE …` for those rows of some keys that satisfy the condition, for
  /// statements that change them; updates have ` SET …` in between.
  ///
  /// The condition precedes the keys, so that the keys' parameters take the numbers after its own.
  /// Rowids are found in their own order, even if the condition has an index. Other keys are
  /// compared as stored, like an object's identifier.
  package func rows(of keys: ChunkKeys, set: String = "") -> String {
    var found = keys.condition(key: key)
    for (index, column) in key.columns.enumerated() where !keys.isRange {
      let (name, place) = (SQLName.quoted(column), "@key\(index)")
      found += " AND +\(name) COLLATE BINARY IS \(place) AND typeof(\(name)) IS typeof(\(place))"
    }
    let table = SQLName.quoted(entity.table) + (keys.isRange ? " NOT INDEXED" : "")
    return "\(table)\(set)\(condition.isEmpty ? " WHERE \(found)" : "\(condition) AND \(found)")"
  }

  package var parameterCount: Int {
    switch parameters {
    case .named(let values): values.count
    case .numbered(let values): values.count
    }
  }

  package func bind(to statement: borrowing Statement) throws(BatchError) {
    switch parameters {
    case .named(let values): try statement.bind(values)
    // The order's parameters come last, and may be unused here.
    case .numbered(let values): try statement.bind(Array(values.prefix(statement.parameterCount)))
    }
  }

  /// Reads columns of the rows that satisfy the request, without duplicate combinations of values;
  /// texts are equal if their bytes are, whatever the column's collation.
  package func selectDistinct(
    _ columns: [String],
    in connection: Connection
  ) throws(BatchError) -> Statement {
    let order = termOrder.isEmpty ? "" : " ORDER BY \(termOrder)"
    let statement = try connection.prepare(
      """
      SELECT DISTINCT \(columns.map { "\($0) COLLATE BINARY" }.joined(separator: ", ")) \
      FROM \(entity.rowSource)\(condition)\(order)\(window.sql)
      """
    )
    try bind(to: statement)
    return statement
  }

  /// The statement that aggregates groups of the rows that satisfy the request; without keys, all
  /// rows are one group.
  package func groupsSQL(
    _ expressions: [String],
    by keys: [String],
    having condition: String?,
    orderBy order: [String],
    limit: Int?
  ) -> String {
    let rows =
      window.isWhole
      ? "\(entity.rowSource)\(self.condition)"
      : """
      (SELECT * FROM \(entity.rowSource)\(self.condition) ORDER BY \(self.order)\(window.sql)) \
      AS \(SQLName.quoted(entity.table))
      """
    var sql = "SELECT \(expressions.joined(separator: ", ")) FROM \(rows)"
    if !keys.isEmpty { sql += " GROUP BY \(keys.joined(separator: ", "))" }
    if let condition { sql += " HAVING \(condition)" }
    if !order.isEmpty { sql += " ORDER BY \(order.joined(separator: ", "))" }
    if let limit { sql += " LIMIT \(limit)" }
    return sql
  }

  /// The table and ` WHERE …` for the rows that also satisfy another condition.
  func rows(where other: String) -> String {
    "\(entity.rowSource)\(condition)\(condition.isEmpty ? " WHERE" : " AND") \(other)"
  }

  package func prepare(
    _ sql: String,
    in connection: Connection
  ) throws(BatchError) -> Statement {
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    return statement
  }

  /// The list of integer keys; nil if a key is not an integer.
  private func fetchIntegers(
    in connection: Connection,
    store: StoreIdentity,
    spill: BlockSpill?
  ) throws(BatchError) -> PackedIdentifiers? {
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer,
      spill: spill
    )
    while try statement.step() {
      // Rowids are always integers.
      guard key.origin == .rowID || statement.isInteger(at: 0) else { return nil }
      builder.append(statement.integer(at: 0))
    }
    return builder.finishPacked()
  }

  private func keys(
    from statement: borrowing Statement,
    store: StoreIdentity,
    spill: BlockSpill?
  ) throws(BatchError) -> PackedIdentifiers {
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .encoded,
      spill: spill
    )
    var encoder = EncodedKey.Encoder()
    while try statement.step() {
      encoder.removeAll()
      for column in key.columns.indices {
        if statement.isNull(at: column), key.origin == .primaryKey || entity.kind == .query {
          let noun = entity.kind == .query ? "key column" : "primary key column"
          throw BatchError(
            .unstableKey,
            "a row of \"\(entity.name)\" has NULL in its \(noun)"
              + " \"\(key.columns[column])\" and cannot be identified",
            remedy: "leave such rows out with \"\(key.columns[column])\" IS NOT NULL"
          )
        }
        statement.appendKeyComponent(at: column, to: &encoder)
      }
      guard encoder.bytes.count <= EncodedKey.maximumByteCount else {
        throw tooLong(encoder.bytes.count)
      }
      unsafe encoder.bytes.withUnsafeBytes { unsafe builder.append(encoded: $0) }
    }
    return builder.finishPacked()
  }

  /// Refuses a key without a unique constraint if a selected row shares it with another row,
  /// selected or not, since only the key finds the rows again.
  ///
  /// - Complexity: Reads the keys of all rows, and sorts them unless an index does.
  package func refuseDuplicates(in connection: Connection) throws(BatchError) {
    switch key.origin {
    case .rowID, .primaryKey, .uniqueIndex: return
    case .viewOrigin, .wholeRow, .declared: break
    }
    let columns = SQLName.list(key.columns)
    let selected = predicate.map { " AND max(\($0) IS TRUE)" } ?? ""
    let statement = try connection.prepare(
      """
      SELECT 1 FROM \(entity.rowSource) \
      GROUP BY \(columns) HAVING count(*) > 1\(selected) LIMIT 1
      """
    )
    try bind(to: statement)
    guard try statement.step() else { return }
    throw BatchError(
      .unstableKey,
      "two rows of \"\(entity.name)\" have the same \(key.columns.joined(separator: ", "))",
      advice: "name columns in \(.key) that identify a row"
    )
  }
}

extension Entity {
  func declaredKey(_ names: [String]) throws(BatchError) -> EntityKey {
    var columns: [String] = []
    for name in names { columns.append(try requireAttribute(named: name).column) }
    return EntityKey(
      columns: columns,
      origin: .declared,
      prefersIntegers: kind == .query && columns.count == 1
    )
  }
}
