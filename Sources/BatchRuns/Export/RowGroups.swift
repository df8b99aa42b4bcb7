package import BatchIdentifiers
package import BatchParquet

/// The rows of a Parquet file, which are written in groups.
package struct RowGroups: RowGrouping, ~Copyable {
  /// What the job states of a file.
  package struct Format: Sendable {
    package let columns: [ParquetColumn]
    package let compression: ParquetCompression
    /// The program that writes it, as readers show it.
    package let createdBy: String

    /// How many rows fill a group.
    package let rowLimit: Int

    package init(
      columns: [ParquetColumn],
      compression: ParquetCompression,
      createdBy: String,
      rowLimit: Int = 1 << 17
    ) {
      self.columns = columns
      self.compression = compression
      self.createdBy = createdBy
      self.rowLimit = rowLimit
    }
  }

  /// The first bytes of a file.
  package static let header = ParquetFile.header
  /// How many bytes the values of a group take.
  private static let byteLimit = 16 << 20

  private let format: Format
  private let byteLimit: Int
  private var group: ParquetRowGroup
  /// How many texts of the group are not UTF-8.
  private var invalidTexts = 0

  /// A group may be limited to fewer bytes of values, so that a short file has room for it.
  package init(_ format: Format, atMost limit: Int = .max) {
    self.format = format
    byteLimit = min(limit, Self.byteLimit)
    group = ParquetRowGroup(columns: format.columns, compression: format.compression)
  }

  private var isFull: Bool {
    group.rowCount >= format.rowLimit || group.byteCount >= byteLimit
  }

  package mutating func append(
    _ bytes: [UInt8],
    _ write: (RowGroup, _ last: Int) throws(BatchError) -> Void
  ) throws(BatchError) {
    var rows = TypedRows(bytes)
    while !rows.isAtEnd {
      let (number, invalid) = rows.next()
      for (index, column) in format.columns.enumerated() { append(&rows, column.type, to: index) }
      invalidTexts += invalid
      if isFull, let group = takeGroup() { try write(group, number) }
    }
  }

  package mutating func takeGroup() -> RowGroup? {
    guard group.rowCount > 0 else { return nil }
    defer { invalidTexts = 0 }
    return RowGroup(bytes: group.encode(), invalidTexts: invalidTexts)
  }

  private mutating func append(_ rows: inout TypedRows, _ type: ParquetType, to index: Int) {
    let mark = rows.mark()
    guard mark > 0 else { return group.appendNull(to: index) }
    switch type {
    case .boolean: group.append(mark == 2, to: index)
    case .double: group.append(rows.real(), to: index)
    case .int64, .date, .timestamp: group.append(rows.integer(), to: index)
    case .decimal(let precision, _) where precision <= 18:
      group.append(rows.integer(), to: index)
    case .decimal, .text, .bytes, .json, .uuid:
      unsafe rows.withArray { unsafe group.append(bytes: $0, to: index) }
    }
  }
}

extension RowGroups.Format {
  /// Appends the footer of a file with all its groups, unless it has one.
  func writeEnd(to file: ExportFile) throws(BatchError) {
    let parquet = ParquetFile(columns: columns, createdBy: createdBy)
    let end = file.count
    do {
      try parquet.writeFooter(bodyByteCount: end) {
        try file.read($1, at: $0)
      } write: {
        try file.append($0)
      }
    } catch let error as BatchError {
      throw error
    } catch ParquetError.damagedRowGroup(end: end) {
      // A killed run has written the footer, or something else has written to the file.
      let mark = ParquetFile.header
      guard end > mark.count, try file.read(mark.count, at: end - mark.count) == mark else {
        throw file.isDamaged
      }
    } catch {
      throw file.isDamaged
    }
  }
}
