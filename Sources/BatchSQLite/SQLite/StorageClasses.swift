public import BatchRuns

@usableFromInline
package struct StorageClasses: OptionSet, Sendable {
  @usableFromInline package let rawValue: UInt8

  @inlinable
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  @inlinable package static var null: Self { Self(rawValue: 1) }
  @inlinable package static var integer: Self { Self(rawValue: 2) }
  @inlinable package static var real: Self { Self(rawValue: 4) }
  @inlinable package static var text: Self { Self(rawValue: 8) }
  @inlinable package static var blob: Self { Self(rawValue: 16) }

  package var names: [String] {
    let all: [(Self, String)] = [
      (.null, "null"), (.integer, "integer"), (.real, "real"), (.text, "text"), (.blob, "blob"),
    ]
    return all.filter { contains($0.0) }.map(\.1)
  }
}

extension SQLValue {
  @inlinable package var storageClass: StorageClasses {
    switch self {
    case .null: .null
    case .integer: .integer
    case .real: .real
    case .text, .invalidText: .text
    case .blob: .blob
    }
  }
}
