/// The state shared by the objects of one entity in one context: a weak reference to the context,
/// and the cached look-ups of their accessors.
final class ObjectEnvironment {
  /// Nil once the context is gone, and for objects removed from it.
  weak let context: ModelContext?
  /// Nil for objects whose identifiers name no entity here.
  let entity: ModelEntity?
  /// The environment of objects removed from the context.
  private(set) lazy var detached = ObjectEnvironment(context: nil, entity)
  /// Whether this is the environment of objects removed from a context.
  let isDetached: Bool
  /// Whether the entity has relationships.
  private(set) lazy var hasRelationships =
    entity.map { context?.container.relationships[$0.store].of($0).isEmpty == false } ?? true

  /// The attributes by the accessors' key path objects, which are kept alive so that no other one
  /// can have the same address.
  private var accesses: [ObjectIdentifier: (keyPath: AnyKeyPath, access: AnyAttributeAccess)] = [:]
  /// The maximum number cached, since a program may create any number of key paths at run time.
  private static let accessLimit = 1_024

  init(context: ModelContext?, _ entity: ModelEntity?) {
    self.context = context
    self.entity = entity
    isDetached = context == nil
  }

  /// The cached look-up of exactly this key path object.
  func access(by keyPath: AnyKeyPath) -> AnyAttributeAccess? {
    accesses[ObjectIdentifier(keyPath)]?.access
  }

  func keep(_ access: AnyAttributeAccess, for keyPath: AnyKeyPath) {
    if accesses.count == Self.accessLimit { accesses = [:] }
    accesses[ObjectIdentifier(keyPath)] = (keyPath, access)
  }
}
