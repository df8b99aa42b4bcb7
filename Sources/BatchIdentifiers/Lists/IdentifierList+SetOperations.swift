extension IdentifierList {
  /// Returns the identifiers that are in this list or another one.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if a list is not sorted or the
  ///   entities differ, `.tooManyKeys` if keys of the two alternate hundreds of millions of times.
  /// - Complexity: O(n) time in the bytes of the lists and in how often their keys alternate;
  ///   besides the result, memory for a few blocks.
  public func union(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try packed.union(other.packed)
  }

  /// Returns the identifiers that are in both lists.
  ///
  /// - Throws: An error of ``union(_:)``.
  /// - Complexity: That of ``union(_:)``.
  public func intersection(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try packed.intersection(other.packed)
  }

  /// Returns the identifiers that are in this list but not in another one.
  ///
  /// - Throws: An error of ``union(_:)``.
  /// - Complexity: That of ``union(_:)``.
  public func subtracting(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try packed.subtracting(other.packed)
  }

  /// Returns the identifiers at some positions, as a new list.
  ///
  /// - Complexity: O(n) in the bytes of the range; keys at equal distances count as one.
  /// - Precondition: The range lies within `0..<count`.
  public func slice(_ range: Range<Int>) throws(BatchError) -> IdentifierList {
    try packed.slice([range])
  }

  /// Returns the identifiers at several ranges of positions, in that order.
  ///
  /// - Complexity: That of ``slice(_:)-(Range<Int>)``.
  /// - Precondition: The ranges lie within `0..<count`.
  public func slice(_ ranges: [Range<Int>]) throws(BatchError) -> IdentifierList {
    try packed.slice(ranges)
  }

  /// Splits the list by position into lists of equal length; the first ones may have one more
  /// identifier.
  ///
  /// - Complexity: O(n)
  /// - Precondition: `count` is positive.
  public func split(into count: Int) throws(BatchError) -> [IdentifierList] {
    try packed.split(into: count)
  }

  /// Returns the identifiers in ascending order without duplicates.
  ///
  /// A sorted list is returned unchanged.
  ///
  /// - Throws: ``BatchError`` with code `.tooManyKeys`, as in ``union(_:)``.
  /// - Complexity: O(n log n) time; memory of 8 bytes per integer key, or the bytes of encoded
  ///   keys. Keys at equal distances count as one.
  public func sortedUnique() throws(BatchError) -> IdentifierList {
    IdentifierList(inMemory: try packed.sortedUnique())
  }
}
