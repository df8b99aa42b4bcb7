import BatchIdentifiers

extension JSONReader {
  /// In characters.
  private static let numberLimit = 400

  /// An integer is read exactly, any other number as the nearest double.
  mutating func readNumber() throws(BatchError) -> JSONValue.Content {
    let start = offset
    _ = take("-")
    if take("0") {
      if let byte = peek, byte.isDigit {
        throw error("a number begins with 0", remedy: "remove the zero")
      }
    } else {
      try skipDigits(after: "'-'")
    }
    var isReal = false
    if take(".") {
      isReal = true
      try skipDigits(after: "the point of a number")
    }
    if take("e") || take("E") {
      isReal = true
      _ = take("+") || take("-")
      try skipDigits(after: "the exponent sign of a number")
    }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    let position = position(at: start)
    guard text.utf8.count <= Self.numberLimit else {
      throw error("a number of \(text.utf8.count.grouped) characters", at: position)
    }
    if isReal {
      guard let value = Double(text), value.isFinite else {
        throw error("the number \(text) is too large", at: position)
      }
      return .real(value)
    }
    guard let value = Int64(text) else {
      throw error(
        "the integer \(text) does not fit into 64 bits",
        at: position,
        remedy: "the range is \(Int64.min) to \(Int64.max)"
      )
    }
    return .integer(value)
  }

  private mutating func skipDigits(after what: String) throws(BatchError) {
    guard let byte = peek, byte.isDigit else {
      throw error("expected a digit after \(what), found \(found)")
    }
    while let byte = peek, byte.isDigit { offset += 1 }
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { UInt8(ascii: "0") <= self && self <= UInt8(ascii: "9") }
}
