import BatchIdentifiers
import CSQLite

extension Statement {
  /// Appends columns of the current row, from the first on, to a block as a row of its own.
  ///
  /// Asks for each value once and then looks into it, which costs half of asking for its type and
  /// its content: SQLite calls such a value unprotected, since it takes no mutex for it, and this
  /// connection has none to take.
  func appendRow(to block: inout ValueBlock) throws(BatchError) {
    let (columns, stride) = (block.columnCount, block.capacity)
    let isUTF8 = connection.isUTF8
    try unsafe block.withNextRow { kinds, words, bytes in
      var place = 0
      for column in 0..<columns {
        let value = unsafe sqlite3_column_value(statement, Int32(column))
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
  }
}
