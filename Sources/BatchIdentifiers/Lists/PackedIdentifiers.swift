/// The keys of identifiers, packed in blocks that are in memory or in a file.
///
/// A file can be damaged or removed at any time, so every method that reads keys throws, and this
/// cannot be a collection. An ``IdentifierList``, whose keys are in memory, is one.
package struct PackedIdentifiers: Sendable {
  package let header: IdentifierList.Header
  package let space: IdentifierSpace
  /// Whether the keys are strictly ascending, which set operations require.
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

  /// Joins the keys of several lists, without decoding any.
  ///
  /// - Parameters:
  ///   - lists: At least one list; all have keys of one kind and entity, and are in memory or share
  ///     a spill.
  ///   - isSorted: Whether the keys ascend through all lists.
  /// - Returns: The list of all keys.
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

  package var count: Int { directory.count }

  /// In bytes.
  var encodedByteCount: Int { directory.byteCount }

  /// The number of bytes of the packed blocks and of their directory.
  package var payloadByteCount: Int {
    encodedByteCount + directory.encoded(header.keyKind).count - blockCount * 8
  }

  package var blockCount: Int { directory.blockCount }
}
