/// The identity of an object: its store, its entity, and the key of its row.
///
/// A small value (at most 24 bytes for an integer key) that can be sent to any task, saved as a URI
/// or JSON, and compared. Two identifiers are equal if their store, entity and key are, however
/// they were made: one decoded from JSON equals the one that a fetch returned. An identifier says
/// nothing about whether its row exists.
public struct PersistentIdentifier: Hashable, Identifiable, Comparable, Sendable,
  CustomStringConvertible
{
  /// The identity of an identifier, for collections that require one.
  public struct ID: Hashable, Sendable {
    let domain: IdentifierDomain
    let key: Key
  }

  /// The part after the entity in the URI.
  enum Key: Hashable, Sendable {
    case integer(Int64)
    case encoded(EncodedKey)
    /// The escaped text of a custom store's reference, without the `p`.
    case reference([UInt8])
    /// A UUID and, in Core Data's form, a counter.
    case temporary([UInt8])
  }

  /// The identity of this identifier.
  public let id: ID

  init(domain: IdentifierDomain, key: Key) {
    id = ID(domain: domain, key: key)
  }

  /// Makes the identifier of the row with a key in an entity.
  public init(_ space: IdentifierSpace, key: PrimaryKey) {
    switch key.canonical {
    case .integer(let value): self.init(domain: space.domain, key: .integer(value))
    case .encoded(let key): self.init(domain: space.domain, key: .encoded(key))
    }
  }

  /// Makes the identifier of a row from its key and the names of its store and entity.
  ///
  /// - Complexity: A look-up of the two names; to make many identifiers, use an
  ///   ``IdentifierSpace``.
  public init(storeIdentifier: String?, entityName: String, key: PrimaryKey) {
    self.init(IdentifierSpace(storeIdentifier: storeIdentifier, entityName: entityName), key: key)
  }

  /// Makes the identifier of an object in a custom store from a reference, which may be any text.
  ///
  /// The reference follows the `p` in the URI, escaped like a path: `key with/slash` becomes
  /// `pkey%20with/slash`. A reference of decimal digits is an integer key.
  public init(storeIdentifier: String?, entityName: String, reference: String) {
    let domain = IdentifierDomain.interned(.coreData, storeIdentifier, entityName)
    self.init(domain: domain, key: Self.referenceKey(reference))
  }

  /// Makes the identifier of an object in a store provided by the developer.
  ///
  /// Its URI is `x-developer-provided://STORE/ENTITY/KEY`. Stores that keep SQLite rows refuse it.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if the store, the entity or the key is
  ///   empty.
  public static func identifier<Value>(
    for storeIdentifier: String,
    entityName: String,
    primaryKey: Value
  ) throws(BatchError) -> PersistentIdentifier
  where Value: Comparable & CustomStringConvertible & Codable & Hashable {
    let reference = primaryKey.description
    guard !storeIdentifier.isEmpty, !entityName.isEmpty, !reference.isEmpty else {
      throw BatchError(
        .invalidIdentifier,
        "an identifier needs a store, an entity and a key that are not empty"
      )
    }
    let domain = IdentifierDomain.interned(.developerProvided, storeIdentifier, entityName)
    return PersistentIdentifier(domain: domain, key: referenceKey(reference))
  }

  private static func referenceKey(_ reference: String) -> Key {
    let bytes = [UInt8](reference.utf8)
    if let value = KeyReference.integer(bytes.span) { return .integer(value) }
    var text: [UInt8] = []
    PercentEncoding.append(bytes.span, to: &text, .path)
    // The library's own forms of keys begin with these characters; escaped, they cannot be mistaken
    // for one.
    if let first = text.first, Self.keyMarks.contains(first) {
      var escaped: [UInt8] = []
      PercentEncoding.appendEscape(first, to: &escaped)
      text.replaceSubrange(0..<1, with: escaped)
    }
    return .reference(text)
  }

  /// The first characters in the text of keys that are not integers.
  static let keyMarks: [UInt8] = [
    UInt8(ascii: "="), UInt8(ascii: "~"), UInt8(ascii: "*"), UInt8(ascii: "!"),
  ]

  /// The UUID of the store; nil for temporary identifiers, and if it is unknown.
  public var storeIdentifier: String? { id.domain.storeIdentifier }

  /// The name of the entity.
  public var entityName: String { id.domain.entityName }

  /// The properties that the identifier shares with others of the same entity and store.
  public var space: IdentifierSpace { IdentifierSpace(id.domain) }

  /// Whether the object is unsaved, so that the identifier has no meaning elsewhere.
  public var isTemporary: Bool { id.domain.isTemporary }

  /// Whether the identifier belongs to a store provided by the developer.
  public var isDeveloperProvided: Bool { id.domain.form == .developerProvided }

  /// The key of the row; nil for temporary identifiers and references of custom stores.
  public var key: PrimaryKey? {
    switch id.key {
    case .integer(let value): .integer(value)
    case .encoded(let key): .encoded(key)
    case .reference, .temporary: nil
    }
  }

  /// The identifier as a URI.
  public var description: String { uriString }

  /// Orders two identifiers.
  ///
  /// Permanent identifiers come first; then store, entity and key decide. Keys are compared by
  /// value: `p9` comes before `p10`.
  public static func < (left: PersistentIdentifier, right: PersistentIdentifier) -> Bool {
    let order = IdentifierDomain.order(left.id.domain, right.id.domain)
    return order == 0 ? left.id.key < right.id.key : order < 0
  }
}

extension PersistentIdentifier.Key: Comparable {
  static func < (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.encoded(let left), .encoded(let right)): left < right
    case (.reference(let left), .reference(let right)): left.lexicographicallyPrecedes(right)
    case (.temporary(let left), .temporary(let right)):
      // The counter after the UUID ascends, so the shorter one is earlier.
      left.count == right.count
        ? left.lexicographicallyPrecedes(right) : left.count < right.count
    default: left.rank < right.rank
    }
  }

  private var rank: Int {
    switch self {
    case .integer: 0
    case .encoded: 1
    case .reference: 2
    case .temporary: 3
    }
  }
}
