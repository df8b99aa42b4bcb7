extension SQLValue {
  /// The value as SQLite stores it: NaN becomes NULL.
  @inlinable package var storable: SQLValue { isNaN ? .null : self }

  @inlinable package var isNaN: Bool {
    if case .real(let value) = self { value.isNaN } else { false }
  }

  /// Whether the value is a zero that some columns store without its sign.
  package var isNegativeZero: Bool {
    if case .real(let value) = self { value == 0 && value.sign == .minus } else { false }
  }

  /// Whether two values are equal byte for byte; equal texts may be composed differently.
  @inlinable
  package func isIdentical(to other: SQLValue) -> Bool {
    if case .text(let text) = self, case .text(let otherText) = other {
      return text.utf8.elementsEqual(otherText.utf8)
    }
    return self == other
  }
}

extension [SQLValue] {
  /// Whether two rows are equal byte for byte.
  @inlinable
  package func isIdentical(to other: [SQLValue]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
  }
}
