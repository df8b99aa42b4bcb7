import CSQLite

/// Idle compiled statements, by text; if there are too many, the least recently used is dropped.
@safe
final class StatementCache {
  private static let limit = 64

  private let database: OpaquePointer
  private var waiting: [String: OpaquePointer] = unsafe [:]
  private var order: [String] = []

  init(database: OpaquePointer) {
    unsafe self.database = unsafe database
  }

  func take(_ sql: String) -> OpaquePointer? {
    guard let statement = unsafe waiting.removeValue(forKey: sql) else { return nil }
    if let index = order.lastIndex(of: sql) { order.remove(at: index) }
    return unsafe statement
  }

  /// Returns an idle statement; a second one with the same text is finalized.
  func put(_ statement: OpaquePointer, sql: String) {
    unsafe sqlite3_reset(statement)
    unsafe sqlite3_clear_bindings(statement)
    guard unsafe waiting[sql] == nil else {
      unsafe sqlite3_finalize(statement)
      return
    }
    unsafe waiting[sql] = unsafe statement
    order.append(sql)
    if order.count > Self.limit {
      let oldest = order.removeFirst()
      unsafe sqlite3_finalize(waiting.removeValue(forKey: oldest))
    }
  }

  func removeAll() {
    unsafe waiting.values.forEach { unsafe sqlite3_finalize($0) }
    unsafe waiting.removeAll()
    order.removeAll()
  }
}
