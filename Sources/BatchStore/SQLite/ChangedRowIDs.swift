import BatchIdentifiers
import CSQLite

/// Notes the rowids of the rows of a table that statements update or delete.
///
/// SQLite tells of each of them, whatever index it finds them by, but for those that `ON CONFLICT REPLACE`
/// removes; see <https://www.sqlite.org/c3ref/update_hook.html>.
@safe
final class ChangedRowIDs {
  /// The rowids, in the order in which the rows were changed.
  private(set) var rowIDs: [Int64] = []
  /// The name of the table, in bytes that end with zero.
  private let table: [CChar]
  private let operation: Int32
  /// The name that SQLite has given last, by its address, and whether it is that of the table.
  private var last: (name: UnsafePointer<CChar>, isTable: Bool)?

  fileprivate init(of table: String, deleted: Bool) {
    self.table = table.utf8.map { CChar(bitPattern: $0) } + [0]
    operation = deleted ? SQLITE_DELETE : SQLITE_UPDATE
  }

  /// Forgets what was noted: another statement begins.
  func beginStatement() { rowIDs.removeAll(keepingCapacity: true) }

  fileprivate func note(_ rowID: Int64, _ operation: Int32, of name: UnsafePointer<CChar>) {
    guard operation == self.operation else { return }
    // Within a statement the name of a table stays where it is.
    if unsafe last?.name != name {
      unsafe last = (name, sqlite3_stricmp(table, name) == 0)
    }
    if unsafe last?.isTable == true { rowIDs.append(rowID) }
  }
}

extension Connection {
  /// Runs `body`, and notes meanwhile which rows of a table are updated, or deleted.
  func notingRowIDs<Result>(
    of table: String,
    deleted: Bool,
    _ body: (ChangedRowIDs) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let changed = ChangedRowIDs(of: table, deleted: deleted)
    unsafe sqlite3_update_hook(
      database,
      { context, operation, _, table, rowID in
        guard let context = unsafe context, let table = unsafe table else { return }
        unsafe Unmanaged<ChangedRowIDs>.fromOpaque(context)._withUnsafeGuaranteedRef {
          unsafe $0.note(rowID, operation, of: table)
        }
      },
      Unmanaged.passUnretained(changed).toOpaque()
    )
    defer { unsafe sqlite3_update_hook(database, nil, nil) }
    return try body(changed)
  }
}
