public import BatchIdentifiers
import BatchStore
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

  /// How two contexts' changes of one row are settled; an error if nothing else is said.
  public var mergePolicy = MergePolicy.error
  /// Who saves, for the history of the stores.
  public var author: String?
  /// For how many seconds the row of an object that was made a fault may be used again; as long as
  /// the object lives if negative, as in Core Data, and not at all if 0.
  ///
  /// It is about what batch requests, jobs and other processes write. A row that another context of
  /// the container has saved since is never used again.
  public var stalenessInterval = -1.0

  /// Whether somebody else saves what is done now, all of it together with what that needs.
  var isSavedByOwner = false
  /// The queue of the executor that owns the context, if one does.
  var queue: DispatchQueue?
  /// The objects that there is something to save of, which is what keeps them alive.
  var unsaved = UnsavedModels()
  /// The pairs that there is something to save of.
  var links = UnsavedLinks()
  /// The statements that the next save carries out.
  var statements: [UnsavedStatement] = []
  /// Who refers to whom by what is unsaved; made when it is needed.
  var unsavedReferences: UnsavedReferences?
  /// What a relationship to many was set to last; nil if it may be something else by now.
  var lastRelated: LastRelated?
  /// Goes up with whatever may change what the store has related to objects.
  var generation = 0 {
    didSet { lastRelated = nil }
  }
  var registry = ModelRegistry()
  /// How often all objects were forgotten.
  private(set) var resetCount = 0
  /// What the last fetch that prefetches has read beside its objects.
  var prefetched: [ManagedObject] = []
  /// What other contexts saved; nil if the context does not live long enough to want to know.
  let inbox: ContextInbox?
  /// Whether what other contexts saved is merged by itself.
  var mergesSaved = false
  /// Deleted objects of which the delete rules were not looked at yet.
  var undecidedDeletions: [ManagedObject] = []
  /// What delete rules did to related objects before the save, by the object that is deleted.
  var consequences: [ObjectIdentifier: [DeletionPropagation.Consequence]] = [:]
  /// The new objects that have come into the context while one of them does, that one first.
  var joining: [ManagedObject] = []

  /// By entities.
  private var environments: [ObjectIdentifier?: ObjectEnvironment] = [:]
  private var connections: [Connection?]
  private var writers: [Connection?]
  private var notedReading: BatchError?
  private var notedChange: BatchError?

  /// Makes a context; a store's connection is opened when it is needed first.
  public convenience init(_ container: ModelContainer) {
    self.init(container, hearsOthers: true)
  }

  /// Makes a context that is notified of what others save, or one that is not.
  init(_ container: ModelContainer, hearsOthers: Bool) {
    self.container = container
    inbox = hearsOthers ? ContextInbox() : nil
    connections = Array(repeating: nil, count: container.stores.count)
    writers = connections
    if let inbox { container.changes.add(inbox) }
  }

  deinit {
    container.changes.remove(inbox)
    // New objects may refer to each other in a circle.
    for object in unsaved.all() { object.references = SlotValues() }
  }

  /// The objects that are in the context and in use.
  public var registeredModels: [ManagedObject] {
    checkQueue()
    return registry.objects
  }

  /// Forgets all objects and whatever was not saved; objects that are still in use are in no context
  /// any more.
  public func reset() {
    checkQueue()
    // The key of an object that is to be deleted may be another one's by now.
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

  /// Keeps an error of a call that cannot throw, the first one, for one that can.
  func note(_ error: BatchError) {
    notedReading = notedReading ?? error
  }

  /// Keeps what could not be set, inserted or deleted, the first of it, for a call that can throw.
  func noteChange(_ error: BatchError) {
    notedChange = notedChange ?? error
  }

  /// Forgets what could not be set, inserted or deleted.
  func dropNotedChange() {
    notedChange = nil
  }

  /// What could not be read since that was thrown last, to be thrown by the caller.
  func takeNotedReading() -> BatchError? {
    defer { notedReading = nil }
    return notedReading
  }

  /// Throws what a property had to keep to itself.
  func throwNoted() throws(BatchError) {
    checkQueue()
    guard let error = notedReading ?? notedChange else { return }
    if notedReading != nil { notedReading = nil } else { notedChange = nil }
    throw error
  }

  /// What a call that reads from the store begins with.
  func beginReading() throws(BatchError) {
    try throwNoted()
    noticeSaved()
    try decideDeletions()
  }

  // MARK: Objects

  /// The object of this identifier, if it is in use.
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

  /// What the objects of an entity share, or those of none.
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
    // Where a rollback journal comes and goes with each save of others, a connection that is opened
    // read-only fails now and then: it takes a journal for one left behind, and cannot recover it.
    let connection = try Connection(path: store.path, options: store.options)
    try connection.execute("PRAGMA query_only = 1")
    connections[index] = connection
    return connection
  }

  /// Runs `body`, and has what it reads of a store read through a connection of the caller's.
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

  /// The connection that saves to a store, on which foreign keys are enforced.
  func writer(to index: Int) throws(BatchError) -> Connection {
    if let writer = writers[index] { return writer }
    let store = container.stores[index]
    let writer = try Connection(path: store.path, options: store.options)
    try writer.execute("PRAGMA foreign_keys = ON")
    writers[index] = writer
    return writer
  }

  /// Reads the row of a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if there is none, unless the context takes
  ///   such objects for deleted.
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

  /// Whether the row that an object had before it was made a fault may be used again.
  private func isFresh(_ readAt: ContinuousClock.Instant) -> Bool {
    stalenessInterval < 0 || readAt.duration(to: .now) < .seconds(stalenessInterval)
  }
}

@available(*, unavailable, message: "make a context for each task, and send identifiers")
extension ModelContext: Sendable {}

extension BatchError.Code {
  /// The object of an identifier is of another class than was asked for.
  public static let modelTypeMismatch = Self(rawValue: "modelTypeMismatch")
}
