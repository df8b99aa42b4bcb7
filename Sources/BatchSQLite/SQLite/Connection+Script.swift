package import BatchIdentifiers
import CSQLite

extension Connection {
  /// Runs the statements of a script inside the caller's transaction, which they cannot end.
  package func runScript(_ script: String) throws(BatchError) {
    unsafe sqlite3_set_authorizer(
      database,
      { _, action, _, _, _, _ in
        switch action {
        case SQLITE_TRANSACTION, SQLITE_ATTACH, SQLITE_DETACH: SQLITE_DENY
        default: SQLITE_OK
        }
      },
      nil
    )
    defer { unsafe sqlite3_set_authorizer(database, nil, nil) }
    let status = unsafe sqlite3_exec(database, script, nil, nil, nil)
    guard status == SQLITE_OK else { throw error(status, "execute", sql: nil) }
  }
}
