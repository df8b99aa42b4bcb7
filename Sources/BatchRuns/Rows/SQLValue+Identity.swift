extension SQLValue {
  /// The value as SQLite stores it: NaN becomes NULL.
  @inlinable package var storable: SQLValue { isNaN ? .null : self }

  @inlinable package var isNaN: Bool {
    if case .real(let value) = self { value.isNaN } else { false }
  }

  /// Some columns store such a zero without its sign.
  package var isNegativeZero: Bool {
    if case .real(let value) = self { value == 0 && value.sign == .minus } else { false }
  }

  /// Compares bytes: texts that are canonically equivalent in Unicode may still differ.
  @inlinable
  package func isIdentical(to other: SQLValue) -> Bool {
    if case .text(let text) = self, case .text(let otherText) = other {
      return text.utf8.elementsEqual(otherText.utf8)
    }
    return self == other
  }
}

extension [SQLValue] {
  /// Compares bytes, as for single values.
  @inlinable
  package func isIdentical(to other: [SQLValue]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
  }
}
