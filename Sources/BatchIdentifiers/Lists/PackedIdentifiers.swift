/// The keys of identifiers, packed in blocks, which are in memory or in a file.
///
/// A file can be damaged or taken away at any time, so whatever reads keys throws, and this is no
/// collection. An ``IdentifierList`` is: its keys are in memory.
package struct PackedIdentifiers: Sendable {
  /// What all identifiers have in common.
  package let header: IdentifierList.Header
  /// The names that the identifiers share.
  package let space: IdentifierSpace
  /// Whether each key is greater than the one before; set operations need it.
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

  /// How many bytes the blocks take.
  var encodedByteCount: Int { directory.byteCount }

  /// How many bytes the keys take: the packed blocks, and where each begins and with which key.
  ///
  /// - Complexity: O(n) in the number of blocks.
  package var payloadByteCount: Int {
    encodedByteCount + directory.encoded(header.keyKind).count - blockCount * 8
  }

  /// The number of blocks with a checksum of their own.
  package var blockCount: Int { directory.blockCount }
}
