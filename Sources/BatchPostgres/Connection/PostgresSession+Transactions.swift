#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import CPostgres

package struct TransactionOptions: Sendable {
  package enum Isolation: String, Sendable {
    case readCommitted = "READ COMMITTED"
    case repeatableRead = "REPEATABLE READ"
    case serializable = "SERIALIZABLE"
  }

  package var isolation: Isolation
  package var isReadOnly: Bool
  /// How long a statement waits for a lock; nil for the server's setting.
  package var lockTimeout: Duration?
  /// How long a statement may run; nil for the server's setting.
  package var statementTimeout: Duration?
  /// How long the session may be idle before the server ends it, so that a vanished client holds no
  /// lock; nil for the server's setting.
  package var idleTimeout: Duration?
  /// Where names without a schema are looked up; nil for a transaction of our own statements.
  ///
  /// With a path, expressions of the job, triggers and views may run, so the transaction also has
  /// the session's other settings. Without a path, it has ``ValueSettings``.
  package var searchPath: SearchPath?
  /// Whether it has ``ValueSettings`` despite a search path.
  var hasValueSettings = false
  /// The snapshot of another transaction to use, as the server names it; nil for its own.
  var snapshot: String?
  var printsParseTrees = false

  package init(
    _ isolation: Isolation = .readCommitted,
    isReadOnly: Bool = false,
    lockTimeout: Duration? = nil,
    statementTimeout: Duration? = nil,
    idleTimeout: Duration? = nil,
    searchPath: SearchPath? = nil
  ) {
    self.isolation = isolation
    self.isReadOnly = isReadOnly
    self.lockTimeout = lockTimeout
    self.statementTimeout = statementTimeout
    self.idleTimeout = idleTimeout
    self.searchPath = searchPath
  }

  /// A transaction on the tables of runs; if the process stops within it, the server frees the
  /// locks after ten seconds, so that other hosts can continue.
  static let bookkeeping = TransactionOptions(.readCommitted, idleTimeout: .seconds(10))

  /// A transaction that parses statements and runs none that writes.
  static func parsing(_ path: SearchPath) -> TransactionOptions {
    var options = TransactionOptions(isReadOnly: true, searchPath: path)
    options.printsParseTrees = true
    return options
  }

  private var beginning: String {
    "BEGIN ISOLATION LEVEL \(isolation.rawValue), READ \(isReadOnly ? "ONLY" : "WRITE")"
  }

  var script: String {
    // The server takes a snapshot before any query, and the settings are a query.
    "\(beginning); \(snapshot.map { "SET TRANSACTION SNAPSHOT '\($0)'; " } ?? "")\(setting)"
  }

  /// The script as single statements.
  package var statements: [PostgresStatement] {
    [PostgresStatement(sql: beginning), PostgresStatement(sql: setting)]
  }

  /// The statement that changes settings until the end of the transaction.
  private var setting: String {
    var calls: [String] = []
    for (name, limit) in [
      ("lock_timeout", lockTimeout), ("statement_timeout", statementTimeout),
      ("idle_in_transaction_session_timeout", idleTimeout),
    ] {
      guard let limit else { continue }
      // Zero would mean no limit.
      let own = min(max(1, limit.milliseconds), Int(Int32.max))
      let role = "pg_catalog.current_setting('\(name)')"
      calls.append(
        """
        pg_catalog.set_config('\(name)', CASE WHEN \(role)::pg_catalog.interval > '0' \
        AND \(role)::pg_catalog.interval < '\(own) ms' THEN \(role) ELSE '\(own)' END, true)
        """
      )
    }
    if let searchPath {
      let path = Array(searchPath.sql.utf8).span.textInSQL
      calls.append("pg_catalog.set_config('search_path', \(path), true)")
    }
    if searchPath == nil || hasValueSettings { calls += ValueSettings.calls }
    if printsParseTrees {
      // These come last, so that only later statements are printed.
      for (name, value) in [
        ("client_min_messages", "log"), ("debug_pretty_print", "off"), ("debug_print_parse", "on"),
      ] {
        calls.append("pg_catalog.set_config('\(name)', '\(value)', true)")
      }
    }
    return "SELECT \(calls.joined(separator: ", "))"
  }
}

/// The settings that decide how the server writes values as texts.
///
/// They make texts that leave the server mean the same on every host and for every role; the time
/// zone is UTC, as in SQLite. Expressions, views, policies and triggers run under the settings of
/// the role and the database, so their values are computed first and become texts afterwards.
enum ValueSettings {
  private static let settings = [
    ("datestyle", "ISO, MDY"), ("intervalstyle", "postgres"), ("timezone", "UTC"),
    ("bytea_output", "hex"), ("extra_float_digits", "1"), ("quote_all_identifiers", "off"),
  ]

  static var calls: [String] {
    settings.map { "pg_catalog.set_config('\($0)', '\($1)', true)" }
  }

  /// A query whose values become texts under these settings, though they are computed under the
  /// session's.
  ///
  /// The columns of `rows` have names.
  static func query(over rows: String, selecting columns: [String]) -> String {
    // The server evaluates a condition without columns once, before it reads the first row, and
    // this condition needs all rows.
    """
    WITH "_batch_rows" AS MATERIALIZED (\(rows)) SELECT \(columns.joined(separator: ", ")) FROM "_batch_rows" \
    WHERE (SELECT pg_catalog.num_nonnulls(\((remembering + calls).joined(separator: ", "))) \
    FROM (SELECT pg_catalog.count(*) FROM "_batch_rows") AS "_batch_read") > 0
    """
  }

  private static var remembering: [String] {
    settings.map {
      "pg_catalog.set_config('batch.\($0.0)', pg_catalog.current_setting('\($0.0)'), true)"
    }
  }

  /// The statement that undoes the settings of ``query(over:selecting:)`` if the transaction
  /// continues.
  static var undoing: String {
    let calls = settings.map {
      "pg_catalog.set_config('\($0.0)', pg_catalog.current_setting('batch.\($0.0)'), true)"
    }
    return "SELECT \(calls.joined(separator: ", "))"
  }
}

/// Where names without a schema are looked up, as in any other session of the role; `pg_catalog`
/// comes first if the role's path would hide the server's own functions.
package struct SearchPath: Sendable, Hashable {
  let sql: String

  package init(of session: PostgresSession) throws(BatchError) {
    let answer = try session.execute(
      "SELECT pg_catalog.current_setting('search_path'), pg_catalog.unnest(pg_catalog.current_schemas(false))"
    )
    let path =
      answer.count > 0 ? answer.text(0, 0) ?? "" : try session.text("SHOW search_path") ?? ""
    let schemas = (0..<answer.count).compactMap { answer.text($0, 1) }
    let hidesFunctions = schemas.dropFirst().contains("pg_catalog")
    let first = ["pg_catalog"] + schemas.filter { $0 != "pg_catalog" }
    sql =
      hidesFunctions
      ? first.map { "\"\($0.replacing("\"", with: "\"\""))\"" }.joined(separator: ", ") : path
  }
}

extension PostgresSession {
  /// Runs `body` in a transaction: commits if it returns, rolls back if it throws.
  ///
  /// The transaction begins together with its first statement, which saves a round trip.
  ///
  /// - Throws: The error of `body`; `databaseAccess` inside an open transaction, which stays as it
  ///   is; `connectionLost`, with the state
  ///   `transactionResolutionUnknown`, if the connection broke at COMMIT, so that the outcome is
  ///   unknown here.
  @discardableResult
  package func transaction<Result>(
    _ options: TransactionOptions = TransactionOptions(),
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try refuseNesting()
    upcoming = options
    let result: Result
    do {
      result = try body()
    } catch {
      rollBack()
      throw error
    }
    try commit()
    return result
  }

  /// Runs `body` inside an open transaction; undoes its changes if it throws.
  package func savepoint<Result>(
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try run("SAVEPOINT _batch_part")
    let result: Result
    do {
      result = try body()
    } catch {
      if !isLost, isInTransaction { try run("ROLLBACK TO _batch_part; RELEASE _batch_part") }
      throw error
    }
    try run("RELEASE _batch_part")
    return result
  }

  package func begin(_ options: TransactionOptions) throws(BatchError) {
    try refuseNesting()
    do {
      try run(options.script)
    } catch {
      rollBack()
      throw error
    }
  }

  /// Refuses a transaction inside an open one, all of which the server would commit with it.
  private func refuseNesting() throws(BatchError) {
    guard !isLost, isInTransaction else { return }
    throw BatchError(.databaseAccess, "a transaction is open already", at: address.description)
  }

  /// Begins the transaction that was waiting for its first statement, if there is one.
  func beginUpcoming() throws(BatchError) {
    guard let options = upcoming else { return }
    upcoming = nil
    try begin(options)
  }

  /// The statements that begin the upcoming transaction, for the caller to run before its own; none
  /// if it has begun.
  func takeBeginning() -> [PostgresStatement] {
    guard let options = upcoming else { return [] }
    upcoming = nil
    return options.statements
  }

  package func commit() throws(BatchError) {
    if upcoming != nil {
      upcoming = nil
      return
    }
    let tag: String
    do {
      try send("COMMIT", [], .text)
      tag = try takeResults()?.tag ?? ""
    } catch {
      guard isLost, var lost = error.postgres else {
        rollBack()
        throw error
      }
      lost.state = .transactionResolutionUnknown
      lost.message = "the connection broke at COMMIT: \(lost.message)"
      throw BatchError(lost, server: address.description)
    }
    // The server rolls back a failed transaction, even if asked to commit.
    guard tag == "COMMIT" else {
      throw BatchError(.databaseAccess, "the transaction failed", at: address.description)
    }
  }

  package func rollBack() {
    upcoming = nil
    guard !isLost, isInTransaction else { return }
    abandon()
    // Unlike other statements, this one must also run after an interrupt.
    guard !isLost, unsafe PQsendQuery(handle, "ROLLBACK") == 1, (try? takeResults()) != nil else {
      return close()
    }
  }
}

extension Duration {
  var milliseconds: Int {
    let (seconds, attoseconds) = components
    let (whole, overflow) = Int(seconds).multipliedReportingOverflow(by: 1_000)
    return overflow ? .max : whole + Int(attoseconds / 1_000_000_000_000_000)
  }
}
#endif
