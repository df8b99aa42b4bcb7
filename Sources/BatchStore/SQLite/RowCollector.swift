import BatchIdentifiers
import CSQLite

/// The SQL aggregate `_batch_collect(column, value, …)`: puts the rows of a statement into a block.
///
/// A function has all values of a row at once. As columns of a result each would cost a call that
/// takes locks and checks what it is asked for, and each row one to go on, which is a quarter of the
/// time that reading a row of 20 columns takes.
@safe
final class RowCollector {
  private static let name = "_batch_collect"
  /// A function has 127 arguments at most, of which the first is the number of a column; see
  /// <https://www.sqlite.org/limits.html>.
  private static let mostValues = 126

  /// The block that rows are put into while a statement runs: that of the caller, in place.
  private var block: UnsafeMutablePointer<ValueBlock>?
  /// Whether texts are kept in UTF-8 and need not be converted.
  private var isUTF8 = true
  /// What keeps the next row from being taken.
  private var obstacle: Obstacle?

  /// How many bytes of texts and blobs are held; the row that comes to as many is the last.
  private var byteLimit = Int.max

  private enum Obstacle {
    case noRoom
    /// The bytes of texts and blobs are as many as are to be held.
    case full
    case error(BatchError)
  }

  /// Makes the aggregate known to a connection, which must not outlive this object.
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

  /// The result columns of a `SELECT` whose rows are collected, in the order in which it finds them.
  static func columns(_ expressions: [String]) -> String {
    stride(from: 0, to: expressions.count, by: mostValues)
      .map { first in
        let values = expressions[first..<min(first + mostValues, expressions.count)]
        return "\(name)(\(first), \(values.joined(separator: ", ")))"
      }
      .joined(separator: ", ")
  }

  /// What came of collecting.
  enum Collected {
    case all
    /// Not all: the block holds as many bytes as it shall.
    case some
    /// There is no room in the block for all rows.
    case tooMany
  }

  /// Runs a statement, and appends the rows that it finds to a block with as many columns, until its
  /// texts and blobs have `byteLimit` bytes.
  ///
  /// - Throws: What SQLite says, or `BatchError` of code `valueTooLarge`.
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

  /// Takes some values of a row, with the number of their first column before them.
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
            // As a blob a text comes without the copy that a zero at its end would cost.
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
      // Asked of a row whose last values these are: what SQLite has in hand is not read once more.
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
