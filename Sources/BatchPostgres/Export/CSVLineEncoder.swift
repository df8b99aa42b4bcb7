#if PostgreSQL
import BatchIdentifiers

/// Converts CSV lines from the server to those that ``LineEncoder`` would write.
///
/// Most fields are the same, and a field that the server quotes stays quoted. These differ:
///
/// | value | the server | here |
/// | --- | --- | --- |
/// | a text with a leading or trailing space, or not in ASCII | no quotes | quotes |
/// | a whole `real` or `double precision` | `5` | `5.0` |
/// | a large one | `1e+06`, `1e+15` | `1000000.0`, up to 2^24 or 2^54 |
/// | an infinity | `Infinity` | `1e999` |
///
/// No text needs repair: the server refuses to send invalid UTF-8.
struct CSVLineEncoder: Sendable {
  private let forms: [PostgresColumn.Form]

  init(_ columns: [PostgresColumn]) {
    forms = columns.map(\.form)
  }

  /// Appends a line from the server, whose columns begin at an offset.
  ///
  /// - Throws: `BatchError` of code `databaseAccess` if the line does not have the encoder's columns.
  func append(
    _ line: Span<UInt8>,
    from start: Int,
    to bytes: inout [UInt8]
  ) throws(BatchError) {
    let end = line.count - 1
    guard start <= end, line[end] == 0x0a else { throw .damagedLine }
    // Unchanged fields are copied together, up to the next field that differs.
    var copied = start
    var place = start
    for column in forms.indices {
      if column > 0 {
        guard line[place] == UInt8(ascii: ",") else { throw .damagedLine }
        place += 1
      }
      let first = place
      if line[first] == UInt8(ascii: "\"") {
        place = try Self.endOfQuotes(line, from: first)
        continue
      }
      var seen: UInt8 = 0
      // The line feed always ends the loop.
      while line[place] != UInt8(ascii: ","), line[place] != 0x0a {
        seen |= line[place]
        place += 1
      }
      guard first < place else { continue }
      let field = line.extracting(first..<place)
      switch forms[column] {
      case .real, .singleReal:
        bytes.append(copying: line.extracting(copied..<first))
        Self.appendReal(field, isSingle: forms[column] == .singleReal, to: &bytes)
      default:
        guard seen >= 0x80 || field[0] == 0x20 || field[field.count - 1] == 0x20 else { continue }
        bytes.append(copying: line.extracting(copied..<first))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(copying: field)
        bytes.append(UInt8(ascii: "\""))
      }
      copied = place
    }
    guard place == end else { throw .damagedLine }
    bytes.append(copying: line.extracting(copied..<end))
    // Most readers skip an empty line.
    if start == end { bytes.append(contentsOf: "\"\"".utf8) }
    bytes.append(0x0d)
    bytes.append(0x0a)
  }

  private static func endOfQuotes(_ line: Span<UInt8>, from first: Int) throws(BatchError) -> Int {
    var place = first + 1
    while place < line.count - 1 {
      if line[place] == UInt8(ascii: "\"") {
        // Two quotes stand for one in the text.
        guard line[place + 1] == UInt8(ascii: "\"") else { return place + 1 }
        place += 1
      }
      place += 1
    }
    throw .damagedLine
  }

  /// Appends a number that the server wrote with the fewest digits.
  private static func appendReal(
    _ field: Span<UInt8>,
    isSingle: Bool,
    to bytes: inout [UInt8]
  ) {
    var digits = 0
    var hasPoint = false
    var isPlain = true
    for index in field.indices {
      switch field[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digits += 1
      case UInt8(ascii: "."): hasPoint = true
      case UInt8(ascii: "-"): break
      default: isPlain = false
      }
    }
    // So few digits are unique; with more, a number may have two equally short forms.
    if isPlain, digits <= (isSingle ? 6 : 15) {
      bytes.append(copying: field)
      if !hasPoint { bytes.append(contentsOf: ".0".utf8) }
      return
    }
    // The bytes are copied while the span is valid.
    let text = unsafe field.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    if isSingle, let single = Float(text), single.isFinite {
      bytes.append(contentsOf: single.description.utf8)
    } else if let real = Double(text), !real.isNaN {
      NumberText.append(real, to: &bytes)
    } else {
      bytes.append(copying: field)
    }
  }
}

extension BatchError {
  static var damagedLine: BatchError {
    BatchError(.databaseAccess, "the server sent a damaged line in a COPY")
  }
}
#endif
