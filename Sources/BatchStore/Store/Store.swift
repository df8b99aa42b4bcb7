package import BatchEngine
public import BatchIdentifiers
public import SystemPackage

/// A SQLite database, as it is, seen as a store of entities.
///
/// Opening reads the schema and the store's identity and leaves nothing open. Every call then uses
/// its own connection on its own thread, so any task may use a store.
///
///     let store = try await Store(path: "shop.db")
///     let orders = try await store.fetchIdentifiers(
///       FetchRequest(entity: "orders", where: "price_cents IS NULL"))
///     print(orders.count)
public struct Store: Sendable {
  /// The absolute path of the database.
  public let path: String
  /// The UUID that the identifiers of this store carry.
  public let identity: StoreIdentity
  /// The entities, as they were when the store was opened.
  public package(set) var schema: Schema
  /// Whether the database, or the way it was opened, forbids writing; a store that Core Data made is for
  /// reading only.
  public private(set) var isReadOnly: Bool
  /// The journal mode that the database was in when the store was opened: `wal`, `delete`, ….
  public let journalMode: String

  /// The model, of a store that Core Data made.
  package let coreData: CoreDataModel?

  package private(set) var options: Connection.Options
  /// What keeps a database in memory alive; nil for one in a file.
  package var anchor: StoreAnchor?
  /// The connection of calls that follow one another; nil if each opens one of its own.
  private var reader: StoreConnection?

  /// Opens an existing database.
  ///
  /// - Parameters:
  ///   - path: The database; a relative path is taken from the current folder.
  ///   - isReadOnly: Whether to open it read-only even if it could be written.
  ///   - busyTimeout: How long to wait for another connection's lock.
  /// - Throws: `BatchError` with code `fileAccess` if there is no such file, `notADatabase` if it
  ///   is something else, is encrypted or is damaged.
  /// - Complexity: O(*n*) in the number of tables and columns.
  public init(
    path: String,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5)
  ) async throws(BatchError) {
    self = try await Self.open(path, isReadOnly, busyTimeout).store
  }

  /// Opens an existing database; see the other initializer.
  ///
  /// - Throws: As the other one does.
  @_disfavoredOverload
  public init(
    path: FilePath,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5)
  ) async throws(BatchError) {
    try await self.init(path: path.string, isReadOnly: isReadOnly, busyTimeout: busyTimeout)
  }

  /// Opens an existing database, and keeps it open until ``close()``: the log of a database that
  /// nobody else has open would be removed after each call, and made again by the next.
  ///
  /// With `overwritesCoreData` a store that Core Data made may be written as any other.
  package init(
    keepingOpen path: String,
    isReadOnly: Bool = false,
    busyTimeout: Duration,
    overwritesCoreData: Bool = false
  ) async throws(BatchError) {
    let (store, reader) = try await Self.open(path, isReadOnly, busyTimeout, overwritesCoreData)
    self = store
    self.reader = reader
  }

  private static func open(
    _ path: String,
    _ isReadOnly: Bool,
    _ busyTimeout: Duration,
    _ overwritesCoreData: Bool = false
  ) async throws(BatchError) -> (store: Store, reader: StoreConnection) {
    let path = try resolvedPath(path)
    let asked = Connection.Options(isReadOnly: isReadOnly, busyTimeout: busyTimeout)
    let isForWriting = overwritesCoreData && !isReadOnly
    let opening = StoreConnection(label: "batch.open", path: path, options: asked)
    let options =
      isForWriting
      ? asked
      : try await opening.compute { () throws(BatchError) in asked.suited(toStoreAt: path) }
    let reader = StoreConnection(label: "batch.reader", path: path, options: options)
    let store = try await reader.perform { connection throws(BatchError) in
      try Store(opening: connection, options: options)
    }
    return (store, reader)
  }

  /// Closes what is kept open; the store may be used after it.
  package func close() async { await reader?.close() }

  /// The connection of a single call: the one that is kept open, or a new one.
  package func connection(label: String) -> StoreConnection {
    reader ?? makeConnection(label: label)
  }

  /// Reads what the store is, in a transaction, and makes the connection one of the store's.
  package init(opening connection: Connection, options: Connection.Options) throws(BatchError) {
    self = try connection.transaction(.deferred) { () throws(BatchError) in
      try Store(reading: connection, options: options)
    }
    try connection.makeViews(self.options.views)
  }

  private init(reading connection: Connection, options: Connection.Options) throws(BatchError) {
    path = connection.path
    self.options = options
    isReadOnly = connection.isReadOnly
    journalMode = try connection.journalMode()
    identity = try StoreIdentity.read(in: connection)
    let schema = try Schema(reading: connection)
    coreData = try CoreDataModel(reading: connection, tables: schema.entities)
    self.schema = coreData?.schema(beside: schema.entities) ?? schema
    self.options.views = coreData?.views ?? []
  }

  /// The same store, for reading only.
  package var readOnly: Store {
    var store = self
    store.isReadOnly = true
    store.options.isReadOnly = true
    return store
  }

  /// A new connection to the store for reading, with a thread of its own.
  package func makeConnection(
    label: String,
    priority: ThreadExecutor.Priority = .normal
  ) -> StoreConnection {
    var options = options
    options.isReadOnly = true
    // Workers pass each page once; several of them shall not cost several large caches.
    options.cacheSizeKiB = 1_024
    return StoreConnection(label: label, path: path, options: options, priority: priority)
  }
}

extension Store {
  /// How many rows an entity has now.
  package func count(of entity: Entity) async throws(BatchError) -> Int {
    try await connection(label: "batch.count").perform { connection throws(BatchError) in
      let sql = "SELECT count(*) FROM \(entity.rowSource)"
      guard case .integer(let count) = try connection.value(sql) else { return 0 }
      return Int(count)
    }
  }
}
