import BatchIdentifiers
import CSQLite

extension Connection {
  /// Runs `body`, which compiles statements, under an authorizer that allows reading columns and
  /// calling functions and nothing else: no writes, no ATTACH, no PRAGMA, no transaction.
  ///
  /// See <https://www.sqlite.org/c3ref/set_authorizer.html>.
  func withReadOnlyAuthorizer<Result>(
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    // A connection makes these table functions when it meets them first, for which it declares a
    // table, which the authorizer would have to allow.
    _ = try? prepare("SELECT 1 FROM json_each('[]'), json_tree('[]')")
    unsafe sqlite3_set_authorizer(
      database,
      { _, action, table, name, _, _ in
        switch action {
        case SQLITE_SELECT, SQLITE_RECURSIVE: return SQLITE_OK
        case SQLITE_READ:
          // `pragma_…` runs a PRAGMA, of which some write.
          guard let table = unsafe table else { return SQLITE_OK }
          let isPragma = unsafe String(cString: table).lowercased().hasPrefix("pragma_")
          return isPragma ? SQLITE_DENY : SQLITE_OK
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
}

/// Functions that reach outside the database, whether or not this build of SQLite has them.
private let deniedFunctions: Set<String> = [
  "load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "fsdir", "lsmode",
  "sqlite_rename_table", "sqlite_rename_column", "sqlite_drop_column", "sqlar_compress",
  "sqlar_uncompress",
]
