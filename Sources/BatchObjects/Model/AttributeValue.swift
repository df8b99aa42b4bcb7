public import BatchRuns
public import BatchPlatform
public import BatchSQLite

/// A type with one obvious form in the database.
///
/// `Date` is not one: SQLite has no date type, so each attribute declares a form.
public protocol AttributeValue: Sendable {
  /// How the values are stored.
  static var codec: AttributeCodec<Self> { get }
}

extension AttributeValue where Self: FixedWidthInteger {
  /// An INTEGER that the type can hold.
  @inlinable public static var codec: AttributeCodec<Self> {
    AttributeCodec(
      typeName: "\(Self.self)",
      form: .canonical,
      alwaysFit: Self.bitWidth == 64 && Self.isSigned ? .integer : [],
      placeholder: 0,
      decode: { if case .integer(let value) = $0 { Self(exactly: value) } else { nil } },
      encode: { .integer(Int64($0)) }
    )
  }
}

extension Int64: AttributeValue {}
extension Int: AttributeValue {}
extension Int32: AttributeValue {}
extension Int16: AttributeValue {}
extension Int8: AttributeValue {}

extension Double: AttributeValue {
  /// A REAL, or an INTEGER that a `Double` holds exactly.
  public static var codec: AttributeCodec<Double> {
    AttributeCodec(
      typeName: "Double",
      form: .canonical,
      alwaysFit: .real,
      placeholder: 0,
      decode: { $0.double },
      encode: { .real($0) }
    )
  }
}

extension Float: AttributeValue {
  /// A REAL, rounded to the nearest `Float` unless it is too great for one; an INTEGER likewise.
  public static var codec: AttributeCodec<Float> {
    AttributeCodec(
      typeName: "Float",
      placeholder: 0,
      decode: { value in
        guard let double = value.double else { return nil }
        let float = Float(double)
        return float.isFinite || double.isInfinite ? float : nil
      },
      encode: { .real(Double($0)) }
    )
  }
}

extension String: AttributeValue {
  /// A TEXT.
  public static var codec: AttributeCodec<String> {
    AttributeCodec(
      typeName: "String",
      form: .canonical,
      alwaysFit: .text,
      placeholder: "",
      decode: { $0.string },
      encode: { .text($0) }
    )
  }
}

extension Bool: AttributeValue {
  /// The INTEGER 0 or 1.
  public static var codec: AttributeCodec<Bool> {
    AttributeCodec(
      typeName: "Bool",
      form: .canonical,
      placeholder: false,
      decode: { $0 == .integer(0) ? false : $0 == .integer(1) ? true : nil },
      encode: { .integer($0 ? 1 : 0) }
    )
  }
}

extension Data: AttributeValue {
  /// A BLOB.
  public static var codec: AttributeCodec<Data> {
    AttributeCodec(
      typeName: "Data",
      form: .canonical,
      alwaysFit: .blob,
      placeholder: Data(),
      decode: { if case .blob(let bytes) = $0 { Data(bytes) } else { nil } },
      encode: { .blob([UInt8]($0)) }
    )
  }
}

extension UUID: AttributeValue {
  /// A TEXT in the form of `uuidString`, or in lower case, or a BLOB of 16 bytes; written as
  /// `uuidString`.
  ///
  /// A text in mixed case does not fit: it has too many forms for an index to find all texts of one
  /// UUID.
  public static var codec: AttributeCodec<UUID> {
    AttributeCodec(
      typeName: "UUID",
      form: .other,
      storedForms: { value in
        let text = value.uuidString
        let bytes = unsafe withUnsafeBytes(of: value.uuid) { unsafe [UInt8]($0) }
        return [.text(text), .text(text.lowercased()), .blob(bytes)]
      },
      placeholder: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
      decode: { value in
        switch value {
        case .text(let text): text.hasOneCase ? UUID(uuidString: text) : nil
        case .blob(let bytes) where bytes.count == 16:
          UUID(
            uuid: (
              bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
              bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            )
          )
        default: nil
        }
      },
      encode: { .text($0.uuidString) }
    )
  }
}

extension Decimal: AttributeValue {
  /// A TEXT of a decimal number, unless it has more digits than a `Decimal`, or an INTEGER; also a
  /// REAL, which Core Data writes, by its shortest decimal form.
  public static var codec: AttributeCodec<Decimal> {
    AttributeCodec(
      typeName: "Decimal",
      placeholder: 0,
      decode: { value in
        switch value {
        case .integer(let value): Decimal(value)
        case .real(let value) where value.isFinite: decimal(value.description)
        case .text(let text): decimal(text)
        default: nil
        }
      },
      encode: { .text($0.description) }
    )
  }

  /// A whole text `[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?` as a number: `Decimal(string:)`
  /// accepts a prefix, and takes ten times as long as this does for a few digits.
  private static func decimal(_ text: String) -> Decimal? {
    var rest = text.utf8[...]
    var significand: UInt64 = 0
    func skipSign() -> FloatingPointSign {
      let sign = rest.first
      if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest.removeFirst() }
      return sign == UInt8(ascii: "-") ? .minus : .plus
    }
    func readDigits() -> Int {
      let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      // Those of a longer number are not used.
      for digit in digits { significand = significand &* 10 &+ UInt64(digit - UInt8(ascii: "0")) }
      rest = rest[digits.endIndex...]
      return digits.count
    }
    let sign = skipSign()
    var count = readDigits()
    guard count > 0 else { return nil }
    var fraction = 0
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      fraction = readDigits()
      count += fraction
    }
    if rest.isEmpty, count <= 18 {
      let digits = Decimal(significand)
      return significand == 0 ? 0 : Decimal(sign: sign, exponent: -fraction, significand: digits)
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest.removeFirst()
      _ = skipSign()
      guard (1...3).contains(readDigits()) else { return nil }
    }
    guard rest.isEmpty, let value = Decimal(string: text), !value.isNaN else { return nil }
    // It rounds numbers of 39 digits or more.
    return text.utf8.count < 39 || digits(of: text) == digits(of: value.description) ? value : nil
  }

  /// The digits of a number, without leading and trailing zeros.
  private static func digits(of text: String) -> Substring {
    let mantissa = text.prefix { $0 != "e" && $0 != "E" }
    let digits = String(mantissa.filter(\.isWholeNumber)).drop { $0 == "0" }
    return digits.lastIndex { $0 != "0" }.map { digits[...$0] } ?? ""
  }
}

extension URL: AttributeValue {
  /// A TEXT of a URL.
  public static var codec: AttributeCodec<URL> {
    AttributeCodec(
      typeName: "URL",
      placeholder: URL(fileURLWithPath: "/dev/null"),
      decode: { $0.string.flatMap { URL(string: $0) } },
      encode: { .text($0.absoluteString) }
    )
  }
}

extension String {
  /// Whether all ASCII letters are in upper case or all in lower case.
  fileprivate var hasOneCase: Bool {
    var cases: UInt8 = 0
    // Letters have this bit; digits and hyphens do not. The next bit is the case.
    for byte in utf8 where byte & 0x40 != 0 { cases |= byte & 0x20 == 0 ? 1 : 2 }
    return cases != 3
  }
}

extension SQLValue {
  /// A number, if a `Double` holds it exactly.
  var double: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(exactly: value)
    default: nil
    }
  }

  /// The text of a TEXT, with U+FFFD for what is not UTF-8.
  var string: String? {
    switch self {
    case .text(let text): text
    case .invalidText(let bytes): String(decoding: bytes, as: UTF8.self)
    default: nil
    }
  }
}
