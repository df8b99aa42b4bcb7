package import BatchIdentifiers

/// A fetch request resolved against the schema: the SQL that fetches identifiers.
package struct IdentifierQuery: Sendable {
  package let entity: Entity
  package let key: EntityKey
  /// ` WHERE …`, or nothing.
  let condition: String
  private let order: String
  /// The order without the key, or nothing.
  private let termOrder: String
  private var window: Window
  /// What the caller asked of the rows, beside what makes them the entity's.
  private let predicate: String?
  private let parameters: Parameters
  /// Whether this is a part of another query, whose keys are checked there.
  private var isPart = false
  /// Whether the condition asks for rows beside the one that it is about.
  package let readsRelatedRows: Bool

  /// Which of the rows that satisfy the condition.
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

  /// Resolves and checks a request, and compiles it, against a connection; runs nothing.
  ///
  /// - Throws: `BatchError` that names the entity, attribute or expression that is wrong.
  package init(
    _ request: FetchRequest,
    schema: Schema,
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
      order.append(SQLName.quoted(attribute.column) + (term.isDescending ? " DESC" : ""))
    }
    try self.init(
      entity,
      where: request.predicate.map { SQLText($0.sql) },
      orderBy: order,
      Window(limit: request.limit),
      .named(request.parameters),
      readsRelatedRows: true
    )
    _ = try connection.prepare(sql)
  }

  /// A query whose condition and order were made here, with numbered parameters.
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

  /// The query for so many of the first rows that it selects.
  package func first(_ count: Int) -> IdentifierQuery {
    var query = self
    query.window.limit = min(count, window.limit ?? count)
    query.isPart = true
    return query
  }

  /// Fetches the identifiers straight into a list; to be called inside one read transaction.
  ///
  /// - Complexity: O(*n*) time; memory for the compressed list alone.
  package func fetch(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList {
    if !isPart { try refuseDuplicates(in: connection) }
    if key.prefersIntegers, let list = try fetchIntegers(in: connection, store: store) {
      return list
    }
    return try fetchEncoded(in: connection, store: store)
  }

  /// The list of all rows of a table without gaps between its rowids; nil for others.
  ///
  /// To be called inside one read transaction. To count rows SQLite looks at the pages of the smallest index and not into its entries, which
  /// takes a tenth of the time. So a table that only grew is not read at all. Some rowids are looked
  /// up before, since most tables with gaps miss one of them, and need not be counted in vain.
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

  /// A smaller span of rowids is fetched in no time.
  private static let smallestUnbroken = 10_000

  /// Whether this asks for rowids in ascending order, of all rows that satisfy its condition.
  var isOfRowIDs: Bool {
    key.origin == .rowID && order == SQLName.quoted(key.columns[0]) && window.isWhole
  }

  /// The least and the greatest rowid of the table; nil if it has no rows.
  func boundsOfRowIDs(in connection: Connection) throws(BatchError) -> ClosedRange<Int64>? {
    let column = SQLName.quoted(key.columns[0])
    let table = SQLName.quoted(entity.table)
    guard case .integer(let least) = try connection.value("SELECT min(\(column)) FROM \(table)"),
      case .integer(let greatest) = try connection.value("SELECT max(\(column)) FROM \(table)")
    else { return nil }
    guard least <= greatest else { throw outOfOrder(in: connection) }
    return least...greatest
  }

  /// The rowids from the least to the greatest, if the rows of a part of them can be fetched
  /// without looking at others; nil otherwise, and for a table without rows.
  func rangeOfRowIDs(in connection: Connection) throws(BatchError) -> ClosedRange<Int64>? {
    guard isOfRowIDs, case .named = parameters else { return nil }
    let plan = try connection.explain(rangeSQL)
    guard plan.count == 1, plan[0].contains("rowid>? AND rowid<?") else { return nil }
    return try boundsOfRowIDs(in: connection)
  }

  /// Fetches the identifiers of rows whose rowid is in a range.
  func fetch(
    _ range: ClosedRange<Int64>,
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList {
    let statement = try connection.prepare(rangeSQL)
    if case .named(var parameters) = parameters {
      parameters["_batch_first"] = .integer(range.lowerBound)
      parameters["_batch_last"] = .integer(range.upperBound)
      try statement.bind(parameters)
    }
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer
    )
    while try statement.step() {
      let rowID = statement.integer(at: 0)
      guard range.contains(rowID) else { throw outOfOrder(in: connection) }
      builder.append(rowID)
    }
    let list = builder.finish()
    guard list.isSorted else { throw outOfOrder(in: connection) }
    return list
  }

  /// The error about rowids that do not ascend, which is how SQLite finds them.
  func outOfOrder(in connection: Connection) -> BatchError {
    BatchError(
      .notADatabase,
      "the database is damaged: the rowids of \"\(entity.name)\" are not in their order",
      at: connection.path,
      remedy: "check it with PRAGMA integrity_check and restore a backup"
    )
  }

  private var rangeSQL: String {
    let column = SQLName.quoted(key.columns[0])
    let range = "\(column) BETWEEN :_batch_first AND :_batch_last"
    let conditions = condition.isEmpty ? " WHERE \(range)" : "\(condition) AND \(range)"
    return "SELECT \(column) FROM \(entity.rowSource)\(conditions) ORDER BY \(column)"
  }

  /// How many rows satisfy the request, without their identifiers.
  package func count(in connection: Connection) throws(BatchError) -> Int {
    let statement = try connection.prepare(
      window.isWhole
        ? "SELECT count(*) FROM \(entity.rowSource)\(condition)"
        : "SELECT count(*) FROM (SELECT 1 FROM \(entity.rowSource)\(condition)\(window.sql))"
    )
    try bind(to: statement)
    return try statement.step() ? Int(statement.integer(at: 0)) : 0
  }

  /// How many rows the entity has, whether they satisfy the request or not.
  package func countAll(in connection: Connection) throws(BatchError) -> Int {
    let statement = try connection.prepare("SELECT count(*) FROM \(entity.rowSource)")
    try bind(to: statement)
    return try statement.step() ? Int(statement.integer(at: 0)) : 0
  }

  /// SQLite's plan for the fetch.
  package func queryPlan(in connection: Connection) throws(BatchError) -> QueryPlan {
    try QueryPlan(of: sql, in: connection)
  }

  /// Whether rows are found by their keys without looking at others.
  package var findsRowsByKey: Bool {
    switch key.origin {
    case .rowID, .primaryKey, .uniqueIndex: true
    case .viewOrigin, .wholeRow, .declared: false
    }
  }

  /// How long it takes to apply the condition again to the rows of some keys.
  ///
  /// - Returns: The time; nil if it is longer than `limit`.
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

  /// Reads something other than the key of rows found by their keys.
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

  /// Reads something other than the key of the rows that satisfy the request, or of the first.
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

  /// The table and ` WHERE …` for the rows of some keys that satisfy the condition, for statements
  /// that change them, with ` SET …` in between where they update.
  ///
  /// The condition comes before the keys, so that the names of their places take the numbers behind
  /// its own. Rowids are found by themselves, in their order, even where the condition has an index;
  /// other keys are found as they are stored, as an object is by its identifier.
  package func rows(of keys: ChunkKeys, set: String = "") -> String {
    var found = keys.condition(key: key)
    for (index, column) in key.columns.enumerated() where !keys.isRange {
      let (name, place) = (SQLName.quoted(column), "@key\(index)")
      found += " AND +\(name) COLLATE BINARY IS \(place) AND typeof(\(name)) IS typeof(\(place))"
    }
    let table = SQLName.quoted(entity.table) + (keys.isRange ? " NOT INDEXED" : "")
    return "\(table)\(set)\(condition.isEmpty ? " WHERE \(found)" : "\(condition) AND \(found)")"
  }

  /// How many numbers of places the condition has taken.
  package var parameterCount: Int {
    switch parameters {
    case .named(let values): values.count
    case .numbered(let values): values.count
    }
  }

  /// Fills the places of the condition.
  package func bind(to statement: borrowing Statement) throws(BatchError) {
    switch parameters {
    case .named(let values): try statement.bind(values)
    // An order may need more parameters, and its own come last.
    case .numbered(let values): try statement.bind(Array(values.prefix(statement.parameterCount)))
    }
  }

  /// Reads columns of the rows that satisfy the request, each combination of values once.
  ///
  /// Texts are the same if their bytes are, whatever collation their column was declared with.
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

  /// The statement that computes something over groups of the rows that satisfy the request; without
  /// keys, all rows are one group.
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

  /// Prepares a statement about the rows that satisfy the request, with the values that the request has.
  package func prepare(
    _ sql: String,
    in connection: Connection
  ) throws(BatchError) -> Statement {
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    return statement
  }

  /// The list of integer keys, or nil if a key turned out not to be an integer.
  private func fetchIntegers(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList? {
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer
    )
    while try statement.step() {
      // SQLite keeps nothing but integers as rowids, and need not be asked.
      guard key.origin == .rowID || statement.isInteger(at: 0) else { return nil }
      builder.append(statement.integer(at: 0))
    }
    return builder.finish()
  }

  private func fetchEncoded(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList {
    let statement = try connection.prepare(sql)
    try bind(to: statement)
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .encoded
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
    return builder.finish()
  }

  /// The error about a row whose key no list can hold.
  private func tooLong(_ byteCount: Int) -> BatchError {
    let columns = key.columns.map(SQLName.quoted)
    let length = columns.map { "coalesce(length(CAST(\($0) AS BLOB)), 0)" }
    return BatchError(
      .unstableKey,
      "a row of \"\(entity.name)\" has a key of \(byteCount) bytes in"
        + " \(columns.joined(separator: ", ")), and \(EncodedKey.maximumByteCount) are the most",
      remedy: "leave such rows out with \(length.joined(separator: " + ")) < 500000"
    )
  }

  /// Refuses a key that the database does not itself keep unique, if a selected row shares one
  /// with another row, selected or not: the key alone finds the rows again.
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
  /// The key of columns that a job names.
  fileprivate func declaredKey(_ names: [String]) throws(BatchError) -> EntityKey {
    var columns: [String] = []
    for name in names { columns.append(try requireAttribute(named: name).column) }
    return EntityKey(
      columns: columns,
      origin: .declared,
      prefersIntegers: kind == .query && columns.count == 1
    )
  }
}
