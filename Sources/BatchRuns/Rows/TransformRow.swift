public import BatchIdentifiers

/// One row for a handler: the columns that were read, and the new values.
///
/// It is a position in the chunk's columns, not an object. Columns that are not set keep their
/// values, and a row with nothing set counts as unchanged.
public struct TransformRow: ~Copyable {
  private let rows: ChunkRows
  private let run: String
  @usableFromInline var index = 0
  var changes: RowChanges

  // The kinds and words of `rows`, accessible to code inlined into other modules: a handler reads
  // each value through them.
  @usableFromInline let kinds: [UInt8]
  @usableFromInline let words: [Int64]
  @usableFromInline let capacity: Int

  init(_ rows: ChunkRows, run: String, writes: Int) {
    self.rows = rows
    self.run = run
    kinds = rows.values.kinds
    words = rows.values.words
    capacity = rows.values.capacity
    changes = RowChanges(ofRows: rows.count, columns: writes)
  }

  /// The key of the row.
  public var key: PrimaryKey { rows.key(of: index) }

  /// A text that identifies the row and its run: `RUN:KEY`.
  ///
  /// A handler may be called again with a row that it has handled; use this text to deduplicate
  /// effects outside the store.
  public var idempotencyKey: String { rows.idempotencyKey(of: index, run: run) }

  // MARK: Reading

  /// The integer in a column, or nil for NULL; throws for other values.
  @inlinable public subscript(column: InputColumn<Int64>) -> Int64? {
    get throws(BatchError) {
      let place = column.index * capacity + index
      if kinds[place] == ValueBlock.integerKind { return words[place] }
      try requireNull(column.index, expected: "an integer")
      return nil
    }
  }

  /// The number in a column, or nil for NULL; throws for other values.
  @inlinable public subscript(column: InputColumn<Double>) -> Double? {
    get throws(BatchError) {
      let place = column.index * capacity + index
      if kinds[place] == ValueBlock.realKind {
        return Double(bitPattern: UInt64(bitPattern: words[place]))
      }
      if kinds[place] == ValueBlock.integerKind { return Double(words[place]) }
      try requireNull(column.index, expected: "a number")
      return nil
    }
  }

  @usableFromInline func requireNull(_ column: Int, expected: String) throws(BatchError) {
    let kind = rows.values.kind(index, column)
    guard kind == .null else {
      throw .unexpected(kind, in: rows.columns[column], expected: expected)
    }
  }

  /// The text in a column, or nil for NULL; throws for other values and for invalid UTF-8.
  public subscript(column: InputColumn<String>) -> String? {
    get throws(BatchError) {
      switch rows.values.value(index, column.index) {
      case .text(let text): return text
      case .invalidText: throw .invalidText(in: rows.columns[column.index], remedy: Self.remedy)
      default:
        try requireNull(column.index, expected: "text")
        return nil
      }
    }
  }

  /// The remedy for text that is not UTF-8.
  static let remedy = "read the column as SQLValue or [UInt8], in a handler of rows"

  /// The bytes of the text or blob in a column, or nil for NULL; throws for other values.
  public subscript(column: InputColumn<[UInt8]>) -> [UInt8]? {
    get throws(BatchError) {
      switch rows.values.kind(index, column.index) {
      case .text, .blob: Array(rows.values.bytes(index, column.index))
      case .null: nil
      case let kind: throw .unexpected(kind, in: rows.columns[column.index], expected: "bytes")
      }
    }
  }

  /// The value in a column.
  public subscript(column: InputColumn<SQLValue>) -> SQLValue {
    rows.values.value(index, column.index)
  }

  // MARK: Writing

  /// Sets a column to an integer, or to NULL.
  public mutating func set(_ column: OutputColumn<Int64>, to value: Int64?) {
    if let value {
      changes.values.set(index, column.index, integer: value)
    } else {
      changes.values.setNull(index, column.index)
    }
  }

  /// Sets a column to a number, or to NULL; NaN becomes NULL, as in SQLite.
  public mutating func set(_ column: OutputColumn<Double>, to value: Double?) {
    if let value {
      changes.values.set(index, column.index, real: value)
    } else {
      changes.values.setNull(index, column.index)
    }
  }

  /// Sets a column to a text, or to NULL.
  ///
  /// - Throws: `BatchError` of code `valueTooLarge` if the texts of the chunk exceed 4 GB.
  public mutating func set(_ column: OutputColumn<String>, to value: String?) throws(BatchError) {
    if let value {
      try changes.values.set(index, column.index, .text, bytes: value.utf8)
    } else {
      changes.values.setNull(index, column.index)
    }
  }

  /// Sets a column to a blob, or to NULL.
  ///
  /// - Throws: `BatchError` of code `valueTooLarge` if the blobs of the chunk exceed 4 GB.
  public mutating func set(_ column: OutputColumn<[UInt8]>, to value: [UInt8]?) throws(BatchError) {
    if let value {
      try changes.values.set(index, column.index, .blob, bytes: value)
    } else {
      changes.values.setNull(index, column.index)
    }
  }

  /// Sets a column to any value.
  ///
  /// - Throws: `BatchError` of code `valueTooLarge` if the texts of the chunk exceed 4 GB.
  public mutating func set(
    _ column: OutputColumn<SQLValue>,
    to value: SQLValue
  ) throws(BatchError) {
    try changes.values.set(index, column.index, value)
  }
}

struct EachRowHandler: RowHandler {
  let writes: Int
  let body: @Sendable (inout TransformRow) throws -> Void

  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    var row = TransformRow(rows, run: run, writes: writes)
    for index in 0..<rows.count {
      row.index = index
      do {
        try body(&row)
      } catch {
        row.changes.fail(index, error)
        if row.changes.failures.count > policy.limit { break }
      }
      if row.changes.values.bytes.count >= byteLimit {
        row.changes.values.count = index + 1
        break
      }
    }
    return row.changes
  }
}
