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
/// | `bytea` | `{"$base64":true,"encoded":…}` | Base64 |
/// | anything else | the text form, as a string | the text form |
struct LineEncoder: Sendable {
  private let format: RowFormat
  /// The binary forms of the columns' values, apart from the columns, whose names would be copied for each value.
  private let forms: [PostgresColumn.Form]
  /// The text before each value in NDJSON: the name of its column.
  private let prefixes: [[UInt8]]
  /// The line of column names; empty for NDJSON.
  let header: [UInt8]

  init(_ format: RowFormat, _ columns: [PostgresColumn]) {
    self.format = format
    forms = columns.map(\.form)
    switch format {
    case .ndjson:
      header = []
      prefixes = columns.enumerated().map { index, column in
        var prefix: [UInt8] = [UInt8(ascii: index == 0 ? "{" : ",")]
        JSONString.append(column.name, to: &prefix)
        prefix.append(UInt8(ascii: ":"))
        return prefix
      }
    case .csv:
      var line: [UInt8] = []
      for (index, column) in columns.enumerated() {
        if index > 0 { line.append(UInt8(ascii: ",")) }
        var name = column.name
        _ = name.withUTF8 { unsafe CSVField.append(UnsafeRawBufferPointer($0), to: &line) }
      }
      header = line + [0x0d, 0x0a]
      prefixes = []
    }
  }

  /// Appends a row, whose next columns are those of the encoder.
  func append(_ row: inout RowReader.Row, _ bytes: Span<UInt8>, to line: inout [UInt8]) {
    let start = line.count
    for column in forms.indices {
      switch format {
      case .ndjson: line.append(contentsOf: prefixes[column])
      case .csv: if column > 0 { line.append(UInt8(ascii: ",")) }
      }
      if let place = row.next(in: bytes) {
        append(bytes.extracting(place), forms[column], to: &line)
      } else if format == .ndjson {
        line.append(contentsOf: "null".utf8)
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

  private func append(
    _ value: Span<UInt8>,
    _ form: PostgresColumn.Form,
    to line: inout [UInt8]
  ) {
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
        append(value[0] == UInt8(ascii: "-") ? -.infinity : .infinity, to: &line)
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
        case .csv: unsafe CSVField.append($0, to: &line)
        }
      }
    }
  }

  private func append(_ real: Double, to line: inout [UInt8]) {
    guard real.isNaN else { return NumberText.append(real, to: &line) }
    line.append(contentsOf: (format == .ndjson ? "\"NaN\"" : "NaN").utf8)
  }
}
#endif
