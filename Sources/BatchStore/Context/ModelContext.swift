public import BatchIdentifiers
import Dispatch

/// Where objects live: it makes one object for each identifier, and reads rows when they are needed.
///
/// A context and its objects belong to one task or actor at a time and are not `Sendable`;
/// identifiers go from one to another. The context does not keep its objects alive.
///
///     let context = ModelContext(container)
///     for order in try context.fetch(Order.self, where: "price_cents > 1000") {
///       print(order.price)
///     }
///
/// What cannot throw never hides an error: a property whose row is gone, or does not fit, reads as a
/// placeholder, and the next throwing call of the context throws the reason.
public final class ModelContext {
  /// The stores and entities.
  public let container: ModelContainer
  /// Whether an object whose row is gone is taken for deleted, and reads as a placeholder, rather
  /// than for an error; not consulted by calls that throw, such as `existingModel(for:)`.
  public var shouldDeleteInaccessibleFaults = false

  /// The queue of the executor that owns the context, if one does.
  var queue: DispatchQueue?

  private var connections: [Connection?]
  private var registry = ModelRegistry()
  private var noted: BatchError?

  /// Makes a context; a store's connection is opened when it is needed first.
  public init(_ container: ModelContainer) {
    self.container = container
    connections = Array(repeating: nil, count: container.stores.count)
  }

  /// The objects that are in the context and in use.
  public var registeredModels: [ManagedObject] { registry.objects }

  /// Turns an object into a fault, which reads its row again when it is used.
  ///
  /// - Parameters:
  ///   - object: An object of this context; one of another is left alone.
  ///   - mergeChanges: Whether changes that were not saved are kept.
  public func refresh(_ object: ManagedObject, mergeChanges: Bool) {
    guard object.modelContext === self else { return }
    object.row = nil
    object.isDeleted = false
  }

  /// Forgets all objects; those that are still in use are in no context any more.
  public func reset() {
    for object in registry.objects {
      object.modelContext = nil
      object.row = nil
    }
    registry = ModelRegistry()
    noted = nil
  }

  // MARK: Errors of getters

  /// Keeps an error of a call that cannot throw, the first one, for one that can.
  func note(_ error: BatchError) {
    noted = noted ?? error
  }

  /// Throws what a getter had to keep to itself.
  func throwNoted() throws(BatchError) {
    checkQueue()
    guard let error = noted else { return }
    noted = nil
    throw error
  }

  // MARK: Objects

  /// The object of this identifier, if it is in use.
  func registered(_ identifier: PersistentIdentifier) -> ManagedObject? {
    checkQueue()
    if let object = registry[identifier] { return object }
    guard let key = identifier.key,
      let names = (try? container.resolve(identifier))?.concrete?.names.values
    else { return nil }
    // The identifier of an entity also finds objects of its sub-entities.
    for name in names where name != identifier.entityName {
      let concrete = PersistentIdentifier(
        storeIdentifier: identifier.storeIdentifier,
        entityName: name,
        key: key
      )
      if let object = registry[concrete] { return object }
    }
    return nil
  }

  /// A new object of an entity, or of none if the identifier names none.
  func register(_ identifier: PersistentIdentifier, _ entity: ModelEntity?) -> ManagedObject {
    let object = (entity?.type ?? ManagedObject.self).init()
    object.identity = identifier
    object.entity = entity
    object.modelContext = self
    registry.add(object, identifier)
    return object
  }

  // MARK: Rows

  /// The connection to a store.
  func connection(to index: Int) throws(BatchError) -> Connection {
    if let connection = connections[index] { return connection }
    let store = container.stores[index]
    var options = store.options
    options.isReadOnly = true
    let connection = try Connection(path: store.path, options: options)
    connections[index] = connection
    return connection
  }

  /// Reads the row of a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if there is none, unless the context takes
  ///   such objects for deleted.
  func load(_ object: ManagedObject) throws(BatchError) {
    let identifier = object.persistentModelID
    let entity: ModelEntity
    if let known = object.entity {
      entity = known
    } else {
      entity = try container.resolve(identifier)
    }
    if let row = try row(of: identifier, entity) {
      try entity.validate(row, of: identifier)
      object.row = row
    } else if shouldDeleteInaccessibleFaults {
      object.isDeleted = true
    } else {
      throw Self.notFound(identifier)
    }
  }

  /// The row of an identifier, or nil if there is none.
  func row(
    of identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) throws(BatchError) -> [SQLValue]? {
    guard let key = identifier.key else { throw Self.notFound(identifier) }
    let table = entity.entity
    let columns = try table.requireKey().columns
    let conditions =
      columns.map { "\(SQLName.quoted($0)) IS ?" } + [table.condition].compactMap(\.self)
    let statement = try connection(to: entity.store).prepare(
      """
      SELECT \(SQLName.list(entity.columns)) FROM \(SQLName.quoted(table.table)) \
      WHERE \(conditions.joined(separator: " AND "))
      """
    )
    for (index, component) in key.components.enumerated() {
      try statement.bind(SQLValue(component), at: index + 1)
    }
    guard try statement.step() else { return nil }
    return entity.columns.indices.map { statement.value(at: $0) }
  }

  static func notFound(_ identifier: PersistentIdentifier) -> BatchError {
    BatchError(
      .objectNotFound,
      "there is no such row",
      at: identifier.description,
      remedy: "it was deleted, or never saved"
    )
  }
}

@available(*, unavailable, message: "make a context for each task, and send identifiers")
extension ModelContext: Sendable {}

extension BatchError.Code {
  /// There is no row with this identifier: Core Data's error 133000.
  public static let objectNotFound = Self(rawValue: "objectNotFound")
  /// The object of an identifier is of another class than was asked for.
  public static let modelTypeMismatch = Self(rawValue: "modelTypeMismatch")
}
