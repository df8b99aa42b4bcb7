/// The keys of identifiers, packed in blocks that are in memory or in a file.
///
/// A file can be damaged or removed at any time, so every method that reads keys throws, and this
/// is no collection. An ``IdentifierList``, whose keys are in memory, is one.
package struct PackedIdentifiers: Sendable {
  /// What all identifiers have in common.
  package let header: IdentifierList.Header
  /// The names shared by the identifiers.
  package let space: IdentifierSpace
  /// Whether the keys are strictly ascending; set operations require it.
  package let isSorted: Bool

  let directory: BlockDirectory
  let source: BlockSource
  let cache = SegmentCache()

  init(
    header: IdentifierList.Header,
    isSorted: Bool,
    directory: BlockDirectory,
    source: BlockSource
  ) {
    self.header = header
    self.isSorted = isSorted
    self.directory = directory
    self.source = source
    space = IdentifierSpace(
      storeIdentifier: header.storeIdentifier.isEmpty ? nil : header.storeIdentifier,
      entityName: header.entityName
    )
  }

  /// The number of keys.
  package var count: Int { directory.count }

  /// The size of the blocks in bytes.
  var encodedByteCount: Int { directory.byteCount }

  /// The bytes of the packed blocks and of the directory that locates them.
  ///
  /// - Complexity: O(n) in the number of blocks.
  package var payloadByteCount: Int {
    encodedByteCount + directory.encoded(header.keyKind).count - blockCount * 8
  }

  /// The number of blocks, each with its own checksum.
  package var blockCount: Int { directory.blockCount }
}
