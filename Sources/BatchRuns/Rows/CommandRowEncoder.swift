import BatchIdentifiers

/// Writes rows as lines of JSON, with each key as `$identifier`.
///
/// Values are written as in exports, but text that is not UTF-8 in Base64; see ``RowEncoder``.
package struct CommandRowEncoder: Sendable {
  /// The text before each value: a comma and the column's name.
  private let prefixes: [[UInt8]]
  /// The columns whose values 1 and 0 mean true and false.
  private let booleans: Set<Int>
  /// The columns whose texts are numbers with more digits than other columns can store.
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

  package func append(_ rows: ChunkRows, _ row: Int, to line: inout [UInt8]) {
    line.append(contentsOf: #"{"$identifier":"#.utf8)
    JSONString.append(rows.key(of: row).description, to: &line)
    let values = rows.values
    for (column, prefix) in prefixes.enumerated() {
      line.append(contentsOf: prefix)
      switch values.kind(row, column) {
      case .integer where booleans.contains(column):
        line.append(contentsOf: (values.word(row, column) == 0 ? "false" : "true").utf8)
      case .text where numbers.contains(column) && values.endsInDigit(row, column):
        line.append(contentsOf: values.bytes(row, column))
      default:
        let start = line.count
        if values.appendJSON(row, column, to: &line) { continue }
        line.removeLast(line.count - start)
        unsafe values.withBytes(row, column) {
          unsafe Base64.appendObject($0, isText: true, to: &line)
        }
      }
    }
    line.append(UInt8(ascii: "}"))
    line.append(0x0a)
  }
}

extension ValueBlock {
  /// Whether a text ends with a digit, like a number but unlike NaN.
  fileprivate func endsInDigit(_ row: Int, _ column: Int) -> Bool {
    bytes(row, column).last.map { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ?? false
  }
}
