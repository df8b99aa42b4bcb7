import BatchIdentifiers
public import BatchPlatform
public import SystemPackage

/// The location of a container's database and how to open it.
///
///     let configuration = ModelConfiguration(
///       path: "shop.db",
///       initialSchema: "CREATE TABLE orders (id INTEGER PRIMARY KEY, price_cents INTEGER)")
public struct ModelConfiguration: Sendable, Hashable {
  /// The path of the database; nil for a database in memory.
  public let path: String?
  /// Whether to open the database read-only even if it is writable.
  public var isReadOnly: Bool
  /// How long to wait for locks of other connections.
  public var busyTimeout: Duration
  /// The SQLite extensions that the schema needs: paths, or names for the system's loader.
  public var extensions: [String] = []
  /// Whether to record the saves and batch requests of contexts for `ModelContext.fetchHistory`.
  public var tracksHistory = false
  /// An SQL script that creates the tables of a database without tables, in one transaction.
  ///
  /// With a script, a missing file is created. Without a script, a container with classes creates
  /// the file and their tables, and a container without classes reports that the file is missing.
  public var initialSchema: String?

  /// Configures a database at a path; a relative path starts at the current folder.
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

  /// Configures a database at a path; a relative path starts at the current folder.
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

  /// Configures a database at a file URL.
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

  /// Configures a database in memory, which has no path.
  ///
  /// Each container creates its own database, which all its contexts share, and which lives as long
  /// as the container.
  public init(inMemoryWith initialSchema: String, busyTimeout: Duration = .seconds(5)) {
    path = nil
    isReadOnly = false
    self.busyTimeout = busyTimeout
    self.initialSchema = initialSchema
  }

  /// Configures a database in memory with the tables of the container's classes.
  public static var inMemory: ModelConfiguration {
    var configuration = ModelConfiguration(inMemoryWith: "")
    configuration.initialSchema = nil
    return configuration
  }

  /// Whether the database is in memory and never written to disk.
  public var isStoredInMemoryOnly: Bool { path == nil }

  /// The file of the database; nil for a database in memory.
  public var url: URL? { path.map { URL(fileURLWithPath: $0) } }
}

extension ModelConfiguration {
  /// A copy with a script that creates the tables of some classes, unless there is a script.
  func making(tablesFor types: [any PersistentModel.Type]) throws(BatchError) -> Self {
    guard initialSchema == nil, !isReadOnly, !types.isEmpty else { return self }
    var configuration = self
    let mappings = try RelationshipInference.resolve(types.map { $0.mapping })
    configuration.initialSchema = TableDefinition.script(for: mappings)
    return configuration
  }
}
