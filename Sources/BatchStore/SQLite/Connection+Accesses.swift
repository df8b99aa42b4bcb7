import BatchIdentifiers
import CSQLite

/// Which tables a statement reads, and which its triggers write.
struct TableAccesses {
  var read: Set<String> = []
  var writtenByTriggers: Set<String> = []
}

extension Connection {
  /// What compiling a statement, and whatever triggers it sets off, says of the tables; runs nothing.
  ///
  /// The actions of foreign keys are not told.
  /// See <https://www.sqlite.org/c3ref/set_authorizer.html>.
  func accesses(of sql: String) throws(BatchError) -> TableAccesses {
    let triggers = try texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    let recorder = AccessRecorder(triggers: Set(triggers))
    unsafe sqlite3_set_authorizer(
      database,
      { context, action, table, _, _, accessor in
        guard let context = unsafe context, let table = unsafe table else { return SQLITE_OK }
        unsafe Unmanaged<AccessRecorder>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.record(
            action,
            unsafe String(cString: table),
            by: unsafe accessor.map { unsafe String(cString: $0) }
          )
        }
        return SQLITE_OK
      },
      unsafe Unmanaged.passUnretained(recorder).toOpaque()
    )
    defer { unsafe sqlite3_set_authorizer(database, nil, nil) }
    // Another text, so that it is compiled now even if the statement was before.
    _ = try prepare("EXPLAIN \(sql)")
    return withExtendedLifetime(recorder) { $0.accesses }
  }
}

private final class AccessRecorder {
  private let triggers: Set<String>
  private(set) var accesses = TableAccesses()

  init(triggers: Set<String>) {
    self.triggers = triggers
  }

  /// Notes an action on a table by a trigger or a view, or by the statement itself if that is nil.
  func record(_ action: Int32, _ table: String, by accessor: String?) {
    let isOfTrigger = accessor.map(triggers.contains) ?? false
    switch action {
    case SQLITE_READ:
      if !isOfTrigger { accesses.read.insert(table) }
    case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
      if isOfTrigger { accesses.writtenByTriggers.insert(table) }
    default: break
    }
  }
}
