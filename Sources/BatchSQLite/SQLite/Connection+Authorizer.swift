package import BatchRuns
package import BatchIdentifiers
import CSQLite

extension Connection {
  /// Runs `body`, which compiles statements, under an authorizer that only allows reading columns
  /// and calling functions: no writes, no ATTACH, no PRAGMA, no transaction.
  ///
  /// See <https://www.sqlite.org/c3ref/set_authorizer.html>.
  func withReadOnlyAuthorizer<Result>(
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    connectVirtualTables()
    unsafe sqlite3_set_authorizer(
      database,
      { _, action, table, name, _, _ in
        switch action {
        case SQLITE_SELECT, SQLITE_RECURSIVE: return SQLITE_OK
        case SQLITE_READ:
          guard let table = unsafe table else { return SQLITE_DENY }
          return isDeniedTable(unsafe String(cString: table)) ? SQLITE_DENY : SQLITE_OK
        case SQLITE_FUNCTION:
          guard let name = unsafe name else { return SQLITE_DENY }
          let isDenied = deniedFunctions.contains(unsafe String(cString: name).lowercased())
          return isDenied ? SQLITE_DENY : SQLITE_OK
        default: return SQLITE_DENY
        }
      },
      nil
    )
    defer { unsafe sqlite3_set_authorizer(database, nil, nil) }
    return try body()
  }

  /// Runs a caller's statement in the open transaction, which the statement cannot end: no BEGIN,
  /// COMMIT, ROLLBACK or SAVEPOINT, no ATTACH, no PRAGMA.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` for such a statement or for more than one, or
  ///   errors of SQLite.
  package func executeInside(_ sql: String, _ values: [SQLValue]) throws(BatchError) {
    let statement: Statement
    do throws(BatchError) {
      unsafe sqlite3_set_authorizer(
        database,
        { _, action, _, _, _, _ in
          switch action {
          case SQLITE_TRANSACTION, SQLITE_SAVEPOINT, SQLITE_ATTACH, SQLITE_DETACH, SQLITE_PRAGMA:
            return SQLITE_DENY
          default: return SQLITE_OK
          }
        },
        nil
      )
      defer { unsafe sqlite3_set_authorizer(database, nil, nil) }
      // The comment makes the text differ from cached ones, so the statement is compiled under this
      // authorizer.
      statement = try prepare("/* own */ \(sql)")
    } catch {
      guard error.sqlite?.resultCode == .SQLITE_AUTH else { throw error }
      throw BatchError(
        .invalidSQL,
        "the statement would end the transaction, or reach outside of it",
        at: path,
        remedy: "give a statement that reads or changes tables"
      )
    }
    guard statement.parameterCount == values.count else {
      throw BatchError(
        .invalidSQL,
        "the statement has \(statement.parameterCount) parameters, and \(values.count) values were given",
        at: path
      )
    }
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    try statement.run()
  }

  /// Connects the virtual tables that expressions may read; connecting a table declares its columns
  /// with CREATE TABLE, which the authorizer would refuse.
  private func connectVirtualTables() {
    guard !hasConnectedVirtualTables else { return }
    hasConnectedVirtualTables = true
    let names = try? texts(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'"
    )
    for name in (names ?? []) + ["json_each", "json_tree"] {
      // A table whose module is missing cannot be read, with or without the authorizer.
      _ = try? value("SELECT 1 FROM \(SQLName.quoted(name)) LIMIT 0")
    }
  }
}

/// Whether a table-valued function has side effects or reads files: `pragma_optimize` writes
/// statistics, `fsdir` lists folders.
private func isDeniedTable(_ table: String) -> Bool {
  let name = table.lowercased()
  return name.hasPrefix("pragma_") || name == "fsdir"
}

/// Functions that reach outside the database, whether or not this build of SQLite has them.
private let deniedFunctions: Set<String> = [
  "load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "lsmode",
  "sqlite_rename_table", "sqlite_rename_column", "sqlite_drop_column", "sqlar_compress",
  "sqlar_uncompress",
]
