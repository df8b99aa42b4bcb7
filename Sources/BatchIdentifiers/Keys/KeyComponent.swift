/// The part of a key in one column, by SQLite's storage class.
///
/// Components are equal if SQLite stores the same bytes for them: text is compared byte by byte, so
/// a composed and a decomposed `é` are two different keys.
public enum KeyComponent: Hashable, Sendable {
  /// An SQL NULL, possible in a key of a table with a rowid.
  case null
  /// An INTEGER.
  case integer(Int64)
  /// A REAL. SQLite has no NaN (it stores NULL) and one zero.
  case real(Double)
  /// A TEXT.
  case text(String)
  /// A TEXT that is not UTF-8, as its bytes.
  case invalidText([UInt8])
  /// A BLOB.
  case blob([UInt8])

  /// Compares the bytes of two components.
  public static func == (left: KeyComponent, right: KeyComponent) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left == right
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.invalidText(let left), .invalidText(let right)): left == right
    case (.blob(let left), .blob(let right)): left == right
    default: false
    }
  }

  /// Hashes the bytes of the component.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0 as UInt8)
    case .integer(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value)
    case .text(let text): for byte in text.utf8 { hasher.combine(byte) }
    case .invalidText(let bytes), .blob(let bytes): hasher.combine(bytes)
    }
  }
}
