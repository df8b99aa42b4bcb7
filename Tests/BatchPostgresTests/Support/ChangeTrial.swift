#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchTestSupport

@testable import BatchPostgres

/// A test's own table, whose selected rows are changed.
struct ChangeTrial {
  let database: TestPostgres
  let session: PostgresSession
  let table: PostgresTable
  let key: PostgresKey
  let list: IdentifierList
  let path: SearchPath
  let parameters: PostgresParameters

  /// Runs a setup script, and selects rows of a table.
  init(
    _ script: String,
    _ name: String = "t",
    where condition: String? = nil,
    key names: [String]? = nil,
    orderBy: [PostgresQuery.SortTerm] = [],
    parameters: [String: PostgresValue] = [:],
    role: String = "postgres"
  ) async throws {
    try await self.init(
      in: TestPostgres(script),
      name,
      where: condition,
      key: names,
      orderBy: orderBy,
      parameters: parameters,
      role: role
    )
  }

  /// Makes each update of a row of `t` take 20 ms.
  static let slowTrigger = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION slow()
    """

  /// Selects rows of a table in the database of another trial.
  static func again(
    _ trial: ChangeTrial,
    _ name: String = "t",
    key names: [String]? = nil,
    role: String = "postgres"
  ) async throws -> ChangeTrial {
    try await ChangeTrial(in: trial.database, name, key: names, role: role)
  }

  /// Selects rows of a table in a database.
  static func of(
    _ database: TestPostgres,
    _ name: String,
    where condition: String? = nil,
    key names: [String]? = nil
  ) async throws -> ChangeTrial {
    try await ChangeTrial(in: database, name, where: condition, key: names)
  }

  private init(
    in database: TestPostgres,
    _ name: String,
    where condition: String? = nil,
    key names: [String]? = nil,
    orderBy: [PostgresQuery.SortTerm] = [],
    parameters: [String: PostgresValue] = [:],
    role: String = "postgres"
  ) async throws {
    self.database = database
    session = try database.session(role: role)
    path = try SearchPath(of: session)
    let session = session
    table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: name, in: session)
    }
    key = try table.requireKey(declared: names)
    self.parameters = PostgresParameters(parameters)
    let compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: self.parameters,
      path: path
    )
    let query = try PostgresQuery(
      table: table,
      key: key,
      where: condition.map { try compiler.condition(PostgresExpression($0)) },
      orderBy: orderBy,
      parameters: self.parameters,
      path: path
    )
    let address = try database.address(role: role)
    list = try await PostgresFetch(query, from: address).run(store: "S").loaded()
  }

  private var compiler: PostgresExpressionCompiler {
    PostgresExpressionCompiler(session: session, table: table, parameters: parameters, path: path)
  }

  /// An update by expressions.
  func update(
    _ values: KeyValuePairs<String, String>,
    if condition: String? = nil,
    isRequired: Bool = false,
    leavesUnchanged: Bool = false
  ) throws -> PostgresChange {
    let assignments = try values.map { column, text in
      try PostgresChange.Assignment(
        of: compiler.assignment(of: PostgresExpression(text), to: column),
        to: column,
        in: table,
        key: key
      )
    }
    return PostgresChange(
      of: table,
      key: key,
      .update(assignments),
      condition: .init(
        try condition.map { try compiler.condition(PostgresExpression($0)) },
        isRequired: isRequired
      ),
      leavesUnchanged: leavesUnchanged,
      parameters: parameters,
      path: path
    )
  }

  /// A change as a run makes it, which expects the schema as it is.
  func expecting(_ change: PostgresChange) throws -> PostgresChange {
    var change = change
    change.expected = try change.expectedTables(in: PostgresDatabase(of: session), session)
    return change
  }

  /// A deletion, with an archive if one is named.
  func delete(archive: String? = nil, if condition: String? = nil) throws -> PostgresChange {
    let session = session
    let table = table
    let kept = try archive.map { name in
      let archive = try session.transaction { () throws(BatchError) in
        try PostgresTable(named: name, in: session)
      }
      return try PostgresChange.Archive(archive, for: table)
    }
    return PostgresChange(
      of: table,
      key: key,
      .delete(archive: kept),
      condition: .init(try condition.map { try compiler.condition(PostgresExpression($0)) }),
      parameters: parameters,
      path: path
    )
  }

  /// A transform that reads columns and writes columns.
  func transform(
    _ reads: [String],
    _ writes: [String],
    if condition: String? = nil,
    isRequired: Bool = false
  ) throws -> PostgresTransform {
    try PostgresTransform(
      of: table,
      key: key,
      reading: reads,
      writing: writes,
      condition: .init(
        try condition.map { try compiler.condition(PostgresExpression($0)) },
        isRequired: isRequired
      ),
      parameters: parameters,
      path: path
    )
  }

  /// An export of columns; of all of them if none is named.
  func export(
    _ columns: [String]? = nil,
    as format: LineFormat,
    if condition: String? = nil,
    byServer isByServer: Bool = true
  ) throws -> PostgresExport {
    try PostgresExport(
      of: table,
      key: key,
      columns,
      as: .lines(format, .none),
      condition: .init(try condition.map { try compiler.condition(PostgresExpression($0)) }),
      parameters: parameters,
      path: path,
      byServer: isByServer
    )
  }

  /// The keys at some positions; nil for all.
  func keys(_ positions: Range<Int>? = nil) throws -> RowKeys {
    try RowKeys(list.packed, positions ?? 0..<list.count, key: key)
  }

  /// Changes the rows of all keys in one transaction, as a chunk does; only counts the rows if no method is given and
  /// that is enough.
  @discardableResult
  func write(
    _ change: PostgresChange,
    by method: WritingMethod? = nil,
    onFailure policy: FailurePolicy = .failChunk,
    at positions: Range<Int>? = nil
  ) throws -> ChunkResult {
    let keys = try keys(positions)
    func write(_ method: WritingMethod) throws(BatchError) -> ChunkResult {
      try session.transaction(TransactionOptions(searchPath: path)) { () throws(BatchError) in
        try change.write(to: keys, method, onFailure: policy, in: session)
      }
    }
    if let method { return try write(method) }
    do {
      return try write(.counting)
    } catch {
      guard change.canBeListed(error) else { throw error }
      return try write(.listing)
    }
  }

  /// The values of an expression over the rows, in an order.
  func texts(_ expression: String, orderBy order: String = "1") throws -> [String] {
    let rows = try session.execute(
      "SELECT (\(expression))::text FROM \(table.sql) ORDER BY \(order)"
    )
    return (0..<rows.count).map { rows.text($0, 0) ?? "NULL" }
  }
}
#endif
