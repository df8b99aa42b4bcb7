extension IdentifierList {
  /// Returns the integer keys at some positions.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if the keys are not integers.
  /// - Complexity: O(n) in the range, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func integers(in range: Range<Int>) throws(BatchError) -> [Int64] {
    try packed.integers(in: range)
  }

  /// Appends the integer keys at some positions to an array.
  ///
  /// The array is unchanged if this throws.
  ///
  /// - Throws: An error of ``integers(in:)``.
  /// - Complexity: O(n) in the range, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func appendIntegers(
    in range: Range<Int>,
    to integers: inout [Int64]
  ) throws(BatchError) {
    try packed.appendIntegers(in: range, to: &integers)
  }

  /// Returns the encoded keys at some positions, in one buffer.
  ///
  /// Integer keys become keys of one integer component.
  ///
  /// - Complexity: O(n) in the bytes of the keys, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func encodedKeys(in range: Range<Int>) throws(BatchError) -> EncodedKeys {
    try packed.encodedKeys(in: range)
  }

  /// Appends the encoded keys at some positions to a collection, whose memory can be reused.
  ///
  /// - Precondition: The range lies within `0..<count`.
  public func appendEncodedKeys(
    in range: Range<Int>,
    to keys: inout EncodedKeys
  ) throws(BatchError) {
    try packed.appendEncodedKeys(in: range, to: &keys)
  }

  /// Returns the identifier at a position.
  ///
  /// - Complexity: Decodes one segment; the next look-ups nearby do not.
  /// - Precondition: `position` lies within `0..<count`.
  public func identifier(at position: Int) throws(BatchError) -> PersistentIdentifier {
    try packed.identifier(at: position)
  }

  /// Returns the key at a position.
  ///
  /// - Complexity: Decodes one segment; the next look-ups nearby do not.
  /// - Precondition: `position` lies within `0..<count`.
  public func key(at position: Int) throws(BatchError) -> PrimaryKey {
    try packed.key(at: position)
  }

  /// Returns whether a key is in the list.
  ///
  /// - Complexity: That of ``firstPosition(of:)``.
  public func contains(key: PrimaryKey) throws(BatchError) -> Bool {
    try packed.contains(key: key)
  }

  /// Returns the position of a key, or nil if it is not in the list.
  ///
  /// - Complexity: O(log n) and one segment if the list is sorted, O(n) if it is not.
  public func firstPosition(of key: PrimaryKey) throws(BatchError) -> Int? {
    try packed.firstPosition(of: key)
  }

  /// Checks the whole list: checksums, codings, counts, and the order if it is sorted.
  ///
  /// - Throws: ``BatchError`` with code `.damagedFile`, naming the block.
  /// - Complexity: O(n) time, the memory of a few thousand keys.
  public func verify() throws(BatchError) {
    try packed.verify()
  }
}
