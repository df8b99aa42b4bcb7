package import BatchIdentifiers

/// A value in one of SQLite's storage classes.
///
/// See <https://www.sqlite.org/datatype3.html>.
public enum SQLValue: Hashable, Sendable {
  /// SQL NULL.
  case null
  /// A 64-bit signed integer.
  case integer(Int64)
  /// A 64-bit IEEE float.
  case real(Double)
  /// Text.
  case text(String)
  /// Text that is not UTF-8, as its bytes.
  case invalidText([UInt8])
  /// Bytes.
  case blob([UInt8])
}

extension SQLValue {
  package init(_ component: KeyComponent) {
    switch component {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let value): self = .text(value)
    case .invalidText(let value): self = .invalidText(value)
    case .blob(let value): self = .blob(value)
    }
  }
}

extension SQLValue {
  /// Makes text from any bytes, even if they are not UTF-8.
  package init(text bytes: UnsafeRawBufferPointer) {
    if let text = unsafe String(validating: bytes, as: UTF8.self) {
      self = .text(text)
    } else {
      self = unsafe .invalidText([UInt8](bytes))
    }
  }

  package var sql: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let text): "'" + text.replacing("'", with: "''") + "'"
    case .invalidText(let bytes): "CAST(\(SQLValue.blob(bytes).sql) AS TEXT)"
    case .blob(let bytes):
      "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }
  }

  /// The type of the value, for messages that must not reveal the value.
  package var className: String {
    switch self {
    case .null: "NULL"
    case .integer: "an INTEGER"
    case .real: "a REAL"
    case .text: "a TEXT"
    case .invalidText: "a TEXT that is not UTF-8"
    case .blob: "a BLOB"
    }
  }
}

extension SQLValue: CustomStringConvertible, CustomDebugStringConvertible {
  /// The value for people: `NULL`, `42`, `0.5`, `Ada`, and a blob as `x'0aff'`.
  public var description: String {
    if case .text(let text) = self { text } else { debugDescription }
  }

  /// The value in SQL, so that its type is visible: `'Ada'`, `'42'`, `42`.
  ///
  /// A blob is shortened to its first 32 bytes.
  public var debugDescription: String {
    switch self {
    case .blob(let bytes) where bytes.count > 32:
      "\(SQLValue.blob(Array(bytes.prefix(32))).sql)… (\(bytes.count) bytes)"
    case .invalidText(let bytes): "CAST(\(SQLValue.blob(bytes).debugDescription) AS TEXT)"
    default: sql
    }
  }
}

extension SQLValue: Encodable {
  private enum BlobKeys: String, CodingKey {
    case isBase64 = "$base64"
    case encoded, type
  }

  /// Encodes a blob as `{"$base64": true, "encoded": …}`, as in exports.
  ///
  /// Text that is not UTF-8 has `"type": "text"` in addition, and an infinity becomes text.
  public func encode(to encoder: any Encoder) throws {
    if let (bytes, isText) = encodedBytes {
      var text: [UInt8] = []
      unsafe bytes.withUnsafeBytes { unsafe Base64.append($0, to: &text) }
      var container = encoder.container(keyedBy: BlobKeys.self)
      try container.encode(true, forKey: .isBase64)
      try container.encode(String(decoding: text, as: UTF8.self), forKey: .encoded)
      if isText { try container.encode("text", forKey: .type) }
      return
    }
    var container = encoder.singleValueContainer()
    switch self {
    case .null, .blob, .invalidText: try container.encodeNil()
    case .integer(let value): try container.encode(value)
    // JSON has no infinity; unlike an export, an encoder cannot write `1e999`.
    case .real(let value) where !value.isFinite: try container.encode(value.description)
    case .real(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    }
  }

  /// The bytes of a value that JSON cannot express.
  private var encodedBytes: (bytes: [UInt8], isText: Bool)? {
    switch self {
    case .blob(let bytes): (bytes, false)
    case .invalidText(let bytes): (bytes, true)
    default: nil
    }
  }
}
