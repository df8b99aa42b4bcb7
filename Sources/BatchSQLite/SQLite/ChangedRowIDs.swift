import BatchIdentifiers
import CSQLite

/// Records the rowids of a table's rows that statements update or delete.
///
/// SQLite reports every such row, whatever index finds it, except those that `ON CONFLICT REPLACE`
/// removes: <https://www.sqlite.org/c3ref/update_hook.html>. The hook runs for each changed row, so
/// it only writes to preallocated memory.
@safe
final class ChangedRowIDs {
  @unsafe fileprivate struct Notes {
    var operation: Int32
    var table: UnsafeMutablePointer<CChar>
    /// The last name from SQLite; within a statement, the name of a table stays at one address.
    var lastName: UnsafePointer<CChar>?
    var isTable = false
    var rowIDs: UnsafeMutablePointer<Int64>
    var count = 0
    var capacity: Int
  }

  fileprivate let notes: UnsafeMutablePointer<Notes>

  /// Makes room for the rowids of one statement; if there are more, the rest is dropped.
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

  var sorted: [Int64] {
    let count = unsafe min(notes.pointee.count, notes.pointee.capacity)
    return unsafe UnsafeBufferPointer(start: notes.pointee.rowIDs, count: count).sorted()
  }

  func beginStatement() { unsafe notes.pointee.count = 0 }
}

extension Connection {
  /// Runs `body` while recording which rows of a table are updated, or deleted if `deleted`; a
  /// statement finds at most `capacity` rows.
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
