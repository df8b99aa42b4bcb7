/// The column chunks of a row group, one after the other.
struct RowGroupOutput: ~Copyable {
  /// `Encoding` of parquet.thrift.
  enum Encoding: Int {
    case plain = 0
    case runs = 3
    case delta = 5
    case deltaLengths = 6
    case dictionary = 8
  }

  var bytes = Store<UInt8>()
  private let compression: ParquetCompression
  private var page = Store<UInt8>()
  private var compressed = Store<UInt8>()
  private var uncompressedCount = 0

  init(_ compression: ParquetCompression) { self.compression = compression }

  mutating func write(_ column: borrowing ColumnValues) -> ChunkDescription {
    column.isOfArrays ? write(column.arrays, column) : write(column.words, column)
  }

  /// Writes the values of a column in the encoding that needs the fewest bytes.
  private mutating func write<List: ValueList & ~Copyable>(
    _ list: borrowing List,
    _ column: borrowing ColumnValues
  ) -> ChunkDescription {
    let (type, start) = (column.type, bytes.count)
    let dictionary = ValueDictionary(list, type)
    let encoding = encoding(list, dictionary, type)
    uncompressedCount = 0
    if encoding == .dictionary {
      page.removeAll()
      let entryCount = dictionary.entries.count
      dictionary.entries.writePlain(0..<entryCount, type, to: &page)
      writePage(kind: 2) { header in
        header.structure(7) { fields in
          fields.i32(1, entryCount)
          fields.i32(2, Encoding.plain.rawValue)
        }
      }
    }
    let dictionaryByteCount = bytes.count - start
    for part in column.pages(ofIndices: encoding == .dictionary) {
      page.removeAll()
      column.writeLevels(part, to: &page)
      switch encoding {
      case .dictionary:
        let width = dictionary.indexWidth
        page.append(UInt8(width))
        let first = unsafe dictionary.indices.base + part.values.lowerBound
        unsafe Bits.writeHybrid(first, part.values.count, width: width, to: &page)
      case .plain: list.writePlain(part.values, type, to: &page)
      default: list.writeDelta(part.values, type, to: &page)
      }
      writePage(kind: 0) { header in
        header.structure(5) { fields in
          fields.i32(1, part.rows.count)
          fields.i32(2, encoding.rawValue)
          fields.i32(3, Encoding.runs.rawValue)
          fields.i32(4, Encoding.runs.rawValue)
        }
      }
    }
    let statistics =
      dictionary.isComplete ? dictionary.entries.statistics(type) : list.statistics(type)
    return ChunkDescription(
      codec: compression.codec,
      encoding: encoding,
      dictionaryByteCount: dictionaryByteCount,
      byteCount: bytes.count - start,
      uncompressedByteCount: uncompressedCount,
      statistics: statistics.thrift(nullCount: column.rowCount - column.valueCount)
    )
  }

  /// PLAIN, which every reader knows best, unless another saves an eighth.
  private mutating func encoding<List: ValueList & ~Copyable>(
    _ list: borrowing List,
    _ dictionary: borrowing ValueDictionary<List>,
    _ type: ParquetType
  ) -> Encoding {
    let plainCount = list.plainCount(type)
    var (best, encoding) = (plainCount - plainCount / 8, Encoding.plain)
    if type != .boolean, dictionary.isComplete, dictionary.byteCount(type) < best {
      (best, encoding) = (dictionary.byteCount(type), .dictionary)
    }
    // A small dictionary spares the attempt with differences.
    if best > plainCount / 4, let delta = type.deltaEncoding {
      page.removeAll()
      list.writeDelta(0..<list.count, type, to: &page)
      if page.count < best { return delta }
    }
    return encoding
  }

  /// Writes a page after its `PageHeader`, of which `kind` is the first field.
  private mutating func writePage(kind: Int, _ details: (inout Thrift) -> Void) {
    compressed.removeAll()
    compression.compress(page, to: &compressed)
    var header = Thrift()
    header.element { fields in
      fields.i32(1, kind)
      fields.i32(2, page.count)
      fields.i32(3, compressed.count)
      details(&fields)
    }
    bytes.append(header.bytes)
    bytes.append(compressed)
    uncompressedCount += header.bytes.count + page.count
  }
}
