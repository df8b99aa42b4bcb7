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

  /// The keys of several lists, in that order, without decoding any.
  ///
  /// - Parameters:
  ///   - lists: The lists.
  ///   - isSorted: Whether the keys ascend, through all lists.
  /// - Returns: One list.
  /// - Precondition: There is at least one list; all are of one kind and entity. All are in memory, or all have the
  ///   same spill.
  /// - Complexity: O(*n*) in the number of blocks.
  package static func joining(
    _ lists: [PackedIdentifiers],
    isSorted: Bool = true
  ) -> PackedIdentifiers {
    var directory = BlockDirectory()
    var blocks: [[UInt8]] = []
    var places: [BlockSpill.Place] = []
    var spill: BlockSpill?
    for list in lists {
      precondition(list.isSorted || !isSorted, "a list is not sorted")
      directory.append(contentsOf: list.directory)
      switch list.source {
      case .memory(let part): blocks += part
      case .spilled(let own, let part):
        precondition(spill == nil || spill === own, "lists with different spills cannot be joined")
        spill = own
        places += part
      case .file: preconditionFailure("lists in files cannot be joined")
      }
    }
    precondition(
      blocks.isEmpty || places.isEmpty,
      "lists with and without a spill cannot be joined"
    )
    if !isSorted { directory.removeSeparators() }
    return PackedIdentifiers(
      header: lists[0].header,
      isSorted: isSorted,
      directory: directory,
      source: spill.map { .spilled($0, places) } ?? .memory(blocks)
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
