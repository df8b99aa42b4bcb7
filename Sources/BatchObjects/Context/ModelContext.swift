public import BatchIdentifiers
import BatchSQLite
import Dispatch

/// Holds objects, one per identifier, and reads their rows when needed.
///
/// A context and its objects belong to one task or actor at a time, and are not `Sendable`; pass
/// identifiers between them. The context keeps only objects with unsaved changes alive.
///
///     let context = ModelContext(container)
///     for order in try context.fetch(Order.self, where: "price_cents > 1000") {
///       order.price -= 100
///     }
///     try context.save()
///
/// Properties cannot throw, but do not hide errors: if a row is gone or a value does not fit, the
/// property has a placeholder value, and the context's next throwing call throws the reason.
public final class ModelContext {
  /// The container with the stores and entities.
  public let container: ModelContainer
  /// Whether an object whose row is gone counts as deleted and has placeholder values, instead of
  /// being an error.
  ///
  /// Calls that throw, such as `existingModel(for:)`, ignore this.
  public var shouldDeleteInaccessibleFaults = false

  /// How to resolve conflicting changes of a row by two contexts; by default, they are an error.
  public var mergePolicy = MergePolicy.error
  /// The author of saves in the history of the stores.
  public var author: String?
  /// The number of seconds for which a fault may reuse its row: forever if negative, as in Core
  /// Data, and not at all if 0.
  ///
  /// This concerns writes by batch requests, jobs and other processes. A row that another context
  /// of the container has saved since is never reused.
  public var stalenessInterval = -1.0

  /// Whether an owner will save the current changes, together with everything that belongs to them.
  var isSavedByOwner = false
  var queue: DispatchQueue?
  /// Keeps objects with unsaved changes alive.
  var unsaved = UnsavedModels()
  var links = UnsavedLinks()
  var statements: [UnsavedStatement] = []
  /// Created on demand.
  var unsavedReferences: UnsavedReferences?
  /// The last value set for a to-many relationship; nil if it may have changed since.
  var lastRelated: LastRelated?
  /// Increments whenever the related objects in the store may change.
  var generation = 0 {
    didSet { lastRelated = nil }
  }
  var registry = ModelRegistry()
  private(set) var resetCount = 0
  /// Related objects that the last fetch with prefetching has read.
  var prefetched: [ManagedObject] = []
  /// The saves of other contexts; nil if the context is too short-lived to need them.
  let inbox: ContextInbox?
  var mergesSaved = false
  var undecidedDeletions: [ManagedObject] = []
  /// The effects of delete rules on related objects before the save, by deleted object.
  var consequences: [ObjectIdentifier: [DeletionPropagation.Consequence]] = [:]
  /// The new objects that are inserted together, beginning with the one that caused it.
  var joining: [ManagedObject] = []

  /// By entity.
  private var environments: [ObjectIdentifier?: ObjectEnvironment] = [:]
  private var connections: [Connection?]
  private var writers: [Connection?]
  private var notedReading: BatchError?
  private var notedChange: BatchError?

  /// Creates a context; the connection to a store opens on first use.
  public convenience init(_ container: ModelContainer) {
    self.init(container, hearsOthers: true)
  }

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

  /// The objects of the context that are in use.
  public var registeredModels: [ManagedObject] {
    checkQueue()
    return registry.objects
  }

  /// Forgets all objects and unsaved changes; objects that are still in use have no context then.
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

  /// Keeps the first error of reading in a call that cannot throw, for a call that can.
  func note(_ error: BatchError) {
    notedReading = notedReading ?? error
  }

  /// Keeps the first error of setting, inserting or deleting, for a call that can throw.
  func noteChange(_ error: BatchError) {
    notedChange = notedChange ?? error
  }

  func dropNotedChange() {
    notedChange = nil
  }

  /// Returns and forgets the pending error of reading, for the caller to throw.
  func takeNotedReading() -> BatchError? {
    defer { notedReading = nil }
    return notedReading
  }

  /// Throws the pending error of a property or other call that cannot throw.
  func throwNoted() throws(BatchError) {
    checkQueue()
    guard let error = notedReading ?? notedChange else { return }
    if notedReading != nil { notedReading = nil } else { notedChange = nil }
    throw error
  }

  func beginReading() throws(BatchError) {
    try throwNoted()
    noticeSaved()
    try decideDeletions()
  }

  // MARK: Objects

  func registered(_ identifier: PersistentIdentifier) -> ManagedObject? {
    checkQueue()
    if let object = registry[identifier] { return object }
    guard container.hasHierarchies, let key = identifier.key,
      let entity = try? container.resolve(identifier)
    else { return nil }
    // The identifier of an entity also finds objects of its sub-entities.
    return entity.descendants.lazy.compactMap { self.registry[$0.identifier(key)] }.first
  }

  /// Creates and registers an object; without an entity if the identifier's entity does not exist.
  func register(_ identifier: PersistentIdentifier, _ entity: ModelEntity?) -> ManagedObject {
    let object = (entity?.type ?? ManagedObject.self).init()
    object.identity = identifier
    object.environment = environment(of: entity)
    registry.add(object, identifier)
    return object
  }

  func environment(of entity: ModelEntity?) -> ObjectEnvironment {
    let key = entity.map { ObjectIdentifier($0) }
    if let known = environments[key] { return known }
    let new = ObjectEnvironment(context: self, entity)
    environments[key] = new
    return new
  }

  // MARK: Rows

  func connection(to index: Int) throws(BatchError) -> Connection {
    if let connection = connections[index] { return connection }
    let store = container.stores[index]
    // With a rollback journal that others create and remove at each save, a read-only connection
    // fails now and then: it mistakes a journal for a leftover one, and cannot recover it.
    let connection = try Connection(path: store.path, options: store.options)
    try connection.execute("PRAGMA query_only = 1")
    connections[index] = connection
    return connection
  }

  /// Runs `body` with the reads of a store going through the caller's connection.
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

  /// The connection for saves enforces foreign keys.
  func writer(to index: Int) throws(BatchError) -> Connection {
    if let writer = writers[index] { return writer }
    let store = container.stores[index]
    let writer = try Connection(path: store.path, options: store.options)
    try writer.execute("PRAGMA foreign_keys = ON")
    writers[index] = writer
    return writer
  }

  /// Throws if the file of a store was moved, removed or replaced since the context has used it.
  ///
  /// Call it within the transaction that writes to the store.
  func refuseIfMoved(_ index: Int) throws(BatchError) {
    for connection in [connections[index], writers[index]].compactMap(\.self) {
      try connection.refuseIfMoved(
        remedy: "put the right file there, and open a new container: nothing was saved"
      )
    }
  }

  /// Reads the row of a fault; throws `objectNotFound` if there is none, unless such objects count
  /// as deleted.
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

  private func isFresh(_ readAt: ContinuousClock.Instant) -> Bool {
    stalenessInterval < 0 || readAt.duration(to: .now) < .seconds(stalenessInterval)
  }
}

@available(*, unavailable, message: "create a context per task, and pass identifiers")
extension ModelContext: Sendable {}

extension BatchError.Code {
  /// The object with the identifier has another class than the requested one.
  public static let modelTypeMismatch = Self(rawValue: "modelTypeMismatch")
}
