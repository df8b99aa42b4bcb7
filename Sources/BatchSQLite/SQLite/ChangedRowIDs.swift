import BatchIdentifiers
import CSQLite

/// Notes the rowids of a table's rows that statements update or delete.
///
/// SQLite reports each of them, whatever index it finds them by, except those that
/// `ON CONFLICT REPLACE` removes; see <https://www.sqlite.org/c3ref/update_hook.html>. The hook
/// runs for every changed row, so it only writes to preallocated memory.
@safe
final class ChangedRowIDs {
  /// The hook's data.
  @unsafe fileprivate struct Notes {
    var operation: Int32
    var table: UnsafeMutablePointer<CChar>
    /// The last name from SQLite: within a statement, a table's name stays at one address.
    var lastName: UnsafePointer<CChar>?
    var isTable = false
    var rowIDs: UnsafeMutablePointer<Int64>
    var count = 0
    var capacity: Int
  }

  fileprivate let notes: UnsafeMutablePointer<Notes>

  /// Makes room for the rowids of one statement; if there are more, none is noted.
  fileprivate init(of table: String, deleted: Bool, atMost capacity: Int) {
    let name = UnsafeMutablePointer<CChar>.allocate(capacity: table.utf8.count + 1)
    for (index, byte) in table.utf8.enumerated() {
      unsafe name[index] = CChar(bitPattern: byte)
    }
    unsafe name[table.utf8.count] = 0
    unsafe notes = .allocate(capacity: 1)
    unsafe notes.initialize(
      to: Notes(
        operation: deleted ? SQLITE_DELETE : SQLITE_UPDATE,
        table: name,
        rowIDs: .allocate(capacity: capacity),
        capacity: capacity
      )
    )
  }

  deinit {
    unsafe notes.pointee.table.deallocate()
    unsafe notes.pointee.rowIDs.deallocate()
    unsafe notes.deallocate()
  }

  /// The rowids, ascending.
  var sorted: [Int64] {
    let count = unsafe min(notes.pointee.count, notes.pointee.capacity)
    return unsafe UnsafeBufferPointer(start: notes.pointee.rowIDs, count: count).sorted()
  }

  /// Removes the noted rowids before another statement.
  func beginStatement() { unsafe notes.pointee.count = 0 }
}

extension Connection {
  /// Runs `body` while noting which rows of a table are updated or deleted.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - deleted: Whether to note deletions instead of updates.
  ///   - capacity: The maximum number of rows that a statement finds.
  ///   - body: Receives the notes.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws.
  func notingRowIDs<Result>(
    of table: String,
    deleted: Bool,
    atMost capacity: Int,
    _ body: (ChangedRowIDs) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let changed = ChangedRowIDs(of: table, deleted: deleted, atMost: capacity)
    unsafe sqlite3_update_hook(
      database,
      { context, operation, _, name, rowID in
        guard
          let notes = unsafe context?.assumingMemoryBound(to: ChangedRowIDs.Notes.self),
          let name = unsafe name
        else { return }
        guard unsafe operation == notes.pointee.operation else { return }
        if unsafe name != notes.pointee.lastName {
          unsafe notes.pointee.lastName = name
          unsafe notes.pointee.isTable = sqlite3_stricmp(notes.pointee.table, name) == 0
        }
        guard unsafe notes.pointee.isTable else { return }
        let count = unsafe notes.pointee.count
        if unsafe count < notes.pointee.capacity { unsafe notes.pointee.rowIDs[count] = rowID }
        unsafe notes.pointee.count = count + 1
      },
      unsafe UnsafeMutableRawPointer(changed.notes)
    )
    defer { unsafe sqlite3_update_hook(database, nil, nil) }
    return try withExtendedLifetime(changed) { () throws(BatchError) in try body(changed) }
  }
}
