import BatchRuns
import BatchPlatform
import BatchSQLite

/// How far SQLite's comparison of two values can be used.
enum SQLOrder {
  /// Not at all: Swift must compare.
  case none
  /// `IS` and `<` have the meaning of `==` and `<` in Swift.
  case native
  /// `IS` has the meaning of `==` with the collation of ``SwiftCollation``, but Swift must order.
  case text
}

struct Representation<Value> {
  /// Nil if the SQL value does not fit.
  let decode: (SQLValue) -> Value?
  /// Nil if there is no exact SQL value, as for NaN.
  let encode: (Value) -> SQLValue?
  let order: SQLOrder
  /// Whether all values of the type can be compared in this representation.
  let isCanonical: Bool
  /// All SQL values that decode to a value; nil if only Swift knows.
  let forms: (Value) -> [SQLValue]?

  init(
    order: SQLOrder,
    isCanonical: Bool = true,
    forms: @escaping (Value) -> [SQLValue]? = { _ in nil },
    decode: @escaping (SQLValue) -> Value?,
    encode: @escaping (Value) -> SQLValue?
  ) {
    self.decode = decode
    self.encode = encode
    self.order = order
    self.isCanonical = isCanonical
    self.forms = forms
  }

  /// The representation for comparing values of the type, if there is one.
  static var canonical: Representation? {
    func representation<Known: CanonicalValue>(of type: Known.Type) -> Representation? {
      type.representation as? Representation
    }
    return (Value.self as? any CanonicalValue.Type).flatMap { representation(of: $0) }
  }

  init(_ codec: AttributeCodec<Value>) {
    decode = codec.decode
    if codec.form == .canonical, let canonical = Self.canonical {
      encode = canonical.encode
      order = canonical.order
      isCanonical = true
      forms = { _ in nil }
    } else {
      encode = { codec.encode($0) }
      order = .none
      isCanonical = false
      forms = codec.storedForms
    }
  }

  /// The same representation, with NULL for nil.
  var optional: Representation<Value?> {
    Representation<Value?>(
      order: order,
      isCanonical: isCanonical,
      forms: { $0.map(forms) ?? [.null] },
      decode: { $0 == .null ? .some(nil) : decode($0).map(Optional.some) },
      encode: { $0.map(encode) ?? .null }
    )
  }

  func unwrapped<Wrapped>() -> Representation<Wrapped> where Value == Wrapped? {
    Representation<Wrapped>(
      order: order,
      isCanonical: isCanonical,
      forms: { forms($0) },
      decode: { decode($0).flatMap(\.self) },
      encode: { encode($0) }
    )
  }
}

/// A type whose values SQLite or a Swift closure can compare in a common representation.
protocol CanonicalValue {
  static var representation: Representation<Self> { get }
}

extension Optional: CanonicalValue where Wrapped: CanonicalValue {
  static var representation: Representation<Wrapped?> { Wrapped.representation.optional }
}

extension CanonicalValue where Self: FixedWidthInteger {
  static var representation: Representation<Self> {
    Representation(
      order: .native,
      decode: { if case .integer(let value) = $0 { Self(exactly: value) } else { nil } },
      encode: { Int64(exactly: $0).map(SQLValue.integer) }
    )
  }
}

extension Int: CanonicalValue {}
extension Int64: CanonicalValue {}
extension Int32: CanonicalValue {}
extension Int16: CanonicalValue {}
extension Int8: CanonicalValue {}
extension UInt: CanonicalValue {}
extension UInt64: CanonicalValue {}
extension UInt32: CanonicalValue {}
extension UInt16: CanonicalValue {}
extension UInt8: CanonicalValue {}

extension Bool: CanonicalValue {
  static var representation: Representation<Bool> {
    Representation(order: .native, decode: codec.decode, encode: codec.encode)
  }
}

extension Double: CanonicalValue {
  static var representation: Representation<Double> {
    Representation(
      order: .native,
      decode: \.double,
      encode: { $0.isNaN ? nil : .real($0) }
    )
  }
}

extension Float: CanonicalValue {
  static var representation: Representation<Float> {
    Representation(
      order: .native,
      decode: codec.decode,
      encode: { $0.isNaN ? nil : .real(Double($0)) }
    )
  }
}

extension String: CanonicalValue {
  static var representation: Representation<String> {
    Representation(order: .text, decode: \.string, encode: { .text($0) })
  }
}

extension Character: CanonicalValue {
  static var representation: Representation<Character> {
    Representation(
      order: .text,
      decode: { $0.string.flatMap { $0.count == 1 ? $0.first : nil } },
      encode: { .text(String($0)) }
    )
  }
}

extension Data: CanonicalValue {
  static var representation: Representation<Data> {
    Representation(order: .native, decode: codec.decode, encode: codec.encode)
  }
}

extension UUID: CanonicalValue {
  static var representation: Representation<UUID> {
    // Texts in upper case sort like the bytes that they represent.
    Representation(order: .native, decode: codec.decode, encode: codec.encode)
  }
}

extension ComparisonResult: CanonicalValue {
  static var representation: Representation<ComparisonResult> {
    Representation(
      order: .native,
      decode: { if case .integer(let value) = $0 { Self(rawValue: Int(value)) } else { nil } },
      encode: { .integer(Int64($0.rawValue)) }
    )
  }
}

extension Date: CanonicalValue {
  static var representation: Representation<Date> {
    Representation(
      order: .native,
      decode: { $0.double.map { Date(timeIntervalSinceReferenceDate: $0) } },
      encode: {
        let seconds = $0.timeIntervalSinceReferenceDate
        return seconds.isNaN ? nil : .real(seconds)
      }
    )
  }
}

extension Decimal: CanonicalValue {
  static var representation: Representation<Decimal> {
    Representation(
      order: .native,
      decode: { $0.string.flatMap { Decimal(sortKey: $0) } },
      encode: { $0.isNaN ? nil : .text($0.sortKey) }
    )
  }

  /// A text that sorts like the number: `p`, the position of the point, and the digits, as in
  /// `p502125` for 12.5.
  ///
  /// The digits of a negative number are complemented, followed by a character that sorts after all
  /// digits.
  private var sortKey: String {
    let text = (self < 0 ? -self : self).description
    let whole = text.prefix { $0 != "." }
    let all = text.utf8.filter { $0 != UInt8(ascii: ".") }
    let significant = all.drop { $0 == UInt8(ascii: "0") }
    guard let last = significant.lastIndex(where: { $0 != UInt8(ascii: "0") }) else { return "o" }
    let place = 500 + whole.utf8.count - (all.count - significant.count)
    let digits = [UInt8]("\(place)".utf8) + significant[...last]
    if self > 0 { return "p" + String(decoding: digits, as: UTF8.self) }
    return "n" + String(decoding: digits.map { 0x69 - $0 }, as: UTF8.self) + ":"
  }

  private init?(sortKey: String) {
    guard sortKey != "o" else {
      self = 0
      return
    }
    var digits = [UInt8](sortKey.utf8.dropFirst())
    let isNegative = sortKey.hasPrefix("n")
    if isNegative { digits = digits.dropLast().map { 0x69 - $0 } }
    let text = String(decoding: digits, as: UTF8.self)
    guard text.utf8.count > 3, let place = Int(text.prefix(3)),
      let number = Decimal(string: "\(text.dropFirst(3))e\(place - 500 - (text.utf8.count - 3))")
    else { return nil }
    self = isNegative ? -number : number
  }
}

extension URL: CanonicalValue {
  static var representation: Representation<URL> {
    Representation(
      order: .none,
      decode: codec.decode,
      encode: { $0.baseURL == nil ? codec.encode($0) : nil }
    )
  }
}
