/// What the objects of one entity in one context share: a weak reference to the context for all of
/// them, and what their accessors have looked up.
final class ObjectEnvironment {
  /// Nil once the context is gone, and for objects that were taken out of it.
  weak let context: ModelContext?
  /// Nil for objects whose identifiers name no entity here.
  let entity: ModelEntity?
  /// That of objects that were taken out of the context.
  private(set) lazy var detached = ObjectEnvironment(context: nil, entity)
  /// Whether this is that of objects that were taken out of a context.
  let isDetached: Bool
  /// Whether objects of the entity are related to others.
  private(set) lazy var hasRelationships =
    entity.map { context?.container.relationships[$0.store].of($0).isEmpty == false } ?? true

  /// The attributes by the key path objects that accessors came with, which are kept alive so that
  /// no other one can have the same address.
  private var accesses: [ObjectIdentifier: (keyPath: AnyKeyPath, access: AnyAttributeAccess)] = [:]
  /// How many are kept: key paths that are made at run time may be any number.
  private static let accessLimit = 1_024

  init(context: ModelContext?, _ entity: ModelEntity?) {
    self.context = context
    self.entity = entity
    isDetached = context == nil
  }

  /// What was looked up for this very key path object.
  func access(by keyPath: AnyKeyPath) -> AnyAttributeAccess? {
    accesses[ObjectIdentifier(keyPath)]?.access
  }

  func keep(_ access: AnyAttributeAccess, for keyPath: AnyKeyPath) {
    if accesses.count == Self.accessLimit { accesses = [:] }
    accesses[ObjectIdentifier(keyPath)] = (keyPath, access)
  }
}
