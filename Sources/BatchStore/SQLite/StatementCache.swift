import CSQLite

/// Compiled statements that wait to be used again, by their text; the least recently used goes
/// when there are too many.
@safe
final class StatementCache {
  private static let limit = 64

  private let database: OpaquePointer
  private var waiting: [String: OpaquePointer] = unsafe [:]
  /// Texts from least to most recently put back.
  private var order: [String] = []

  init(database: OpaquePointer) {
    unsafe self.database = unsafe database
  }

  /// The waiting statement of this text, which leaves the cache, or nil.
  func take(_ sql: String) -> OpaquePointer? {
    guard let statement = unsafe waiting.removeValue(forKey: sql) else { return nil }
    if let index = order.lastIndex(of: sql) { order.remove(at: index) }
    return unsafe statement
  }

  /// Puts a statement back that is done; a second one of the same text is finalized.
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
