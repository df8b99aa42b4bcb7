/// Copies JSON (RFC 8259) into a line: every token as it is, without the white space between them.
///
/// It needs no recursion, so nesting has no limit but the text's length.
package struct JSONText: ~Escapable {
  private let bytes: Span<UInt8>
  private var offset = 0
  /// Where the next token to copy begins; all before is copied.
  private var copied = 0

  @_lifetime(copy bytes)
  private init(_ bytes: Span<UInt8>) { self.bytes = bytes }

  /// Appends a text; returns false, and appends nothing, if it is not JSON in UTF-8.
  package static func append(_ bytes: Span<UInt8>, to line: inout [UInt8]) -> Bool {
    let start = line.count
    line.reserve(forLarge: bytes.count)
    var text = JSONText(bytes)
    if bytes.isUTF8, text.copy(to: &line) { return true }
    line.removeLast(line.count - start)
    return false
  }

  private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func copy(to line: inout [UInt8]) -> Bool {
    /// The open objects (true) and arrays.
    var open: [Bool] = []
    repeat {
      skipSpace(&line)
      switch next {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        let isObject = next == UInt8(ascii: "{")
        offset += 1
        skipSpace(&line)
        if next == Self.end(isObject) {
          offset += 1
          break
        }
        open.append(isObject)
        guard !isObject || skipName(&line) else { return false }
        continue
      default: guard skipScalar() else { return false }
      }
      // A value has ended, and perhaps what it was the last of.
      while true {
        skipSpace(&line)
        guard let isObject = open.last else { break }
        if next == Self.end(isObject) {
          offset += 1
          open.removeLast()
          continue
        }
        guard skip(",") else { return false }
        skipSpace(&line)
        guard !isObject || skipName(&line) else { return false }
        break
      }
    } while !open.isEmpty
    return offset == bytes.count
  }

  private static func end(_ isObject: Bool) -> UInt8 {
    isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
  }

  /// Skips white space, and copies the tokens before it.
  private mutating func skipSpace(_ line: inout [UInt8]) {
    let token = offset
    while let byte = next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 {
      offset += 1
    }
    guard token < offset || offset == bytes.count else { return }
    line.append(copying: bytes.extracting(copied..<token))
    copied = offset
  }

  private mutating func skipName(_ line: inout [UInt8]) -> Bool {
    guard skipString() else { return false }
    skipSpace(&line)
    return skip(":")
  }

  private mutating func skipScalar() -> Bool {
    switch next {
    case UInt8(ascii: "\""): skipString()
    case UInt8(ascii: "t"): skip("true")
    case UInt8(ascii: "f"): skip("false")
    case UInt8(ascii: "n"): skip("null")
    default: skipNumber()
    }
  }

  private mutating func skip(_ word: StaticString) -> Bool {
    let end = offset + word.utf8CodeUnitCount
    guard end <= bytes.count else { return false }
    for index in offset..<end where unsafe bytes[index] != word.utf8Start[index - offset] {
      return false
    }
    offset = end
    return true
  }

  private mutating func skipString() -> Bool {
    guard skip("\"") else { return false }
    while let byte = next {
      offset += 1
      switch byte {
      case UInt8(ascii: "\""): return true
      case ..<0x20: return false
      case UInt8(ascii: "\\"):
        guard let escaped = next else { return false }
        offset += 1
        switch escaped {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
          UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
          break
        case UInt8(ascii: "u"):
          for _ in 0..<4 {
            guard let digit = next, Character(Unicode.Scalar(digit)).isHexDigit else {
              return false
            }
            offset += 1
          }
        default: return false
        }
      default: break
      }
    }
    return false
  }

  private mutating func skipNumber() -> Bool {
    _ = skip("-")
    if !skip("0"), !skipDigits() { return false }
    if skip("."), !skipDigits() { return false }
    if skip("e") || skip("E") {
      _ = skip("+") || skip("-")
      return skipDigits()
    }
    return true
  }

  private mutating func skipDigits() -> Bool {
    let start = offset
    while let byte = next, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { offset += 1 }
    return offset > start
  }
}
