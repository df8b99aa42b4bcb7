/// The words of an SQL text, as SQLite's tokenizer splits it: names, keywords, literals and signs.
///
/// Omits comments and white space. Names lose their quotes, and ASCII letters become lower case, as
/// SQLite compares them.
struct SQLWords {
  let all: [String]

  init(_ text: String) {
    let bytes = Array(text.utf8)
    var words: [String] = []
    var start = 0
    while start < bytes.count {
      let end: Int
      switch bytes[start] {
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
        end = Self.end(of: bytes, quotedFrom: start)
        let quote = String(Unicode.Scalar(bytes[start]))
        let inside = String(decoding: bytes[start..<end].dropFirst().dropLast(), as: UTF8.self)
        words.append(SQLName.folded(inside.replacing(quote + quote, with: quote)))
      case UInt8(ascii: "["):
        end = Self.end(of: bytes, after: "]", from: start)
        let inside = bytes[start..<end].dropFirst().dropLast()
        words.append(SQLName.folded(String(decoding: inside, as: UTF8.self)))
      case UInt8(ascii: "-") where bytes[(start + 1)...].first == UInt8(ascii: "-"):
        end = Self.end(of: bytes, after: "\n", from: start)
      case UInt8(ascii: "/") where bytes[(start + 1)...].first == UInt8(ascii: "*"):
        end = Self.end(of: bytes, after: "*/", from: start + 2)
      case let byte where Self.isInWord(byte):
        end = bytes[start...].firstIndex { !Self.isInWord($0) } ?? bytes.count
        words.append(SQLName.folded(String(decoding: bytes[start..<end], as: UTF8.self)))
      case let byte:
        end = start + 1
        if byte > UInt8(ascii: " ") { words.append(String(Unicode.Scalar(byte))) }
      }
      start = end
    }
    all = words
  }

  private static func end(of bytes: [UInt8], quotedFrom start: Int) -> Int {
    var index = start + 1
    while index < bytes.count {
      guard bytes[index] == bytes[start] else {
        index += 1
        continue
      }
      guard bytes[(index + 1)...].first == bytes[start] else { return index + 1 }
      index += 2
    }
    return bytes.count
  }

  private static func end(of bytes: [UInt8], after mark: StaticString, from start: Int) -> Int {
    let mark = Array(mark.description.utf8)
    return bytes[min(start, bytes.count)...].firstRange(of: mark)?.upperBound ?? bytes.count
  }

  private static func isInWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...0xff:
      true
    default: false
    }
  }
}
