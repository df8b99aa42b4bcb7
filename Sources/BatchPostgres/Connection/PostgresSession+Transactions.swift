#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
import CPostgres

/// How a transaction begins.
package struct TransactionOptions: Sendable {
  /// What a transaction sees of others.
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
  /// How long the session may be idle before the server ends it, so that a vanished client holds no lock; nil for the
  /// server's setting.
  package var idleTimeout: Duration?
  /// Where names without a schema are looked up; nil for the session's setting.
  package var searchPath: SearchPath?
  /// Whether the server reports the parse tree of each statement.
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

  /// A transaction over the rows of a run itself, in which the process only asks the server.
  ///
  /// If the process stops in the middle, the server frees the locks after ten seconds, so that other hosts go on.
  static let bookkeeping = TransactionOptions(.readCommitted, idleTimeout: .seconds(10))

  /// A transaction that parses statements and runs none that writes.
  static func parsing(_ path: SearchPath) -> TransactionOptions {
    var options = TransactionOptions(isReadOnly: true, searchPath: path)
    options.printsParseTrees = true
    return options
  }

  /// The statement that begins it.
  private var beginning: String {
    "BEGIN ISOLATION LEVEL \(isolation.rawValue), READ \(isReadOnly ? "ONLY" : "WRITE")"
  }

  /// The script that begins it.
  var script: String {
    ([beginning]
      + settings.map { "SET LOCAL \($0.name) = \($0.isList ? $0.value : "'\($0.value)'")" })
      .joined(separator: "; ")
  }

  /// The single statements that begin it.
  package var statements: [PostgresStatement] {
    let calls = settings.indices.map {
      "pg_catalog.set_config($\(2 * $0 + 1), $\(2 * $0 + 2), true)"
    }
    return [
      PostgresStatement(sql: beginning),
      PostgresStatement(
        sql: "SELECT \(calls.joined(separator: ", "))",
        values: settings.flatMap { [.text($0.name), .text($0.value)] }
      ),
    ]
  }

  /// The settings of the transaction, in order.
  private var settings: [(name: String, value: String, isList: Bool)] {
    var settings: [(name: String, value: String, isList: Bool)] = []
    for (name, limit) in [
      ("lock_timeout", lockTimeout), ("statement_timeout", statementTimeout),
      ("idle_in_transaction_session_timeout", idleTimeout),
    ] {
      guard let limit else { continue }
      // Zero would mean no limit.
      settings.append((name, "\(min(max(1, limit.milliseconds), Int(Int32.max)))", false))
    }
    settings += Self.fixedSettings.map { ($0, $1, false) }
    if let searchPath { settings.append(("search_path", searchPath.sql, true)) }
    if printsParseTrees {
      // The last setting, so that only what follows is printed.
      settings.append(("client_min_messages", "log", false))
      settings.append(("debug_pretty_print", "off", false))
      settings.append(("debug_print_parse", "on", false))
    }
    return settings
  }

  /// The settings that determine how values are written and read.
  ///
  /// They are the same on every server and for every role, so a text has the same meaning on every host. The time
  /// zone is UTC, as in SQLite.
  private static let fixedSettings = [
    ("datestyle", "ISO, MDY"), ("intervalstyle", "postgres"), ("timezone", "UTC"),
    ("bytea_output", "hex"), ("extra_float_digits", "1"), ("standard_conforming_strings", "on"),
    ("transform_null_equals", "off"), ("array_nulls", "on"), ("quote_all_identifiers", "off"),
  ]
}

/// Where names without a schema are looked up: first in `pg_catalog`, so that nobody can replace the server's
/// functions; then in the session's schemas; last in the schema of temporary tables.
package struct SearchPath: Sendable, Hashable {
  private let schemas: [String]

  /// Asks the server for the session's schemas.
  package init(of session: PostgresSession) throws(BatchError) {
    let rows = try session.execute("SELECT unnest(current_schemas(false))")
    schemas = (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// The value of `search_path`.
  var sql: String {
    (["pg_catalog"] + schemas.filter { $0 != "pg_catalog" } + ["pg_temp"])
      .map { "\"\($0.replacing("\"", with: "\"\""))\"" }.joined(separator: ", ")
  }
}

extension PostgresSession {
  /// Runs `body` in a transaction: commits if it returns, rolls back if it throws.
  ///
  /// The transaction begins together with its first statement, which saves a round trip to the server.
  ///
  /// - Throws: The error of `body`; `connectionLost`, with the state `transactionResolutionUnknown`, if the
  ///   connection broke at COMMIT, so that the outcome is unknown here.
  @discardableResult
  package func transaction<Result>(
    _ options: TransactionOptions = TransactionOptions(),
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
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

  /// Begins a transaction that the caller ends.
  package func begin(_ options: TransactionOptions) throws(BatchError) {
    if interrupter.isInterrupted {
      throw BatchError(.interrupted, "interrupted", at: address.description)
    }
    do {
      try run(options.script)
    } catch {
      rollBack()
      throw error
    }
  }

  /// Begins the transaction that waits for its first statement, if there is one.
  func beginUpcoming() throws(BatchError) {
    guard let options = upcoming else { return }
    upcoming = nil
    try begin(options)
  }

  /// The statements that begin the upcoming transaction, for the caller to run before its own; none if it has begun.
  func takeBeginning() -> [PostgresStatement] {
    guard let options = upcoming else { return [] }
    upcoming = nil
    return options.statements
  }

  /// Commits the transaction.
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

  /// Rolls back the transaction, if one is open.
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
  /// The whole milliseconds.
  var milliseconds: Int {
    let (seconds, attoseconds) = components
    let (whole, overflow) = Int(seconds).multipliedReportingOverflow(by: 1_000)
    return overflow ? .max : whole + Int(attoseconds / 1_000_000_000_000_000)
  }
}
#endif
