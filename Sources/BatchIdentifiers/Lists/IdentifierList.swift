/// The fixed selection of a job: the identifiers of some rows of one entity, in order.
///
/// A list is immutable and compact: its keys are packed in segments of about a thousand, each in
/// the smallest of several codings. It keeps the order in which it was built. It is whole and in
/// memory: one that was saved comes back by ``IdentifierFile/load()``, which checks all of it.
///
/// Work with the keys themselves where speed matters: ``integers(in:)`` and
/// ``encodedKeys(in:)`` decode each segment once.
public struct IdentifierList: Sendable {
  /// What the keys of a list are.
  public enum KeyKind: UInt8, Sendable {
    /// Integers.
    case integer = 1
    /// Encoded keys: text, blobs, reals, several columns.
    case encoded = 2
  }

  /// What all identifiers of a list have in common.
  public struct Header: Sendable {
    /// The UUID of the store; empty if it is not known.
    public let storeIdentifier: String
    /// The name of the entity.
    public let entityName: String
    /// What the keys are.
    public let keyKind: KeyKind
  }

  /// The most identifiers that a list can hold.
  public static let maximumCount = 1 << 48

  /// What all identifiers of the list have in common.
  public let header: Header
  /// The names that the identifiers of the list share.
  public let space: IdentifierSpace
  /// Whether each key is greater than the one before; set operations need it.
  public let isSorted: Bool

  let directory: BlockDirectory
  let source: BlockSource
  let cache = SegmentCache()

  init(header: Header, isSorted: Bool, directory: BlockDirectory, source: BlockSource) {
    self.header = header
    self.isSorted = isSorted
    self.directory = directory
    self.source = source
    space = IdentifierSpace(
      storeIdentifier: header.storeIdentifier.isEmpty ? nil : header.storeIdentifier,
      entityName: header.entityName
    )
  }

  /// The keys of several lists, one list after the other, without decoding any.
  ///
  /// - Precondition: There is a list; all are sorted, in memory, of integers of one entity, and each
  ///   ends before the next begins.
  /// - Complexity: O(*n*) in the number of blocks.
  package static func joining(_ lists: [IdentifierList]) -> IdentifierList {
    var directory = BlockDirectory()
    var blocks: [[UInt8]] = []
    for list in lists {
      guard list.isSorted, case .memory(let part) = list.source else {
        preconditionFailure("only sorted lists in memory can be joined")
      }
      directory.append(contentsOf: list.directory)
      blocks += part
    }
    return IdentifierList(
      header: lists[0].header,
      isSorted: true,
      directory: directory,
      source: .memory(blocks)
    )
  }

  /// A list of no identifiers.
  public static func empty(
    storeIdentifier: String,
    entityName: String,
    keyKind: KeyKind = .integer
  ) -> IdentifierList {
    IdentifierListBuilder(
      storeIdentifier: storeIdentifier,
      entityName: entityName,
      keyKind: keyKind
    ).finish()
  }

  /// The number of identifiers.
  public var count: Int { directory.count }

  /// How many bytes the blocks take.
  var encodedByteCount: Int { directory.byteCount }

  /// How many bytes the keys take: the packed blocks, and where each begins and with which key.
  ///
  /// - Complexity: O(n) in the number of blocks.
  public var payloadByteCount: Int {
    encodedByteCount + directory.encoded(header.keyKind).count - blockCount * 8
  }

  /// The number of blocks with a checksum of their own.
  public var blockCount: Int { directory.blockCount }
}
