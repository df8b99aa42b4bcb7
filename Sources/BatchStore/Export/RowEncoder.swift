import BatchIdentifiers
import CSQLite

/// Writes the current row of a statement as a line.
///
/// NULL is `null` or an empty field, an empty text is `""`. A blob is
/// `{"$base64": true, "encoded": …}` in NDJSON and Base64 in CSV. Ill-formed UTF-8 is repaired with
/// U+FFFD. An infinity is `1e999`, which JSON readers parse as one.
struct RowEncoder {
  private let format: RowFormat
  /// The text before each value: in NDJSON the column's name.
  private let prefixes: [[UInt8]]
  /// The header line, empty in NDJSON.
  let header: [UInt8]
  /// The columns whose 1 and 0 mean true and false.
  private let booleans: Set<Int>

  init(format: RowFormat, columns: [String], booleans: Set<Int> = []) {
    self.format = format
    self.booleans = booleans
    switch format {
    case .ndjson:
      header = []
      prefixes = columns.enumerated().map { index, name in
        var prefix: [UInt8] = index == 0 ? [UInt8(ascii: "{")] : [UInt8(ascii: ",")]
        JSONString.append(name, to: &prefix)
        prefix.append(UInt8(ascii: ":"))
        return prefix
      }
    case .csv:
      var line: [UInt8] = []
      for (index, name) in columns.enumerated() {
        if index > 0 { line.append(UInt8(ascii: ",")) }
        var name = name
        name.withUTF8 { bytes in
          unsafe CSVField.append(UnsafeRawBufferPointer(bytes), to: &line)
        }
      }
      header = line + [0x0d, 0x0a]
      prefixes = columns.indices.map { $0 == 0 ? [] : [UInt8(ascii: ",")] }
    }
  }

  /// Appends the current row, whose columns from 0 are those of the encoder.
  func append(_ row: borrowing Statement, to line: inout [UInt8]) {
    for column in prefixes.indices {
      line.append(contentsOf: prefixes[column])
      if booleans.contains(column), row.storageClass(at: column) == SQLITE_INTEGER,
        0...1 ~= row.integer(at: column)
      {
        line.append(contentsOf: (row.integer(at: column) == 1 ? "true" : "false").utf8)
        continue
      }
      switch format {
      case .ndjson: Self.appendJSON(row, column, to: &line)
      case .csv: Self.appendCSV(row, column, to: &line)
      }
    }
    switch format {
    case .ndjson:
      line.append(UInt8(ascii: "}"))
      line.append(0x0a)
    case .csv:
      // Most readers skip an empty line.
      if prefixes.count == 1, line.last ?? 0x0a == 0x0a { line.append(contentsOf: "\"\"".utf8) }
      line.append(0x0d)
      line.append(0x0a)
    }
  }

  private static func appendJSON(
    _ row: borrowing Statement,
    _ column: Int,
    to line: inout [UInt8]
  ) {
    switch row.storageClass(at: column) {
    case SQLITE_INTEGER: NumberText.append(row.integer(at: column), to: &line)
    case SQLITE_FLOAT: NumberText.append(row.real(at: column), to: &line)
    case SQLITE_TEXT: unsafe JSONString.append(row.bytes(at: column), to: &line)
    case SQLITE_BLOB:
      line.append(contentsOf: #"{"$base64":true,"encoded":""#.utf8)
      unsafe Base64.append(row.bytes(at: column), to: &line)
      line.append(contentsOf: #""}"#.utf8)
    default: line.append(contentsOf: "null".utf8)
    }
  }

  private static func appendCSV(
    _ row: borrowing Statement,
    _ column: Int,
    to line: inout [UInt8]
  ) {
    switch row.storageClass(at: column) {
    case SQLITE_INTEGER: NumberText.append(row.integer(at: column), to: &line)
    case SQLITE_FLOAT: NumberText.append(row.real(at: column), to: &line)
    case SQLITE_TEXT: unsafe CSVField.append(row.bytes(at: column), to: &line)
    case SQLITE_BLOB: unsafe Base64.append(row.bytes(at: column), to: &line)
    default: break
    }
  }
}
