/// What is in a file besides row groups: ``header``, then they, and then a footer.
package struct ParquetFile: Sendable {
  /// The first bytes, which are also the last ones.
  package static let header = Array("PAR1".utf8)
  /// A footer is written in pieces of about this size.
  private static let pieceCount = 1 << 20

  private let columns: [ParquetColumn]
  private let fingerprint: Int
  private let metadata: [(key: String, value: String)]
  private let createdBy: String

  package init(
    columns: [ParquetColumn],
    metadata: [(key: String, value: String)] = [],
    createdBy: String
  ) {
    self.columns = columns
    fingerprint = Schema.fingerprint(columns)
    self.metadata = metadata
    self.createdBy = createdBy
  }

  /// Writes the footer of a body, which is all from the header to the last row group.
  ///
  /// Only descriptions are read: all of them backwards, and then once more in the footer's order. So
  /// one is in memory at a time, and 8 bytes of every other.
  ///
  /// - Returns: The number of rows.
  /// - Throws: ``ParquetError``, and what `read` and `write` throw.
  @discardableResult
  package func writeFooter(
    bodyByteCount: Int,
    read: (_ offset: Int, _ count: Int) throws -> [UInt8],
    write: ([UInt8]) throws -> Void
  ) throws -> Int {
    var (ends, rowCount) = ([Int](), 0)
    var end = bodyByteCount
    while end != Self.header.count {
      let (start, description) = try rowGroup(end: end, read)
      ends.append(end)
      rowCount += description.rowCount
      end = start
    }

    var thrift = Thrift()
    thrift.i32(1, 2)
    thrift.list(2, .structure, count: columns.count + 1)
    Schema.write(columns, to: &thrift)
    thrift.i64(3, rowCount)
    thrift.list(4, .structure, count: ends.count)
    var written = 0
    for (ordinal, end) in ends.reversed().enumerated() {
      let (start, description) = try rowGroup(end: end, read)
      thrift.element {
        description.write(to: &$0, columns: columns, offset: start, ordinal: ordinal)
      }
      if thrift.bytes.count >= Self.pieceCount {
        written += thrift.bytes.count
        try write(thrift.bytes.array)
        thrift.bytes.removeAll()
      }
    }
    writeEnd(to: &thrift)

    let byteCount = written + thrift.bytes.count
    guard let length = UInt32(exactly: byteCount), length <= Int32.max else {
      throw ParquetError.tooManyRowGroups(footerByteCount: byteCount)
    }
    thrift.bytes.append(littleEndian: length)
    thrift.bytes.append(Self.header)
    try write(thrift.bytes.array)
    return rowCount
  }

  /// The start and the description of the row group that ends at an offset.
  private func rowGroup(
    end: Int,
    _ read: (_ offset: Int, _ count: Int) throws -> [UInt8]
  ) throws -> (start: Int, RowGroupDescription) {
    let damage = ParquetError.damagedRowGroup(end: end)
    let trailerCount = RowGroupDescription.trailerByteCount
    let room = end - Self.header.count - trailerCount
    guard room >= 0,
      let count = try RowGroupDescription.byteCount(
        trailer: read(end - trailerCount, trailerCount)
      ),
      count <= room,
      let description = try RowGroupDescription(
        read(end - trailerCount - count, count + trailerCount)
      ),
      description.chunksByteCount <= room - count
    else { throw damage }
    guard description.fingerprint == fingerprint, description.chunks.count == columns.count else {
      throw ParquetError.otherColumns(end: end)
    }
    return (end - trailerCount - count - description.chunksByteCount, description)
  }

  private func writeEnd(to thrift: inout Thrift) {
    if !metadata.isEmpty {
      thrift.list(5, .structure, count: metadata.count)
      for (key, value) in metadata {
        thrift.element { fields in
          fields.binary(1, Array(key.utf8))
          fields.binary(2, Array(value.utf8))
        }
      }
    }
    thrift.binary(6, Array(createdBy.utf8))
    // Bounds of statistics are in the order of their types; without this, readers ignore them.
    thrift.list(7, .structure, count: columns.count)
    for _ in columns { thrift.element { $0.structure(1) } }
    thrift.end()
  }
}

extension RowGroupDescription {
  /// `RowGroup` of parquet.thrift.
  fileprivate func write(
    to fields: inout Thrift,
    columns: [ParquetColumn],
    offset: Int,
    ordinal: Int
  ) {
    fields.list(1, .structure, count: chunks.count)
    var start = offset
    for (chunk, column) in zip(chunks, columns) {
      fields.element { fields in
        // Its place, where nothing but the metadata below is.
        fields.i64(2, 0)
        fields.structure(3) { chunk.write(column, to: &$0, offset: start, rowCount: rowCount) }
      }
      start += chunk.byteCount
    }
    fields.i64(2, chunks.reduce(0) { $0 + $1.uncompressedByteCount })
    fields.i64(3, rowCount)
    fields.i64(5, offset)
    fields.i64(6, start - offset)
    if ordinal <= Int16.max { fields.i16(7, ordinal) }
  }
}

extension ChunkDescription {
  /// `ColumnMetaData` of parquet.thrift.
  fileprivate func write(
    _ column: ParquetColumn,
    to fields: inout Thrift,
    offset: Int,
    rowCount: Int
  ) {
    fields.i32(1, column.type.physicalType)
    var encodings = [encoding, .runs]
    if dictionaryByteCount > 0 { encodings.append(.plain) }
    fields.list(2, .i32, count: encodings.count)
    for encoding in encodings { fields.element(encoding.rawValue) }
    fields.list(3, .binary, count: 1)
    fields.element(Array(column.name.utf8))
    fields.i32(4, codec)
    fields.i64(5, rowCount)
    fields.i64(6, uncompressedByteCount)
    fields.i64(7, byteCount)
    fields.i64(9, offset + dictionaryByteCount)
    if dictionaryByteCount > 0 { fields.i64(11, offset) }
    fields.structure(12, written: statistics)
  }
}
