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
  /// The texts before the values, joined; in NDJSON, they include the columns' names.
  ///
  /// A list of texts would be retained and released for each value.
  private let prefixes: [UInt8]
  /// Where the prefix of each column ends.
  private let prefixEnds: [Int]
  /// Empty in NDJSON.
  package let header: [UInt8]
  /// Whether the values 1 and 0 of a column mean true and false; empty if they do in none.
  private let isBoolean: [Bool]

  package init(
    format: RowFormat,
    columns: [String],
    booleans: Set<Int> = [],
    invalidText: InvalidText = .replace
  ) {
    self.format = format
    self.columns = columns
    self.invalidText = invalidText
    isBoolean = booleans.isEmpty ? [] : columns.indices.map(booleans.contains)
    var prefixes: [UInt8] = []
    var prefixEnds: [Int] = []
    var header: [UInt8] = []
    for (index, name) in columns.enumerated() {
      switch format {
      case .ndjson:
        prefixes.append(index == 0 ? UInt8(ascii: "{") : UInt8(ascii: ","))
        JSONString.append(name, to: &prefixes)
        prefixes.append(UInt8(ascii: ":"))
      case .csv:
        if index > 0 {
          prefixes.append(UInt8(ascii: ","))
          header.append(UInt8(ascii: ","))
        }
        var name = name
        _ = name.withUTF8 { bytes in
          unsafe CSVField.append(UnsafeRawBufferPointer(bytes), to: &header)
        }
      }
      prefixEnds.append(prefixes.count)
    }
    self.prefixes = prefixes
    self.prefixEnds = prefixEnds
    self.header = format == .csv ? header + [0x0d, 0x0a] : []
  }

  /// Appends a row, and returns how many of its texts are not UTF-8; throws if such a text fails
  /// the row.
  package func append(
    _ values: ValueBlock,
    _ row: Int,
    to line: inout [UInt8]
  ) throws(BatchError) -> Int {
    var invalidTexts = 0
    var prefixStart = 0
    for column in prefixEnds.indices {
      let prefixEnd = prefixEnds[column]
      line.append(copying: prefixes.span.extracting(prefixStart..<prefixEnd))
      prefixStart = prefixEnd
      if !isBoolean.isEmpty, isBoolean[column], values.kind(row, column) == .integer,
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
      if prefixEnds.count == 1, line.last ?? 0x0a == 0x0a { line.append(contentsOf: "\"\"".utf8) }
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
