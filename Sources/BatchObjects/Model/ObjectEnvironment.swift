/// The shared state of the objects of one entity in one context.
///
/// It has a weak reference to the context, and caches the attributes that accessors look up.
final class ObjectEnvironment {
  /// Nil if the context is gone, and for objects that were removed from it.
  weak let context: ModelContext?
  /// Nil for objects whose identifiers belong to no entity of the container.
  let entity: ModelEntity?
  private(set) lazy var detached = ObjectEnvironment(context: nil, entity)
  let isDetached: Bool
  private(set) lazy var hasRelationships =
    entity.map { context?.container.relationships[$0.store].of($0).isEmpty == false } ?? true

  /// The attributes by the key path objects of accessors.
  ///
  /// The key paths are kept alive, so that no other one can get the same address.
  private var accesses: [ObjectIdentifier: (keyPath: AnyKeyPath, access: AnyAttributeAccess)] = [:]
  /// The cache is limited, since a program may create any number of key paths at run time.
  private static let accessLimit = 1_024

  init(context: ModelContext?, _ entity: ModelEntity?) {
    self.context = context
    self.entity = entity
    isDetached = context == nil
  }

  func access(by keyPath: AnyKeyPath) -> AnyAttributeAccess? {
    accesses[ObjectIdentifier(keyPath)]?.access
  }

  func keep(_ access: AnyAttributeAccess, for keyPath: AnyKeyPath) {
    if accesses.count == Self.accessLimit { accesses = [:] }
    accesses[ObjectIdentifier(keyPath)] = (keyPath, access)
  }
}
