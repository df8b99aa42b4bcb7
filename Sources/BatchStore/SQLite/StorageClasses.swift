/// A set of SQLite's storage classes.
@usableFromInline
struct StorageClasses: OptionSet, Sendable {
  @usableFromInline let rawValue: UInt8

  @usableFromInline
  init(rawValue: UInt8) { self.rawValue = rawValue }

  @usableFromInline static var null: Self { Self(rawValue: 1) }
  @usableFromInline static var integer: Self { Self(rawValue: 2) }
  @usableFromInline static var real: Self { Self(rawValue: 4) }
  @usableFromInline static var text: Self { Self(rawValue: 8) }
  @usableFromInline static var blob: Self { Self(rawValue: 16) }
}

extension SQLValue {
  /// The storage class of the value, alone in a set.
  var storageClass: StorageClasses {
    switch self {
    case .null: .null
    case .integer: .integer
    case .real: .real
    case .text: .text
    case .blob: .blob
    }
  }
}
