#if PostgreSQL
import BatchRuns
import BatchIdentifiers

/// Writes rows as lines, in the form of an export from SQLite.
///
/// | value | NDJSON | CSV |
/// | --- | --- | --- |
/// | NULL | `null` | an empty field; an empty text is `""` |
/// | `boolean` | `true`, `false` | the same |
/// | an integer or a `numeric` | all its digits | the same |
/// | `real`, `double precision` | the shortest digits | the same |
/// | an infinity, a NaN of these | `1e999`, `"NaN"` | `1e999`, `NaN` |
/// | an infinity, a NaN of a `numeric` | `"Infinity"`, `"NaN"` | `Infinity`, `NaN` |
/// | `bytea` | `{"$base64":true,"encoded":…}` | Base64; an empty one is `""` |
/// | anything else | the text form, as a string | the text form |
struct LineEncoder: Sendable {
  private let format: RowFormat
  private let field: CSVField
  /// The binary forms of the columns' values, apart from the columns, whose names would be copied for each value.
  private let forms: [PostgresColumn.Form]
  /// The text before each value in NDJSON: the name of its column.
  private let prefixes: [[UInt8]]
  private let names: [String]
  /// Whether the texts of a column are JSON; empty if they are in none.
  private let isJSON: [Bool]
  /// The line of column names; empty for NDJSON.
  let header: [UInt8]

  init(_ format: LineFormat, _ columns: [PostgresColumn]) {
    self.format = format.format
    field = format.field
    forms = columns.map(\.form)
    names = columns.map(\.name)
    let json = format.json.compactMap { columns.column(named: $0) }
    isJSON = json.isEmpty ? [] : columns.map(json.contains)
    header = format.header(names)
    prefixes = names.enumerated().map { [field] index, name in
      guard format.format == .ndjson else { return index == 0 ? [] : [field.delimiter] }
      var prefix: [UInt8] = [UInt8(ascii: index == 0 ? "{" : ",")]
      JSONString.append(name, to: &prefix)
      prefix.append(UInt8(ascii: ":"))
      return prefix
    }
  }

  /// Appends a row, whose next columns are those of the encoder.
  ///
  /// - Throws: An error that concerns the row, if a text that should be JSON is none.
  func append(
    _ row: inout RowReader.Row,
    _ bytes: Span<UInt8>,
    to line: inout [UInt8]
  ) throws(BatchError) {
    let start = line.count
    for column in forms.indices {
      line.append(contentsOf: prefixes[column])
      if let place = row.next(in: bytes) {
        let value = bytes.extracting(place)
        if isJSON.isEmpty || !isJSON[column] {
          append(value, forms[column], to: &line)
        } else {
          try appendJSON(value, column, to: &line)
        }
      } else {
        switch format {
        case .ndjson: line.append(contentsOf: "null".utf8)
        case .csv: field.appendNull(to: &line)
        }
      }
    }
    switch format {
    case .ndjson:
      line.append(UInt8(ascii: "}"))
      line.append(0x0a)
    case .csv:
      // Most readers skip an empty line.
      if line.count == start { line.append(contentsOf: "\"\"".utf8) }
      line.append(0x0d)
      line.append(0x0a)
    }
  }

  private func appendJSON(
    _ value: Span<UInt8>,
    _ column: Int,
    to line: inout [UInt8]
  ) throws(BatchError) {
    switch forms[column] {
    case .text:
      guard JSONText.append(value, to: &line) else {
        throw .invalidJSON(in: names[column], value)
      }
    case .blob: throw .invalidJSON(in: names[column], nil)
    default: append(value, forms[column], to: &line)
    }
  }

  /// The text of a value in a column, without quotes.
  func text(_ value: Span<UInt8>, _ column: Int) -> [UInt8] {
    var text: [UInt8] = []
    if forms[column] == .text {
      text.append(copying: value)
    } else {
      append(value, forms[column], to: &text)
    }
    return text
  }

  private func append(
    _ value: Span<UInt8>,
    _ form: PostgresColumn.Form,
    to line: inout [UInt8]
  ) {
    let start = line.count
    switch form {
    case .boolean: line.append(contentsOf: (value[0] == 0 ? "false" : "true").utf8)
    case .integer: NumberText.append(value.bigEndianInteger() ?? 0, to: &line)
    case .singleReal:
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      if single.isFinite {
        line.append(contentsOf: single.description.utf8)
      } else {
        append(Double(single), to: &line)
      }
    case .real:
      append(Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self)), to: &line)
    case .number:
      // Only `NaN`, `Infinity` and `-Infinity` have no digits.
      switch value[value.count - 1] {
      case UInt8(ascii: "N"): append(.nan, to: &line)
      case UInt8(ascii: "y"):
        // Unlike in binary floating point, 1e999 is another number.
        if format == .ndjson { line.append(UInt8(ascii: "\"")) }
        line.append(copying: value)
        if format == .ndjson { line.append(UInt8(ascii: "\"")) }
      default: line.append(copying: value)
      }
    case .blob:
      if format == .ndjson { line.append(contentsOf: #"{"$base64":true,"encoded":""#.utf8) }
      unsafe value.withUnsafeBytes { unsafe Base64.append($0, to: &line) }
      if format == .ndjson { line.append(contentsOf: #""}"#.utf8) }
    case .text:
      _ = unsafe value.withUnsafeBytes {
        switch format {
        case .ndjson: unsafe JSONString.append($0, to: &line)
        case .csv: unsafe field.append($0, to: &line)
        }
      }
      return
    }
    if format == .csv { field.close(from: start, in: &line) }
  }

  private func append(_ real: Double, to line: inout [UInt8]) {
    guard real.isNaN else { return NumberText.append(real, to: &line) }
    line.append(contentsOf: (format == .ndjson ? "\"NaN\"" : "NaN").utf8)
  }
}
#endif
