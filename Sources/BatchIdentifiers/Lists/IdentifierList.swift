/// The fixed selection of a job: the identifiers of some rows of one entity, in order.
///
/// A list is immutable and compact: its keys are packed in segments of about a thousand, each in
/// the smallest of several codings. It keeps the order in which it was built. It is complete and in
/// memory; ``IdentifierFile/load()`` reads a saved list and checks all of it.
///
/// For speed, use the keys themselves: ``integers(in:)`` and ``encodedKeys(in:)`` decode each
/// segment only once.
public struct IdentifierList: Sendable {
  /// The kind of a list's keys.
  public enum KeyKind: UInt8, Sendable {
    /// Integer keys.
    case integer = 1
    /// Encoded keys: text, blobs, reals, several columns.
    case encoded = 2
  }

  /// The properties that all identifiers of a list share.
  public struct Header: Sendable {
    /// The UUID of the store; empty if it is unknown.
    public let storeIdentifier: String
    /// The name of the entity.
    public let entityName: String
    /// The kind of the keys.
    public let keyKind: KeyKind
  }

  /// The maximum number of identifiers in a list.
  public static let maximumCount = 1 << 48

  package let packed: PackedIdentifiers

  /// The keys must have been packed or checked by this process, so that they are readable.
  init(inMemory packed: PackedIdentifiers) {
    guard case .memory = packed.source else { preconditionFailure("these keys are in a file") }
    self.packed = packed
  }

  /// Makes an empty list.
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

  /// The properties that all identifiers of the list share.
  public var header: Header { packed.header }
  /// The names that the identifiers of the list share.
  public var space: IdentifierSpace { packed.space }
  /// Whether the keys are strictly ascending, which set operations require.
  public var isSorted: Bool { packed.isSorted }
  /// The number of identifiers.
  public var count: Int { packed.count }
  /// The number of blocks that the keys are packed in.
  public var blockCount: Int { packed.blockCount }

  /// The number of bytes of the packed blocks and of their directory.
  ///
  /// - Complexity: O(n) in the number of blocks.
  public var payloadByteCount: Int { packed.payloadByteCount }

  /// The size of a file with this list, without metadata and log.
  ///
  /// - Complexity: O(n) in the number of blocks.
  public var fileByteCount: Int { packed.fileByteCount }
}
