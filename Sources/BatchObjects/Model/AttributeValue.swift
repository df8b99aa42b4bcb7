public import BatchRuns
public import BatchPlatform
public import BatchSQLite

/// A type whose values have one obvious form in the database.
///
/// `Date` is not such a type: SQLite has no dates, so each attribute declares a form.
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
  /// A REAL or an INTEGER, rounded to the nearest `Float` unless it is too large.
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
  /// A TEXT in the form of `uuidString` or in lower case, or a BLOB of 16 bytes; written as
  /// `uuidString`.
  ///
  /// A text in mixed case does not fit: a UUID would have too many forms for an index to find them
  /// all.
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
      decode: { $0.uuid },
      encode: { .text($0.uuidString) }
    )
  }
}

extension Decimal: AttributeValue {
  /// A TEXT of a decimal number with no more digits than a `Decimal` has, or an INTEGER.
  ///
  /// A REAL, which Core Data writes, is also read, by its shortest decimal form.
  public static var codec: AttributeCodec<Decimal> {
    AttributeCodec(
      typeName: "Decimal",
      placeholder: 0,
      decode: { $0.decimal },
      encode: { .text($0.description) }
    )
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
