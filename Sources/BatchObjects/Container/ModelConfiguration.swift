import BatchIdentifiers
public import BatchPlatform
public import SystemPackage

/// The location of a container's database and how to open it.
///
///     let configuration = ModelConfiguration(
///       path: "shop.db",
///       initialSchema: "CREATE TABLE orders (id INTEGER PRIMARY KEY, price_cents INTEGER)")
public struct ModelConfiguration: Sendable, Hashable {
  /// The path of the database; nil for one in memory.
  public let path: String?
  /// Whether the database is opened read-only even if it is writable.
  public var isReadOnly: Bool
  /// How long to wait for another connection's lock.
  public var busyTimeout: Duration
  /// Extensions of SQLite that the schema needs: paths, or names for the system's loader.
  public var extensions: [String] = []
  /// Whether saves and batch requests of contexts are recorded, for `ModelContext.fetchHistory`.
  public var tracksHistory = false
  /// An SQL script that creates the tables of a database without tables, in one transaction.
  ///
  /// With a script, a missing file is created. Without one, a container for classes creates the
  /// file and their tables; a container without classes reports that there is no file.
  public var initialSchema: String?

  /// A database at a path; a relative path starts at the current folder.
  public init(
    path: String,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5),
    initialSchema: String? = nil
  ) {
    self.path = path
    self.isReadOnly = isReadOnly
    self.busyTimeout = busyTimeout
    self.initialSchema = initialSchema
  }

  /// A database at a path; a relative path starts at the current folder.
  @_disfavoredOverload
  public init(
    path: FilePath,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5),
    initialSchema: String? = nil
  ) {
    self.init(
      path: path.string,
      isReadOnly: isReadOnly,
      busyTimeout: busyTimeout,
      initialSchema: initialSchema
    )
  }

  /// A database at a file URL.
  public init(
    url: URL,
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5),
    initialSchema: String? = nil
  ) {
    self.init(
      path: url.path,
      isReadOnly: isReadOnly,
      busyTimeout: busyTimeout,
      initialSchema: initialSchema
    )
  }

  /// A database in memory, or without a path.
  ///
  /// Each container creates its own database, which all its contexts share and which lives as long
  /// as the container.
  public init(inMemoryWith initialSchema: String, busyTimeout: Duration = .seconds(5)) {
    path = nil
    isReadOnly = false
    self.busyTimeout = busyTimeout
    self.initialSchema = initialSchema
  }

  /// A database in memory with the tables of the container's classes.
  public static var inMemory: ModelConfiguration {
    var configuration = ModelConfiguration(inMemoryWith: "")
    configuration.initialSchema = nil
    return configuration
  }

  /// Whether the database is kept in memory and never written to a disk.
  public var isStoredInMemoryOnly: Bool { path == nil }

  /// The file of the database; nil for one in memory.
  public var url: URL? { path.map { URL(fileURLWithPath: $0) } }
}

extension ModelConfiguration {
  /// The same with a script that creates the tables of some classes, if it has none.
  ///
  /// - Throws: `BatchError` with code `invalidMapping` for relationships that cannot be stored.
  func making(tablesFor types: [any PersistentModel.Type]) throws(BatchError) -> Self {
    guard initialSchema == nil, !isReadOnly, !types.isEmpty else { return self }
    var configuration = self
    let mappings = try RelationshipInference.resolve(types.map { $0.mapping })
    configuration.initialSchema = TableDefinition.script(for: mappings)
    return configuration
  }
}
