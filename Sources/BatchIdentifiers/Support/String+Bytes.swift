extension String {
  /// Whether another string has the same bytes; `==` takes two ways to write a character for one.
  package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
