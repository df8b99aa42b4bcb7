public import BatchIdentifiers

/// A column of a chunk's rows, for loops over many values.
///
/// Where ``isNull`` is true, the value is 0 and has no meaning.
public struct NumberColumn<Number: FixedWidthNumber>: Sendable {
  /// The values, one per row.
  public var values: [Number]
  /// Whether each value is NULL; empty if none is.
  public var isNull: [Bool]

  /// Makes a column.
  public init(_ values: [Number], isNull: [Bool] = []) {
    self.values = values
    self.isNull = isNull
  }
}

/// `Int64` or `Double`.
public protocol FixedWidthNumber: ColumnValue, Numeric, BitwiseCopyable {}
extension Int64: FixedWidthNumber {}
extension Double: FixedWidthNumber {}

/// A column of texts: the bytes of all texts, and the range of each.
public struct TextColumn: Sendable {
  /// The bytes of all texts, in any order.
  public let bytes: [UInt8]
  /// The range of each text in ``bytes``; nil for NULL.
  public let ranges: [Range<Int>?]

  /// The text of a row; nil for NULL.
  public subscript(row: Int) -> String? {
    ranges[row].map { String(decoding: bytes[$0], as: UTF8.self) }
  }
}

/// The rows of a chunk for a handler: arrays of the columns to read, and the columns to set.
///
/// A row with no column set, or passed to ``leave(_:)``, stays unchanged and counts as such.
public struct TransformChunk: ~Copyable {
  private let rows: ChunkRows
  private let run: String
  private let writes: [String]
  fileprivate var changes: RowChanges
  fileprivate var left: [Int] = []
  fileprivate var failed: [(row: Int, error: any Error)] = []

  init(_ rows: ChunkRows, run: String, writes: [String]) {
    self.rows = rows
    self.run = run
    self.writes = writes
    changes = RowChanges(ofRows: rows.count, columns: writes.count)
  }

  /// The number of rows.
  public var count: Int { rows.count }

  /// The key of a row.
  public func key(of row: Int) -> PrimaryKey { rows.key(of: row) }

  /// A text that identifies a row and its run; see ``TransformRow/idempotencyKey``.
  public func idempotencyKey(of row: Int) -> String { rows.idempotencyKey(of: row, run: run) }

  // MARK: Reading

  /// The integers in a column; throws if the column has other values than integers and NULL.
  ///
  /// - Complexity: Linear in the number of rows, since the column is copied.
  public subscript(column: InputColumn<Int64>) -> NumberColumn<Int64> {
    get throws(BatchError) {
      let range = rows.values.range(ofColumn: column.index)
      let isNull = try nulls(column.index, expected: "an integer") { $0 == .integer }
      return NumberColumn(Array(rows.values.words[range]), isNull: isNull)
    }
  }

  /// The numbers in a column; throws if the column has other values than numbers and NULL.
  ///
  /// - Complexity: Linear in the number of rows, since the column is copied.
  public subscript(column: InputColumn<Double>) -> NumberColumn<Double> {
    get throws(BatchError) {
      let isNull = try nulls(column.index, expected: "a number") {
        $0 == .real || $0 == .integer
      }
      let range = rows.values.range(ofColumn: column.index)
      let integer = ValueBlock.Kind.integer.rawValue
      let values = zip(rows.values.words[range], rows.values.kinds[range]).map { word, kind in
        kind == integer ? Double(word) : Double(bitPattern: UInt64(bitPattern: word))
      }
      return NumberColumn(values, isNull: isNull)
    }
  }

  /// The texts in a column; throws if it has other values than texts and NULL, or invalid UTF-8.
  public subscript(column: InputColumn<String>) -> TextColumn {
    get throws(BatchError) {
      _ = try nulls(column.index, expected: "text") { $0 == .text }
      for row in 0..<count where rows.values.isInvalidText(row, column.index) {
        let name = rows.columns[column.index]
        throw BatchError.invalidText(in: name, remedy: TransformRow.remedy).about(key(of: row))
      }
      let ranges = (0..<count).map { row -> Range<Int>? in
        rows.values.kind(row, column.index) == .null
          ? nil : ValueBlock.range(rows.values.word(row, column.index))
      }
      return TextColumn(bytes: rows.values.bytes, ranges: ranges)
    }
  }

  /// Returns which values are NULL, or an empty array if none is.
  private func nulls(
    _ column: Int,
    expected: String,
    _ isExpected: (ValueBlock.Kind) -> Bool
  ) throws(BatchError) -> [Bool] {
    var hasNull = false
    for row in 0..<count {
      let kind = rows.values.kind(row, column)
      if kind == .null {
        hasNull = true
      } else if !isExpected(kind) {
        let name = rows.columns[column]
        throw BatchError.unexpected(kind, in: name, expected: expected).about(key(of: row))
      }
    }
    guard hasNull else { return [] }
    return (0..<count).map { rows.values.kind($0, column) == .null }
  }

  // MARK: Writing

  /// Sets a column of all rows to integers.
  ///
  /// - Throws: `BatchError` of code `handlerFailed` if the number of values is not that of the
  ///   rows.
  public mutating func set(
    _ column: OutputColumn<Int64>,
    to values: NumberColumn<Int64>
  ) throws(BatchError) {
    try replace(column.index, .integer, words: values.values, values.isNull)
  }

  /// Sets a column of all rows to numbers; NaN becomes NULL, as in SQLite.
  ///
  /// - Throws: `BatchError` of code `handlerFailed` if the number of values is not that of the
  ///   rows.
  public mutating func set(
    _ column: OutputColumn<Double>,
    to values: NumberColumn<Double>
  ) throws(BatchError) {
    let words = values.values.map { Int64(bitPattern: $0.bitPattern) }
    try replace(column.index, .real, words: words, values.isNull)
    for (row, value) in values.values.enumerated() where value.isNaN {
      changes.values.setNull(row, column.index)
    }
  }

  private mutating func replace(
    _ column: Int,
    _ kind: ValueBlock.Kind,
    words: [Int64],
    _ isNull: [Bool]
  ) throws(BatchError) {
    try check(words.count, column)
    if isNull.isEmpty {
      let kinds = [UInt8](repeating: kind.rawValue, count: count)
      return changes.values.replace(column: column, kinds: kinds, words: words)
    }
    try check(isNull.count, column)
    let null = ValueBlock.Kind.null.rawValue
    let kinds = isNull.map { $0 ? null : kind.rawValue }
    changes.values.replace(column: column, kinds: kinds, words: words)
  }

  /// Sets a column of all rows to texts, or to NULL where they are nil.
  ///
  /// - Throws: `BatchError` of code `handlerFailed` if the number of values is not that of the
  ///   rows.
  public mutating func set(
    _ column: OutputColumn<String>,
    to values: [String?]
  ) throws(BatchError) {
    try check(values.count, column.index)
    for (row, value) in values.enumerated() {
      if let value {
        try changes.values.set(row, column.index, .text, bytes: value.utf8)
      } else {
        changes.values.setNull(row, column.index)
      }
    }
  }

  /// Leaves a row unchanged, even if columns of it were set.
  public mutating func leave(_ row: Int) { left.append(row) }

  /// Makes a single row fail, even if columns of it were set.
  ///
  /// - Parameters:
  ///   - row: The index of the row.
  ///   - error: The reason of the failure. If it is a `BatchError` of code `retryLater`, the
  ///     handler is called again for such rows after a delay, according to the job key `retry`; the
  ///     values set for the other rows are kept.
  public mutating func fail(_ row: Int, with error: any Error) { failed.append((row, error)) }

  private func check(_ number: Int, _ column: Int) throws(BatchError) {
    guard number == count else {
      throw BatchError(
        .handlerFailed,
        "the handler set \(number.grouped) values of column \(writes[column].quotedForMessage) for"
          + " \(count.grouped) rows"
      )
    }
  }
}

struct EachChunkHandler: RowHandler {
  let writes: [String]
  let body: @Sendable (inout TransformChunk) throws -> Void

  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    // The handler computes all rows at once, so only the size of the rows read limits their number.
    var chunk = TransformChunk(rows, run: run, writes: writes)
    do {
      try body(&chunk)
    } catch {
      throw BatchError(thrownByHandler: error)
    }
    for row in chunk.left where row >= 0 && row < rows.count { chunk.changes.values.unset(row) }
    chunk.failed.sort { $0.row < $1.row }
    var last = -1
    for (row, error) in chunk.failed where row > last && row < rows.count {
      chunk.changes.fail(row, error)
      last = row
    }
    return chunk.changes
  }
}
