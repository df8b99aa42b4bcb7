import BatchIdentifiers
import CSQLite

/// Watches whether statements that change a single row also change other rows of its table, through
/// triggers.
///
/// SQLite reports every row of a rowid table that any statement inserts, updates or deletes, except
/// those that `ON CONFLICT REPLACE` removes: <https://www.sqlite.org/c3ref/update_hook.html>.
@safe
final class RowWatch {
  private let table: [CChar]
  private var row: Int64?
  /// Whether a statement has changed more than one row.
  private(set) var hasSeenOthers = false

  fileprivate init(table: String) {
    self.table = table.utf8.map { CChar(bitPattern: $0) } + [0]
  }

  func beginStatement() { row = nil }

  fileprivate func note(_ rowID: Int64, of other: UnsafePointer<CChar>) {
    guard unsafe sqlite3_stricmp(table, other) == 0 else { return }
    if let row, row != rowID { hasSeenOthers = true }
    row = rowID
  }
}

extension Connection {
  /// Runs `body` while watching the changed rows of a table.
  func watching<Result>(
    table: String,
    _ body: (RowWatch) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let watch = RowWatch(table: table)
    self.watch = watch
    unsafe sqlite3_update_hook(
      database,
      { context, _, _, table, rowID in
        guard let context = unsafe context, let table = unsafe table else { return }
        unsafe Unmanaged<RowWatch>.fromOpaque(context)._withUnsafeGuaranteedRef {
          unsafe $0.note(rowID, of: table)
        }
      },
      Unmanaged.passUnretained(watch).toOpaque()
    )
    defer {
      unsafe sqlite3_update_hook(database, nil, nil)
      self.watch = nil
    }
    return try body(watch)
  }
}
