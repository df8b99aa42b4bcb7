/// Collects the rows of a row group, and encodes them without knowing where they will be in a file.
///
/// Values are appended row by row or column by column, as it suits their source.
@safe
package struct ParquetRowGroup: ~Copyable, @unchecked Sendable {
  private let columns: UnsafeMutablePointer<ColumnValues>
  private let columnCount: Int
  private let fingerprint: Int
  private let compression: ParquetCompression
  /// How many bytes the values would need in PLAIN encoding.
  package private(set) var byteCount = 0

  package init(columns: [ParquetColumn], compression: ParquetCompression) {
    columnCount = columns.count
    fingerprint = Schema.fingerprint(columns)
    self.compression = compression
    unsafe self.columns = .allocate(capacity: columns.count)
    for (index, column) in columns.enumerated() {
      unsafe (self.columns + index).initialize(to: ColumnValues(column.type))
    }
  }

  deinit {
    unsafe columns.deinitialize(count: columnCount)
    unsafe columns.deallocate()
  }

  /// The rows of the first column.
  package var rowCount: Int { columnCount == 0 ? 0 : unsafe columns[0].rowCount }

  package mutating func appendNull(to column: Int) {
    precondition(column >= 0 && column < columnCount)
    unsafe columns[column].appendNull()
  }

  package mutating func append(_ value: Bool, to column: Int) {
    precondition(column >= 0 && column < columnCount)
    unsafe columns[column].append(value ? 1 : 0, as: .booleans)
    byteCount &+= 1
  }

  /// Appends an integer, an unscaled decimal, days, or microseconds.
  package mutating func append(_ value: Int64, to column: Int) {
    precondition(column >= 0 && column < columnCount)
    unsafe columns[column].append(UInt64(bitPattern: value), as: .integers)
    byteCount &+= 8
  }

  package mutating func append(_ value: Double, to column: Int) {
    precondition(column >= 0 && column < columnCount)
    unsafe columns[column].append(value.bitPattern, as: .doubles)
    byteCount &+= 8
  }

  /// Appends text, bytes, JSON, the 16 bytes of a UUID, or a decimal in big-endian order.
  ///
  /// A decimal may be shorter than its precision needs.
  package mutating func append(bytes: UnsafeRawBufferPointer, to column: Int) {
    precondition(column >= 0 && column < columnCount && bytes.count < 1 << 30)
    unsafe columns[column].append(bytes)
    byteCount &+= bytes.count &+ 4
  }

  package mutating func append(bytes: Span<UInt8>, to column: Int) {
    unsafe bytes.withUnsafeBytes { unsafe append(bytes: $0, to: column) }
  }

  /// The row group with its description; every column must have as many rows as the first.
  ///
  /// Then it has no rows, but keeps its memory for those of another row group.
  package mutating func encode() -> [UInt8] {
    var output = RowGroupOutput(compression)
    var description = RowGroupDescription(rowCount: rowCount, fingerprint: fingerprint)
    for index in 0..<columnCount {
      unsafe precondition(columns[index].rowCount == rowCount)
      unsafe description.chunks.append(output.write(columns[index]))
    }
    for index in 0..<columnCount { unsafe columns[index].removeAll() }
    byteCount = 0
    description.write(to: &output.bytes)
    return output.bytes.array
  }
}
