package import BatchIdentifiers

/// Writes rows as lines.
///
/// NULL is `null` in NDJSON and an empty field in CSV, and an empty text or blob is `""`. A blob is
/// `{"$base64": true, "encoded": …}` in NDJSON and Base64 in CSV. Text that is not UTF-8 may be
/// written like a blob; see ``InvalidText``. An infinity is `1e999`, which JSON readers parse as
/// infinity.
package struct RowEncoder: Sendable {
  private let format: RowFormat
  private let field: CSVField
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
  /// Whether the texts of a column are JSON; empty if they are in none.
  private let isJSON: [Bool]

  package init(
    format: LineFormat,
    columns: [String],
    booleans: Set<Int> = [],
    json: Set<Int> = [],
    invalidText: InvalidText = .replace
  ) {
    self.format = format.format
    field = format.field
    self.columns = columns
    self.invalidText = invalidText
    isBoolean = booleans.isEmpty ? [] : columns.indices.map(booleans.contains)
    isJSON = json.isEmpty ? [] : columns.indices.map(json.contains)
    var prefixes: [UInt8] = []
    var prefixEnds: [Int] = []
    for (index, name) in columns.enumerated() {
      switch format {
      case .ndjson:
        prefixes.append(index == 0 ? UInt8(ascii: "{") : UInt8(ascii: ","))
        JSONString.append(name, to: &prefixes)
        prefixes.append(UInt8(ascii: ":"))
      case .csv: if index > 0 { prefixes.append(field.delimiter) }
      }
      prefixEnds.append(prefixes.count)
    }
    self.prefixes = prefixes
    self.prefixEnds = prefixEnds
    header = format.header(columns)
  }

  /// Appends a row, and returns how many of its texts are not UTF-8; throws if such a text, or one
  /// that should be JSON, fails the row.
  package func append(
    _ values: ValueBlock,
    _ row: Int,
    to line: inout [UInt8]
  ) throws(BatchError) -> Int {
    let first = line.count
    var invalidTexts = 0
    var prefixStart = 0
    for column in prefixEnds.indices {
      let prefixEnd = prefixEnds[column]
      line.append(copying: prefixes.span.extracting(prefixStart..<prefixEnd))
      prefixStart = prefixEnd
      let start = line.count
      if !isBoolean.isEmpty, isBoolean[column], values.kind(row, column) == .integer,
        0...1 ~= values.word(row, column)
      {
        line.append(contentsOf: (values.word(row, column) == 1 ? "true" : "false").utf8)
        if format == .csv { field.close(from: start, in: &line) }
        continue
      }
      if !isJSON.isEmpty, isJSON[column], values.kind(row, column) != .null,
        try appendJSON(values, row, column, to: &line)
      {
        continue
      }
      let isWhole =
        switch format {
        case .ndjson: values.appendJSON(row, column, to: &line)
        case .csv: values.appendCSV(row, column, field, to: &line)
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
          case .csv:
            unsafe Base64.append($0, to: &line)
            field.close(from: start, in: &line)
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
      if line.count == first { line.append(contentsOf: "\"\"".utf8) }
      line.append(0x0d)
      line.append(0x0a)
    }
    return invalidTexts
  }

  /// Appends a text that is JSON; returns false for a number, which has its usual form.
  private func appendJSON(
    _ values: ValueBlock,
    _ row: Int,
    _ column: Int,
    to line: inout [UInt8]
  ) throws(BatchError) -> Bool {
    switch values.kind(row, column) {
    case .text:
      let bytes = values.bytes(row, column)
      guard JSONText.append(bytes.span, to: &line) else {
        throw .invalidJSON(in: columns[column], bytes.span)
      }
      return true
    case .blob: throw .invalidJSON(in: columns[column], nil)
    case .null, .unset, .integer, .real: return false
    }
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
  fileprivate func appendCSV(
    _ row: Int,
    _ column: Int,
    _ field: CSVField,
    to line: inout [UInt8]
  ) -> Bool {
    let start = line.count
    switch kind(row, column) {
    case .null, .unset:
      field.appendNull(to: &line)
      return true
    case .integer: NumberText.append(word(row, column), to: &line)
    case .real: NumberText.append(real(row, column), to: &line)
    case .text: return unsafe withBytes(row, column) { unsafe field.append($0, to: &line) }
    case .blob: unsafe withBytes(row, column) { unsafe Base64.append($0, to: &line) }
    }
    field.close(from: start, in: &line)
    return true
  }
}
