package import BatchIdentifiers

/// Writes rows as lines.
///
/// NULL is `null` in NDJSON and an empty field in CSV, and an empty text is `""`. A blob is
/// `{"$base64": true, "encoded": …}` in NDJSON and Base64 in CSV. Text that is not UTF-8 may be
/// written like a blob; see ``InvalidText``. An infinity is `1e999`, which JSON readers parse as
/// infinity.
package struct RowEncoder: Sendable {
  private let format: RowFormat
  private let columns: [String]
  private let invalidText: InvalidText
  /// The text before each value; in NDJSON, this includes the column's name.
  private let prefixes: [[UInt8]]
  /// Empty in NDJSON.
  package let header: [UInt8]
  /// The columns whose values 1 and 0 mean true and false.
  private let booleans: Set<Int>

  package init(
    format: RowFormat,
    columns: [String],
    booleans: Set<Int> = [],
    invalidText: InvalidText = .replace
  ) {
    self.format = format
    self.columns = columns
    self.invalidText = invalidText
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
        _ = name.withUTF8 { bytes in
          unsafe CSVField.append(UnsafeRawBufferPointer(bytes), to: &line)
        }
      }
      header = line + [0x0d, 0x0a]
      prefixes = columns.indices.map { $0 == 0 ? [] : [UInt8(ascii: ",")] }
    }
  }

  /// Appends a row, and returns how many of its texts are not UTF-8; throws if such a text fails
  /// the row.
  package func append(
    _ values: ValueBlock,
    _ row: Int,
    to line: inout [UInt8]
  ) throws(BatchError) -> Int {
    var invalidTexts = 0
    for column in prefixes.indices {
      line.append(contentsOf: prefixes[column])
      if booleans.contains(column), values.kind(row, column) == .integer,
        0...1 ~= values.word(row, column)
      {
        line.append(contentsOf: (values.word(row, column) == 1 ? "true" : "false").utf8)
        continue
      }
      let start = line.count
      let isWhole =
        switch format {
        case .ndjson: values.appendJSON(row, column, to: &line)
        case .csv: values.appendCSV(row, column, to: &line)
        }
      if isWhole { continue }
      invalidTexts += 1
      switch invalidText {
      case .replace: break
      case .base64:
        line.removeLast(line.count - start)
        unsafe values.withBytes(row, column) {
          switch format {
          case .ndjson: unsafe Base64.appendObject($0, isText: true, to: &line)
          case .csv: unsafe Base64.append($0, to: &line)
          }
        }
      case .fail: throw .invalidText(in: columns[column])
      }
    }
    switch format {
    case .ndjson:
      line.append(UInt8(ascii: "}"))
      line.append(0x0a)
    case .csv:
      // Most readers skip empty lines.
      if prefixes.count == 1, line.last ?? 0x0a == 0x0a { line.append(contentsOf: "\"\"".utf8) }
      line.append(0x0d)
      line.append(0x0a)
    }
    return invalidTexts
  }
}

extension ValueBlock {
  /// Appends a value; returns false if it was text that is not UTF-8, and was repaired.
  package func appendJSON(_ row: Int, _ column: Int, to line: inout [UInt8]) -> Bool {
    switch kind(row, column) {
    case .null, .unset: line.append(contentsOf: "null".utf8)
    case .integer: NumberText.append(word(row, column), to: &line)
    case .real: NumberText.append(real(row, column), to: &line)
    case .text:
      return unsafe withBytes(row, column) { unsafe JSONString.append($0, to: &line) }
    case .blob: unsafe withBytes(row, column) { unsafe Base64.appendObject($0, to: &line) }
    }
    return true
  }

  /// Appends a value as a field; returns false if it was text that is not UTF-8, and was repaired.
  fileprivate func appendCSV(_ row: Int, _ column: Int, to line: inout [UInt8]) -> Bool {
    switch kind(row, column) {
    case .null, .unset: break
    case .integer: NumberText.append(word(row, column), to: &line)
    case .real: NumberText.append(real(row, column), to: &line)
    case .text: return unsafe withBytes(row, column) { unsafe CSVField.append($0, to: &line) }
    case .blob:
      // An empty field is NULL.
      if bytes(row, column).isEmpty { line.append(contentsOf: "\"\"".utf8) }
      unsafe withBytes(row, column) { unsafe Base64.append($0, to: &line) }
    }
    return true
  }
}
