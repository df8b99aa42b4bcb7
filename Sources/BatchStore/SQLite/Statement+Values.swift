import BatchIdentifiers
import CSQLite

extension Statement {
  /// Appends columns of the current row, from `first` on, to a block as a row of its own.
  func appendRow(from first: Int, to block: inout ValueBlock) throws(BatchError) {
    let (columns, stride) = (block.columnCount, block.capacity)
    try unsafe block.withNextRow { kinds, words, bytes in
      for column in 0..<columns {
        let place = column * stride
        switch storageClass(at: first + column) {
        case SQLITE_INTEGER:
          unsafe kinds[place] = ValueBlock.Kind.integer.rawValue
          unsafe words[place] = integer(at: first + column)
        case SQLITE_FLOAT:
          unsafe kinds[place] = ValueBlock.Kind.real.rawValue
          unsafe words[place] = Int64(bitPattern: real(at: first + column).bitPattern)
        case SQLITE_NULL:
          unsafe kinds[place] = ValueBlock.Kind.null.rawValue
          unsafe words[place] = 0
        case let storageClass:
          let kind: ValueBlock.Kind = storageClass == SQLITE_TEXT ? .text : .blob
          let content = unsafe encodedBytes(at: first + column)
          unsafe kinds[place] = kind.rawValue
          unsafe words[place] = Int64(
            truncatingIfNeeded: UInt64(content.count) << 32 | UInt64(bytes.count)
          )
          unsafe bytes.append(contentsOf: content)
        }
      }
    }
  }
}
