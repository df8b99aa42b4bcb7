import BatchIdentifiers

/// Writes rows that were read as lines of JSON, with the key of each as `$identifier`.
///
/// Values are written as in exports; see ``RowEncoder``.
package struct CommandRowEncoder: Sendable {
  /// What goes before each value: a comma and the name of its column.
  private let prefixes: [[UInt8]]
  /// The columns whose 1 and 0 are true and false.
  private let booleans: Set<Int>
  /// The columns whose texts are numbers, of more digits than others have.
  private let numbers: Set<Int>

  package init(columns: [String], booleans: Set<Int> = [], numbers: Set<Int> = []) {
    self.booleans = booleans
    self.numbers = numbers
    prefixes = columns.map { name in
      var prefix = [UInt8(ascii: ",")]
      JSONString.append(name, to: &prefix)
      return prefix + [UInt8(ascii: ":")]
    }
  }

  /// Appends a row, whose columns are those of the encoder.
  package func append(_ rows: ChunkRows, _ row: Int, to line: inout [UInt8]) {
    line.append(contentsOf: #"{"$identifier":"#.utf8)
    JSONString.append(rows.key(of: row).description, to: &line)
    let values = rows.values
    for (column, prefix) in prefixes.enumerated() {
      line.append(contentsOf: prefix)
      switch values.kind(row, column) {
      case .null, .unset: line.append(contentsOf: "null".utf8)
      case .integer where booleans.contains(column):
        line.append(contentsOf: (values.word(row, column) == 0 ? "false" : "true").utf8)
      case .text where numbers.contains(column) && values.endsInDigit(row, column):
        line.append(contentsOf: values.bytes(row, column))
      case .integer: NumberText.append(values.word(row, column), to: &line)
      case .real: NumberText.append(values.real(row, column), to: &line)
      case .text:
        unsafe values.bytes(row, column).withUnsafeBytes {
          unsafe JSONString.append($0, to: &line)
        }
      case .blob:
        line.append(contentsOf: #"{"$base64":true,"encoded":""#.utf8)
        unsafe values.bytes(row, column).withUnsafeBytes {
          unsafe Base64.append($0, to: &line)
        }
        line.append(contentsOf: #""}"#.utf8)
      }
    }
    line.append(UInt8(ascii: "}"))
    line.append(0x0a)
  }
}

extension ValueBlock {
  /// Whether a text ends as numbers do, which NaN does not.
  fileprivate func endsInDigit(_ row: Int, _ column: Int) -> Bool {
    bytes(row, column).last.map { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ?? false
  }
}
