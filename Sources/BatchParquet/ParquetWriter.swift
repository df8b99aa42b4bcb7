/// Writes rows as the bytes of a Parquet file, for any place that takes them in order.
///
///     var writer = try ParquetWriter(columns: [
///       ParquetColumn(name: "id", type: .int64), ParquetColumn(name: "name", type: .text),
///     ])
///     for order in orders {
///       try writer.append([.int64(order.id), .text(order.name)])
///       response.write(writer.takeBytes())
///     }
///     response.write(try writer.finish())
///
/// Rows are held until they fill a row group: about `groupByteCount` bytes, the encoded group besides, and some hundred
/// bytes for each group that was written. See ``ParquetParts`` for the rows of an `AsyncSequence`.
public struct ParquetWriter: ~Copyable, Sendable {
  private let columns: [ParquetColumn]
  private let file: ParquetFile
  private let groupByteCount: Int
  private var group: ParquetRowGroup
  private var bytes: [UInt8] = []
  /// The length of all bytes so far.
  private var byteCount = ParquetFile.header.count
  /// The descriptions of the groups, which the footer needs again, with their ends.
  private var descriptions: [(end: Int, bytes: ArraySlice<UInt8>)] = []

  /// Makes a writer.
  ///
  /// - Parameters:
  ///   - columns: The columns, at least one, with different names.
  ///   - compression: How pages are compressed.
  ///   - groupByteCount: How many bytes of values are in a row group, about.
  ///   - createdBy: The program that the file names.
  /// - Throws: ``ParquetError/invalidColumns(_:)``.
  public init(
    columns: [ParquetColumn],
    compression: ParquetCompression = .snappy,
    groupByteCount: Int = 8 << 20,
    createdBy: String = "batch"
  ) throws(ParquetError) {
    if columns.isEmpty { throw .invalidColumns("there are none") }
    if Set(columns.map(\.name)).count < columns.count {
      throw .invalidColumns("two have one name")
    }
    for column in columns {
      if case .decimal(let precision, let scale) = column.type,
        !(1...38).contains(precision) || !(0...precision).contains(scale)
      {
        throw .invalidColumns("\(column.name) has \(precision) digits, \(scale) of them fractional")
      }
    }
    self.columns = columns
    self.groupByteCount = max(1, groupByteCount)
    file = ParquetFile(columns: columns, createdBy: createdBy)
    group = ParquetRowGroup(columns: columns, compression: compression)
  }

  /// Appends a row, with a value for each column.
  ///
  /// - Parameter row: The values, in the order of the columns.
  /// - Throws: ``ParquetError/invalidRow(_:)`` if a column cannot hold its value; the row is not appended then, and others
  ///   can be.
  public mutating func append(_ row: [ParquetValue]) throws(ParquetError) {
    guard row.count == columns.count else {
      throw .invalidRow("it has \(row.count) values for \(columns.count) columns")
    }
    for (column, value) in zip(columns, row) where !column.type.holds(value) {
      throw .invalidRow("\(column.name) cannot hold \(value)")
    }
    for (index, value) in row.enumerated() {
      switch value {
      case .null: group.appendNull(to: index)
      case .boolean(let value): group.append(value, to: index)
      case .int64(let value): group.append(value, to: index)
      case .double(let value): group.append(value, to: index)
      case .text(let text): group.append(bytes: Array(text.utf8).span, to: index)
      case .bytes(let bytes): group.append(bytes: bytes.span, to: index)
      }
    }
    // NULLs have no bytes, but take room as well.
    if group.byteCount + 8 * group.rowCount >= groupByteCount { endGroup() }
  }

  /// The bytes since the last call; empty until a row group is full.
  public mutating func takeBytes() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  /// Ends the file.
  ///
  /// - Returns: The bytes since the last call of ``takeBytes()``, with the footer.
  /// - Throws: ``ParquetError/tooManyRowGroups(footerByteCount:)``.
  public consuming func finish() throws(ParquetError) -> [UInt8] {
    if group.rowCount > 0 { endGroup() }
    if descriptions.isEmpty { bytes = ParquetFile.header }
    var footer: [UInt8] = []
    do {
      try file.writeFooter(bodyByteCount: byteCount) { offset, count in
        // The footer reads nothing but descriptions.
        let description = descriptions.first { $0.end >= offset + count }
        let start = offset - ((description?.end ?? 0) - (description?.bytes.count ?? 0))
        return Array(description?.bytes.dropFirst(start).prefix(count) ?? [])
      } write: {
        footer += $0
      }
    } catch {
      throw error as? ParquetError ?? .damagedRowGroup(end: byteCount)
    }
    return bytes + footer
  }

  private mutating func endGroup() {
    if descriptions.isEmpty { bytes = ParquetFile.header }
    let encoded = group.encode()
    byteCount += encoded.count
    descriptions.append((byteCount, RowGroupDescription.bytes(endingIn: encoded)))
    bytes += encoded
  }
}

extension RowGroupDescription {
  /// The description at the end of an encoded row group, with its trailer.
  fileprivate static func bytes(endingIn group: [UInt8]) -> ArraySlice<UInt8> {
    let count = byteCount(trailer: Array(group.suffix(trailerByteCount))) ?? 0
    // A copy, or it would keep the whole group.
    return ArraySlice(Array(group.suffix(count + trailerByteCount)))
  }
}
