/// The properties that identifiers of one entity in one store share.
///
/// To make many identifiers, make them from one space: the names are then looked up only once, and
/// each identifier is a reference and a key.
public struct IdentifierSpace: Hashable, Sendable {
  let domain: IdentifierDomain

  init(_ domain: IdentifierDomain) {
    self.domain = domain
  }

  /// Makes the space of the permanent identifiers of an entity.
  ///
  /// - Parameters:
  ///   - storeIdentifier: The UUID of the store, or nil if it is unknown.
  ///   - entityName: The name of the entity.
  public init(storeIdentifier: String?, entityName: String) {
    domain = IdentifierDomain.interned(.coreData, storeIdentifier, entityName)
  }

  /// The UUID of the store; nil if it is unknown.
  public var storeIdentifier: String? { domain.storeIdentifier }
  /// The name of the entity.
  public var entityName: String { domain.entityName }

  /// Returns the identifier of the row with a key.
  public func identifier(_ key: PrimaryKey) -> PersistentIdentifier {
    PersistentIdentifier(self, key: key)
  }
}

/// The names in an identifier, shared by all identifiers that have them.
final class IdentifierDomain: Hashable, Sendable {
  enum Form: UInt8 {
    case coreData
    case developerProvided
    case temporary
    case temporarySwiftData
  }

  let form: Form
  let storeIdentifier: String?
  let entityName: String
  private let hash: Int

  init(_ form: Form, _ storeIdentifier: String?, _ entityName: String) {
    self.form = form
    self.storeIdentifier = storeIdentifier
    self.entityName = entityName
    // Byte by byte: the names of two tables may differ only in how an accent is composed.
    var hasher = Hasher()
    hasher.combine(form)
    for byte in (storeIdentifier ?? "").utf8 { hasher.combine(byte) }
    hasher.combine(0 as UInt8)
    for byte in entityName.utf8 { hasher.combine(byte) }
    hash = hasher.finalize()
  }

  var isTemporary: Bool { form == .temporary || form == .temporarySwiftData }

  static func == (left: IdentifierDomain, right: IdentifierDomain) -> Bool {
    if left === right { return true }
    guard left.hash == right.hash, left.form == right.form else { return false }
    return compare(left.storeIdentifier, right.storeIdentifier) == 0
      && compare(left.entityName, right.entityName) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(hash)
  }

  /// Returns a negative number, zero, or a positive number.
  ///
  /// Permanent identifiers come first; then store and entity decide, byte by byte.
  static func order(_ left: IdentifierDomain, _ right: IdentifierDomain) -> Int {
    if left === right { return 0 }
    if left.isTemporary != right.isTemporary { return left.isTemporary ? 1 : -1 }
    let byStore = compare(left.storeIdentifier, right.storeIdentifier)
    if byStore != 0 { return byStore }
    let byEntity = compare(left.entityName, right.entityName)
    if byEntity != 0 { return byEntity }
    return Int(left.form.rawValue) - Int(right.form.rawValue)
  }

  private static func compare(_ left: String?, _ right: String?) -> Int {
    guard let left, let right else { return (left == nil ? 0 : 1) - (right == nil ? 0 : 1) }
    if left.utf8.elementsEqual(right.utf8) { return 0 }
    return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
  }

  // MARK: Interning

  private struct Names: Hashable {
    let form: Form
    let store: [UInt8]?
    let entity: [UInt8]
  }

  /// Limited, so that URIs from outside cannot fill the memory with names.
  private static let maximumInternedCount = 4096
  private static let table = Lock<[Names: IdentifierDomain]>([:])

  /// The domain with these names, which is always the same object while the table has room.
  static func interned(_ form: Form, _ store: String?, _ entity: String) -> IdentifierDomain {
    let names = Names(
      form: form,
      store: store.map { [UInt8]($0.utf8) },
      entity: [UInt8](entity.utf8)
    )
    return table.withLock { table in
      if let domain = table[names] { return domain }
      let domain = IdentifierDomain(form, store, entity)
      if table.count < maximumInternedCount { table[names] = domain }
      return domain
    }
  }
}
