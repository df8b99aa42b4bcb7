extension IdentifierFile {
  /// The number of identifiers.
  public var count: Int { list.count }
  /// The properties that the identifiers share.
  public var header: IdentifierList.Header { list.header }
  /// Whether the keys are strictly ascending.
  public var isSorted: Bool { list.isSorted }
  /// The number of blocks, each with its own checksum.
  public var blockCount: Int { list.blockCount }

  /// Reads the whole list into memory, packed as in the file, and checks all of it.
  ///
  /// The result no longer needs the file. Use the other methods to read parts of the list.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n) time, and the memory of the packed list.
  public func load() throws(BatchError) -> IdentifierList {
    try list.loaded()
  }

  /// Reads the identifiers at some positions.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n) in the range, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func identifiers(in range: Range<Int>) throws(BatchError) -> [PersistentIdentifier] {
    try list.identifiers(in: range)
  }

  /// Reads the identifier at a position.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: Decodes one segment; the next look-ups nearby do not.
  /// - Precondition: `position` lies within `0..<count`.
  public func identifier(at position: Int) throws(BatchError) -> PersistentIdentifier {
    try list.identifier(at: position)
  }

  /// Reads the integer keys at some positions.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if the keys are not integers,
  ///   `.fileAccess` or `.damagedFile`, naming the block, if they cannot be read.
  /// - Complexity: O(n) in the range, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func integers(in range: Range<Int>) throws(BatchError) -> [Int64] {
    try list.integers(in: range)
  }

  /// Reads the encoded keys at some positions; an integer becomes a key of one component.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n) in the bytes of the keys, rounded up to whole segments.
  /// - Precondition: The range lies within `0..<count`.
  public func encodedKeys(in range: Range<Int>) throws(BatchError) -> EncodedKeys {
    try list.encodedKeys(in: range)
  }

  /// Returns whether an identifier is in the file.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(log n) and one block if the list is sorted, O(n) if it is not.
  public func contains(_ identifier: PersistentIdentifier) throws(BatchError) -> Bool {
    guard let key = identifier.key, list.space.identifier(key) == identifier else { return false }
    return try list.contains(key: key)
  }
}
