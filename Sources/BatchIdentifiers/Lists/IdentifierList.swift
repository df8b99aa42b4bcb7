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

  /// The keys, which are in memory.
  package let packed: PackedIdentifiers

  /// A list of keys that were packed or checked here, so that they can be read.
  init(inMemory packed: PackedIdentifiers) {
    guard case .memory = packed.source else { preconditionFailure("these keys are in a file") }
    self.packed = packed
  }

  /// The keys of several lists, one list after the other, without decoding any.
  ///
  /// - Precondition: There is a list; all are sorted, of integers of one entity, and each ends before
  ///   the next begins.
  /// - Complexity: O(*n*) in the number of blocks.
  package static func joining(_ lists: [IdentifierList]) -> IdentifierList {
    var directory = BlockDirectory()
    var blocks: [[UInt8]] = []
    for list in lists {
      guard list.isSorted, case .memory(let part) = list.packed.source else {
        preconditionFailure("only sorted lists can be joined")
      }
      directory.append(contentsOf: list.packed.directory)
      blocks += part
    }
    return IdentifierList(
      inMemory: PackedIdentifiers(
        header: lists[0].header,
        isSorted: true,
        directory: directory,
        source: .memory(blocks)
      )
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

  /// What all identifiers of the list have in common.
  public var header: Header { packed.header }
  /// The names that the identifiers of the list share.
  public var space: IdentifierSpace { packed.space }
  /// Whether each key is greater than the one before; set operations need it.
  public var isSorted: Bool { packed.isSorted }
  /// The number of identifiers.
  public var count: Int { packed.count }
  /// The number of blocks that the keys are packed in.
  public var blockCount: Int { packed.blockCount }

  /// How many bytes the keys take: the packed blocks, and where each begins and with which key.
  ///
  /// - Complexity: O(n) in the number of blocks.
  public var payloadByteCount: Int { packed.payloadByteCount }

  /// How many bytes a file of the list takes, without metadata and log.
  ///
  /// - Complexity: O(n) in the number of blocks.
  public var fileByteCount: Int { packed.fileByteCount }
}
