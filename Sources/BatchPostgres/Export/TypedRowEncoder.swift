#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchRuns

/// Reads the values of rows as the types that columns have in a Parquet file.
struct TypedRowEncoder: Sendable {
  private let forms: [PostgresColumn.Form]
  /// The types of the columns, as a job names them.
  let types: [Job.ColumnType]
  private let encoder: ParquetRowEncoder
  let format: RowGroups.Format

  init(_ columns: [PostgresColumn], as parquet: Job.Parquet) {
    forms = columns.map(\.form)
    types = columns.map { column in
      parquet.types.first { columns.column(named: $0.key) == column }?.value
        ?? Job.ColumnType(declared: column)
    }
    encoder = ParquetRowEncoder(
      columns.map(\.name),
      types,
      onMismatch: parquet.onMismatch,
      // A server sends no other text than UTF-8.
      invalidText: .fail
    )
    format = parquet.format(columns.map(\.name), types)
  }

  /// Room for the values of a row.
  func makeValues() -> ValueBlock { ValueBlock(columns: forms.count, capacity: 1, count: 1) }

  /// Appends a row, whose next columns are those of the encoder; `values` is from ``makeValues()``.
  ///
  /// - Throws: An error that concerns the row, if a value has no form in its type.
  func append(
    _ row: inout RowReader.Row,
    _ bytes: Span<UInt8>,
    number: Int,
    by values: inout ValueBlock,
    to rows: inout [UInt8]
  ) throws(BatchError) {
    values.removeValues()
    for column in forms.indices {
      guard let place = row.next(in: bytes) else { continue }
      let value = bytes.extracting(place)
      switch (forms[column], types[column]) {
      case (.boolean, .text):
        try values.set(0, column, .text, bytes: (value[0] == 0 ? "false" : "true").utf8)
      case (.number, .real), (.number, .integer):
        // The only numbers without exact digits are those that somebody asked for.
        let text = unsafe value.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
        if types[column] == .integer, let integer = Self.wholeNumber(text) {
          values.set(0, column, integer: integer)
        } else if types[column] == .real, let real = Double(text) {
          values.set(0, column, exactly: real)
        } else {
          try values.set(0, column, .text, bytes: value)
        }
      case (.text, .timestamptz) where value.count > 3 && value.hasUTCOffset:
        try values.set(0, column, .text, bytes: value.extracting(first: value.count - 3))
      default: try values.set(0, column, value, exactly: forms[column])
      }
    }
    _ = try encoder.append(values, 0, number: number, to: &rows)
  }

  /// A number without digits after the point but zeros.
  private static func wholeNumber(_ text: String) -> Int64? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.dropFirst().allSatisfy({ $0.allSatisfy { $0 == "0" } }) else { return nil }
    return Int64(parts[0])
  }
}

extension ValueBlock {
  /// Sets a value of a form; NaN stays one.
  fileprivate mutating func set(
    _ row: Int,
    _ column: Int,
    _ value: Span<UInt8>,
    exactly form: PostgresColumn.Form
  ) throws(BatchError) {
    switch form {
    case .real:
      set(row, column, exactly: Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self)))
    case .singleReal:
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      // By its shortest digits: somebody wrote 0.1, not 0.10000000149011612.
      set(row, column, exactly: Double("\(single)") ?? Double(single))
    default: try set(row, column, value, as: form)
    }
  }
}

extension Span<UInt8> {
  /// Whether it ends as the texts of timestamps in UTC do.
  fileprivate var hasUTCOffset: Bool {
    self[count - 3] == UInt8(ascii: "+") && self[count - 2] == UInt8(ascii: "0")
      && self[count - 1] == UInt8(ascii: "0")
  }
}

extension Job.ColumnType {
  /// The type that holds each value of a column; a `numeric` of any scale is text.
  init(declared column: PostgresColumn) {
    self =
      switch column.form {
      case .boolean: .boolean
      case .integer: .integer
      case .singleReal, .real: .real
      case .blob: .blob
      case .number:
        Job.ColumnType(column.type.replacing("numeric", with: "decimal")) ?? .text
      case .text:
        switch column.baseType {
        case 1082: .date
        case 1114: .timestamp
        case 1184: .timestamptz
        case 2950: .uuid
        case 114, 3802: .json
        default: .text
        }
      }
  }
}
#endif
