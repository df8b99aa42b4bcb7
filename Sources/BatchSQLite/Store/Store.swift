package import BatchRuns
public import BatchIdentifiers
public import SystemPackage

/// A SQLite database as a store of entities.
///
/// Opening a store reads its schema and identity, and leaves nothing open. Every call then uses its
/// own connection on its own thread, so any task may use a store.
///
///     let store = try await Store(path: "shop.db")
///     let orders = try await store.fetchIdentifiers(
///       FetchRequest(entity: "orders", where: "price_cents IS NULL"))
///     print(orders.count)
public struct Store: Sendable {
  /// The absolute path of the database.
  public let path: String
  /// The UUID in the identifiers of this store.
  public let identity: StoreIdentity
  /// The entities at the time the store was opened.
  public package(set) var schema: Schema
  /// Whether the database, or how it was opened, forbids writing; a Core Data store is read-only.
  public private(set) var isReadOnly: Bool
  /// The journal mode at the time the store was opened: `wal`, `delete`, ….
  public let journalMode: String

  package let coreData: CoreDataModel?

  package private(set) var options: Connection.Options
  /// Keeps an in-memory database alive; nil for a file.
  package var anchor: StoreAnchor?
  /// The connection for consecutive calls; nil if each call opens its own.
  private var reader: StoreConnection?

  /// Opens an existing database.
  ///
  /// - Parameters:
  ///   - path: The database; a relative path starts at the current folder.
  ///   - isReadOnly: Whether to open it read-only even if it could be written.
  ///   - busyTimeout: How long to wait for another connection's lock.
  ///   - extensions: Extensions of SQLite that the schema needs: paths, or names for the system's
  ///     loader.
  /// - Throws: `BatchError` with code `fileAccess` if there is no such file, `notADatabase` if it
  ///   is not a database, is encrypted or is damaged.
  /// - Complexity: O(*n*) in the number of tables and columns.
  public init(
    path: String,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5),
    extensions: [String] = []
  ) async throws(BatchError) {
    self = try await Self.open(path, isReadOnly, busyTimeout, extensions).store
  }

  /// Opens an existing database; see the other initializer.
  ///
  /// - Throws: The same errors as the other initializer.
  @_disfavoredOverload
  public init(
    path: FilePath,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5),
    extensions: [String] = []
  ) async throws(BatchError) {
    try await self.init(
      path: path.string,
      isReadOnly: isReadOnly,
      busyTimeout: busyTimeout,
      extensions: extensions
    )
  }

  /// Opens an existing database, and keeps it open until ``close()``.
  ///
  /// Otherwise, if no other process has it open, its log would be removed after each call and
  /// created again by the next.
  ///
  /// With `overwritesCoreData`, a Core Data store may be written like any other.
  package init(
    keepingOpen path: String,
    isReadOnly: Bool = false,
    busyTimeout: Duration,
    extensions: [String] = [],
    overwritesCoreData: Bool = false
  ) async throws(BatchError) {
    let (store, reader) = try await Self.open(
      path,
      isReadOnly,
      busyTimeout,
      extensions,
      overwritesCoreData
    )
    self = store
    self.reader = reader
  }

  private static func open(
    _ path: String,
    _ isReadOnly: Bool,
    _ busyTimeout: Duration,
    _ extensions: [String],
    _ overwritesCoreData: Bool = false
  ) async throws(BatchError) -> (store: Store, reader: StoreConnection) {
    let path = try resolvedPath(path)
    let asked = Connection.Options(
      isReadOnly: isReadOnly,
      busyTimeout: busyTimeout,
      extensions: extensions
    )
    let isForWriting = overwritesCoreData && !isReadOnly
    let opening = StoreConnection(label: "batch.open", path: path, options: asked)
    let options =
      isForWriting
      ? asked
      : try await opening.compute { () throws(BatchError) in asked.suited(toStoreAt: path) }
    let reader = StoreConnection(label: "batch.reader", path: path, options: options.forReading)
    let store = try await reader.perform { connection throws(BatchError) in
      try Store(opening: connection, options: options)
    }
    return (store, reader)
  }

  /// Closes the connection that is kept open; the store may still be used afterwards.
  package func close() async { await reader?.close() }

  /// The connection for a single call: the one kept open, or a new one.
  package func connection(label: String) -> StoreConnection {
    reader ?? makeConnection(label: label)
  }

  /// Reads the schema and identity in a transaction, and prepares the connection for the store.
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

  package var readOnly: Store {
    var store = self
    store.isReadOnly = true
    store.options.isReadOnly = true
    return store
  }

  /// A new connection for reading, with its own thread.
  package func makeConnection(
    label: String,
    priority: ThreadExecutor.Priority = .normal
  ) -> StoreConnection {
    var options = options.forReading
    options.isReadOnly = true
    return StoreConnection(label: label, path: path, options: options, priority: priority)
  }
}

extension Connection.Options {
  /// The same, with a small cache, since most pages are read once and several readers must not cost
  /// several large caches.
  fileprivate var forReading: Connection.Options {
    var options = self
    options.cacheSizeKiB = 1_024
    return options
  }
}

extension Store {
  package func count(of entity: Entity) async throws(BatchError) -> Int {
    try await connection(label: "batch.count").perform { connection throws(BatchError) in
      var sql = "SELECT count(*) FROM \(entity.rowSource)"
      // SQLite would count in an index, which may have an unknown collation.
      if entity.kind == .table, !connection.compiles(sql) { sql += " NOT INDEXED" }
      guard case .integer(let count) = try connection.value(sql) else { return 0 }
      return Int(count)
    }
  }
}
