import BatchRuns
import BatchIdentifiers
import CSQLite

/// The SQL aggregate `_batch_collect(column, value, …)`, which collects the rows of a statement in
/// a block.
///
/// A function receives all values of a row at once. As result columns, each value would cost a call
/// that takes locks and checks its arguments, and each row a step: a quarter of the time of reading
/// a row of 20 columns.
@safe
final class RowCollector {
  private static let name = "_batch_collect"
  /// A function has at most 127 arguments (<https://www.sqlite.org/limits.html>); the first one is
  /// the number of a column.
  private static let mostValues = 126

  private var block: UnsafeMutablePointer<ValueBlock>?
  private var isUTF8 = true
  private var obstacle: Obstacle?

  /// The number of bytes of texts and blobs to hold; the row that reaches it is the last.
  private var byteLimit = Int.max

  private enum Obstacle {
    case noRoom
    case full
    case error(BatchError)
  }

  /// Registers the aggregate on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    return unsafe sqlite3_create_function_v2(
      database,
      Self.name,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      nil,
      { call, count, arguments in
        guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
          return
        }
        unsafe Unmanaged<RowCollector>.fromOpaque(context)._withUnsafeGuaranteedRef {
          let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
          if unsafe !$0.take(values) { unsafe sqlite3_result_error(call, "not taken", -1) }
        }
      },
      { call in unsafe sqlite3_result_null(call) },
      nil
    )
  }

  /// The result columns of a `SELECT` whose rows are collected, in the order in which it finds
  /// them.
  static func columns(_ expressions: [String]) -> String {
    stride(from: 0, to: expressions.count, by: mostValues)
      .map { first in
        let values = expressions[first..<min(first + mostValues, expressions.count)]
        return "\(name)(\(first), \(values.joined(separator: ", ")))"
      }
      .joined(separator: ", ")
  }

  enum Collected {
    case all
    /// Some rows, up to the byte limit.
    case some
    /// More rows than the block has room for.
    case tooMany
  }

  /// Runs a statement, and appends its rows to a block with as many columns, until its texts and
  /// blobs reach `byteLimit` bytes.
  ///
  /// - Throws: Errors of SQLite, or `BatchError` of code `valueTooLarge`.
  func collect(
    from statement: borrowing Statement,
    into rows: inout ValueBlock,
    upTo byteLimit: Int = .max
  ) throws(BatchError) -> Collected {
    isUTF8 = statement.connection.isUTF8
    self.byteLimit = byteLimit
    obstacle = nil
    do throws(BatchError) {
      try unsafe withUnsafeMutablePointer(to: &rows) { rows throws(BatchError) in
        unsafe block = rows
        defer { unsafe block = nil }
        _ = try statement.step()
      }
      return .all
    } catch {
      switch obstacle {
      case .noRoom: return .tooMany
      case .full: return .some
      case .error(let obstacle): throw obstacle
      case nil: throw error
      }
    }
  }

  /// Collects some values of a row, preceded by the number of their first column.
  private func take(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Bool {
    guard let block = unsafe block else { return false }
    let first = Int(unsafe sqlite3_value_int(arguments[0]))
    let stride = unsafe block.pointee.capacity
    if first == 0 {
      guard unsafe block.pointee.count < stride else {
        obstacle = .noRoom
        return false
      }
      unsafe block.pointee.count += 1
    }
    let isUTF8 = isUTF8
    do throws(BatchError) {
      try unsafe block.pointee.withLastRow { kinds, words, bytes in
        var place = first * stride
        for index in 1..<arguments.count {
          let value = unsafe arguments[index]
          switch unsafe sqlite3_value_type(value) {
          case SQLITE_INTEGER:
            unsafe kinds[place] = ValueBlock.Kind.integer.rawValue
            unsafe words[place] = unsafe sqlite3_value_int64(value)
          case SQLITE_FLOAT:
            unsafe kinds[place] = ValueBlock.Kind.real.rawValue
            unsafe words[place] = Int64(bitPattern: unsafe sqlite3_value_double(value).bitPattern)
          case SQLITE_NULL: break
          case let storageClass:
            let isText = storageClass == SQLITE_TEXT
            // Reading a text as a blob avoids the copy that adds a terminating zero.
            let start =
              isText && !isUTF8
              ? unsafe UnsafeRawPointer(sqlite3_value_text(value))
              : unsafe sqlite3_value_blob(value)
            let count = unsafe start == nil ? 0 : Int(sqlite3_value_bytes(value))
            unsafe kinds[place] = (isText ? ValueBlock.Kind.text : .blob).rawValue
            unsafe words[place] = Int64(
              truncatingIfNeeded: UInt64(count) << 32 | UInt64(bytes.count)
            )
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
          }
          place += stride
        }
      }
      // Checked at the last values of a row, so that the current row is not read again.
      let isWhole = unsafe first + arguments.count - 1 == block.pointee.columnCount
      if isWhole, unsafe block.pointee.bytes.count >= byteLimit {
        obstacle = .full
        return false
      }
      return true
    } catch {
      obstacle = .error(error)
      return false
    }
  }
}
