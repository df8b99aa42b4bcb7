public import BatchIdentifiers
import BatchSQLite
import Dispatch

/// Holds objects: one per identifier, whose rows it reads when needed.
///
/// A context and its objects belong to one task or actor at a time and are not `Sendable`; pass
/// identifiers between them. The context keeps only objects with unsaved changes alive.
///
///     let context = ModelContext(container)
///     for order in try context.fetch(Order.self, where: "price_cents > 1000") {
///       order.price -= 100
///     }
///     try context.save()
///
/// Properties cannot throw, but hide no error: one whose row is gone or does not fit reads as a
/// placeholder, and the context's next throwing call throws the reason.
public final class ModelContext {
  /// The stores and entities.
  public let container: ModelContainer
  /// Whether an object whose row is gone counts as deleted and reads as a placeholder, instead of
  /// being an error; calls that throw, such as `existingModel(for:)`, ignore it.
  public var shouldDeleteInaccessibleFaults = false

  /// How to resolve conflicting changes of one row by two contexts; by default, an error.
  public var mergePolicy = MergePolicy.error
  /// The author of saves, for the stores' history.
  public var author: String?
  /// For how many seconds a fault may reuse its row: forever if negative, as in Core Data, and not
  /// at all if 0.
  ///
  /// It concerns what batch requests, jobs and other processes write. A row saved since by another
  /// context of the container is never reused.
  public var stalenessInterval = -1.0

  /// Whether the current changes are saved by somebody else, together with everything that they
  /// need.
  var isSavedByOwner = false
  /// The queue of the executor that owns the context, if one does.
  var queue: DispatchQueue?
  /// The objects with unsaved changes, which this keeps alive.
  var unsaved = UnsavedModels()
  /// The pairs with unsaved changes.
  var links = UnsavedLinks()
  /// The statements that the next save runs.
  var statements: [UnsavedStatement] = []
  /// The unsaved references between objects; created on demand.
  var unsavedReferences: UnsavedReferences?
  /// What a to-many relationship was last set to; nil if it may have changed since.
  var lastRelated: LastRelated?
  /// Increments whenever the related objects in the store may change.
  var generation = 0 {
    didSet { lastRelated = nil }
  }
  var registry = ModelRegistry()
  /// How often all objects were forgotten.
  private(set) var resetCount = 0
  /// The objects that the last prefetching fetch read besides its own.
  var prefetched: [ManagedObject] = []
  /// The saves of other contexts; nil if the context is too short-lived to need them.
  let inbox: ContextInbox?
  /// Whether saves of other contexts are merged automatically.
  var mergesSaved = false
  /// Deleted objects whose delete rules have not been applied yet.
  var undecidedDeletions: [ManagedObject] = []
  /// The effects of delete rules on related objects before the save, by deleted object.
  var consequences: [ObjectIdentifier: [DeletionPropagation.Consequence]] = [:]
  /// The new objects being inserted together, starting with the one that caused it.
  var joining: [ManagedObject] = []

  /// By entities.
  private var environments: [ObjectIdentifier?: ObjectEnvironment] = [:]
  private var connections: [Connection?]
  private var writers: [Connection?]
  private var notedReading: BatchError?
  private var notedChange: BatchError?

  /// Creates a context; a store's connection opens on first use.
  public convenience init(_ container: ModelContainer) {
    self.init(container, hearsOthers: true)
  }

  /// Creates a context, with or without notifications of other saves.
  init(_ container: ModelContainer, hearsOthers: Bool) {
    self.container = container
    inbox = hearsOthers ? ContextInbox() : nil
    connections = Array(repeating: nil, count: container.stores.count)
    writers = connections
    if let inbox { container.changes.add(inbox) }
  }

  deinit {
    container.changes.remove(inbox)
    // References between new objects may form a cycle.
    for object in unsaved.all() { object.references = SlotValues() }
  }

  /// The context's objects that are in use.
  public var registeredModels: [ManagedObject] {
    checkQueue()
    return registry.objects
  }

  /// Forgets all objects and unsaved changes; objects still in use are in no context any more.
  public func reset() {
    checkQueue()
    // Another object may have the key of a deleted one by now.
    for object in Set(registry.objects).union(unsaved.all()) { detach(object) }
    registry = ModelRegistry()
    resetCount += 1
    unsaved = UnsavedModels()
    links = UnsavedLinks()
    statements = []
    forgetDeletions()
    forgetReferences()
    prefetched = []
    notedReading = nil
    notedChange = nil
  }

  // MARK: Errors of properties

  /// Keeps the first error of a call that cannot throw, for one that can.
  func note(_ error: BatchError) {
    notedReading = notedReading ?? error
  }

  /// Keeps the first error of setting, inserting or deleting, for a call that can throw.
  func noteChange(_ error: BatchError) {
    notedChange = notedChange ?? error
  }

  /// Forgets errors of setting, inserting or deleting.
  func dropNotedChange() {
    notedChange = nil
  }

  /// The errors of reading since the last throw, for the caller to throw.
  func takeNotedReading() -> BatchError? {
    defer { notedReading = nil }
    return notedReading
  }

  /// Throws the error that a property could not.
  func throwNoted() throws(BatchError) {
    checkQueue()
    guard let error = notedReading ?? notedChange else { return }
    if notedReading != nil { notedReading = nil } else { notedChange = nil }
    throw error
  }

  /// The beginning of every call that reads from the store.
  func beginReading() throws(BatchError) {
    try throwNoted()
    noticeSaved()
    try decideDeletions()
  }

  // MARK: Objects

  /// The object with this identifier, if it is in use.
  func registered(_ identifier: PersistentIdentifier) -> ManagedObject? {
    checkQueue()
    if let object = registry[identifier] { return object }
    guard container.hasHierarchies, let key = identifier.key,
      let entity = try? container.resolve(identifier)
    else { return nil }
    // The identifier of an entity also finds objects of its sub-entities.
    return entity.descendants.lazy.compactMap { self.registry[$0.identifier(key)] }.first
  }

  /// A new object of an entity, or of none if the identifier names none.
  func register(_ identifier: PersistentIdentifier, _ entity: ModelEntity?) -> ManagedObject {
    let object = (entity?.type ?? ManagedObject.self).init()
    object.identity = identifier
    object.environment = environment(of: entity)
    registry.add(object, identifier)
    return object
  }

  /// The state shared by the objects of an entity, or by those of none.
  func environment(of entity: ModelEntity?) -> ObjectEnvironment {
    let key = entity.map { ObjectIdentifier($0) }
    if let known = environments[key] { return known }
    let new = ObjectEnvironment(context: self, entity)
    environments[key] = new
    return new
  }

  // MARK: Rows

  /// The connection that reads from a store.
  func connection(to index: Int) throws(BatchError) -> Connection {
    if let connection = connections[index] { return connection }
    let store = container.stores[index]
    // With a rollback journal that others create and remove at each save, a connection opened
    // read-only fails now and then: it takes a journal for one left behind, and cannot recover it.
    let connection = try Connection(path: store.path, options: store.options)
    try connection.execute("PRAGMA query_only = 1")
    connections[index] = connection
    return connection
  }

  /// Runs `body`, with a store's reads going through the caller's connection.
  func reading<Result>(
    _ store: Int,
    through connection: Connection,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let own = connections[store]
    connections[store] = connection
    defer { connections[store] = own }
    return try body()
  }

  /// The connection that saves to a store; it enforces foreign keys.
  func writer(to index: Int) throws(BatchError) -> Connection {
    if let writer = writers[index] { return writer }
    let store = container.stores[index]
    let writer = try Connection(path: store.path, options: store.options)
    try writer.execute("PRAGMA foreign_keys = ON")
    writers[index] = writer
    return writer
  }

  /// Fails if the file of a store that the context has read or written was moved, removed or
  /// replaced; inside the transaction that writes to it.
  func refuseIfMoved(_ index: Int) throws(BatchError) {
    for connection in [connections[index], writers[index]].compactMap(\.self) {
      try connection.refuseIfMoved(
        remedy: "put the right file there, and open a new container: nothing was saved"
      )
    }
  }

  /// Reads the row of a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if there is none, unless the context treats
  ///   such objects as deleted.
  func load(_ object: ManagedObject) throws(BatchError) {
    if case .stale(let row, let time) = object.stored, isFresh(time) {
      object.stored = .read(row, at: time)
      return
    }
    let identifier = object.persistentModelID
    let entity: ModelEntity
    if let known = object.entity {
      entity = known
    } else {
      entity = try container.resolve(identifier)
    }
    if let row = try entity.row(of: identifier, in: connection(to: entity.store)) {
      try entity.requireOwn(row, of: identifier)
      try entity.validate(row, of: identifier)
      try replaceRelatives(of: identifier, entity)
      object.take(row)
    } else if shouldDeleteInaccessibleFaults {
      object.stored = .gone(nil)
    } else {
      throw .notFound(identifier)
    }
  }

  /// Whether a fault may reuse its earlier row.
  private func isFresh(_ readAt: ContinuousClock.Instant) -> Bool {
    stalenessInterval < 0 || readAt.duration(to: .now) < .seconds(stalenessInterval)
  }
}

@available(*, unavailable, message: "create a context per task, and pass identifiers")
extension ModelContext: Sendable {}

extension BatchError.Code {
  /// The object of an identifier has another class than requested.
  public static let modelTypeMismatch = Self(rawValue: "modelTypeMismatch")
}
