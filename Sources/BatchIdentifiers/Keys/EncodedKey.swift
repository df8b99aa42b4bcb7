import BatchPlatform

/// A key of one or more components, as bytes that sort like the components.
///
/// Comparing two encoded keys with `memcmp` gives the `BINARY` order of SQLite: component by
/// component, NULL first, then numbers by value, text, and blobs byte by byte. (An INTEGER comes
/// just before a REAL of the same value, which SQLite considers equal.) The encoding is that of
/// FoundationDB's tuples, with different tags:
///
/// | tag | component |
/// | --- | --- |
/// | `01` | NULL |
/// | `10` | REAL below -2⁶³: 8 bytes, complemented IEEE 754 |
/// | `11`…`18` | negative INTEGER of 8…1 bytes: the value minus one's complement, big-endian |
/// | `19` | INTEGER 0 |
/// | `1A`…`21` | positive INTEGER of 1…8 bytes, big-endian |
/// | `22` | REAL of 2⁶³ and more: 8 bytes, IEEE 754 |
/// | any INTEGER, then `FF` | REAL with that floor: 8 bytes, IEEE 754 made to order |
/// | `30` | TEXT: its bytes, each `00` written `00 FF`, then `00` |
/// | `40` | BLOB: the same |
public struct EncodedKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The maximum length of a key in bytes.
  public static let maximumByteCount = 1 << 20

  /// The encoded components.
  public let bytes: [UInt8]

  /// Encodes components.
  public init(_ components: [KeyComponent]) {
    var encoder = Encoder()
    for component in components { encoder.append(component) }
    bytes = encoder.bytes
  }

  /// Makes a key from the bytes of an encoder, after checking them.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if the bytes are not a complete key.
  public init(validating bytes: [UInt8]) throws(BatchError) {
    try EncodedKey.validate(bytes)
    self.bytes = bytes
  }

  /// The bytes must be known to be a complete key.
  init(unchecked bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The components, decoded.
  public var components: [KeyComponent] {
    var components: [KeyComponent] = []
    var reader = ComponentReader()
    reader.forEachComponent(in: bytes.span) { component in
      switch component {
      case .null: components.append(.null)
      case .integer(let value): components.append(.integer(value))
      case .real(let value): components.append(.real(value))
      case .text(let bytes) where bytes.isUTF8: components.append(.text(String(repairing: bytes)))
      case .text(let bytes): components.append(.invalidText([UInt8](copying: bytes)))
      case .blob(let bytes): components.append(.blob([UInt8](copying: bytes)))
      }
    }
    return components
  }

  var loneInteger: Int64? {
    guard let tag = bytes.first, Tag.integers.contains(tag) else { return nil }
    let size = Tag.integerSize(tag)
    guard bytes.count == 1 + size else { return nil }
    var value: Int64?
    forEachComponent { if case .integer(let number) = $0 { value = number } }
    return value
  }

  /// Calls `body` with each component and its bytes in place.
  ///
  /// - Complexity: O(n) in the bytes of the key.
  public func forEachComponent<Failure: Error>(
    _ body: (RawKeyComponent) throws(Failure) -> Void
  ) throws(Failure) {
    var reader = ComponentReader()
    try unsafe withBuffer(of: bytes.span) { key throws(Failure) in
      try unsafe reader.forEachComponent(of: key, body)
    }
  }

  /// The key in the form used in URIs of identifiers: `=EU,28`.
  public var description: String { KeyReference.text(of: self) }

  /// Returns whether one key comes before another in the `BINARY` order of SQLite.
  public static func < (left: EncodedKey, right: EncodedKey) -> Bool {
    compareBytes(left.bytes.span, right.bytes.span) < 0
  }

  static func validate(_ bytes: [UInt8]) throws(BatchError) {
    guard ComponentReader.isValid(bytes.span) else {
      throw BatchError(
        .invalidIdentifier,
        "these \(bytes.count) bytes are not an encoded key",
        remedy: "make keys with EncodedKey.Encoder"
      )
    }
  }

  enum Tag {
    static let null: UInt8 = 0x01
    static let hugeNegative: UInt8 = 0x10
    static let zero: UInt8 = 0x19
    static let integers: ClosedRange<UInt8> = 0x11...0x21
    static let hugePositive: UInt8 = 0x22
    static let text: UInt8 = 0x30
    static let blob: UInt8 = 0x40
    static let fraction: UInt8 = 0xFF

    static func integerSize(_ tag: UInt8) -> Int { abs(Int(tag) - Int(zero)) }
  }
}

/// Compares like `memcmp`; a prefix comes first.
@inline(__always)
func compareBytes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
  let count = min(left.count, right.count)
  guard count > 0 else { return left.count - right.count }
  // Both are at least as long as the compared part.
  let order = unsafe left.withUnsafeBytes { left in
    unsafe right.withUnsafeBytes { right in
      unsafe memcmp(left.baseAddress.unsafelyUnwrapped, right.baseAddress.unsafelyUnwrapped, count)
    }
  }
  return order != 0 ? Int(order) : left.count - right.count
}
