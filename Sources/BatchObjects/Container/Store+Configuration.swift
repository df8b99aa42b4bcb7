import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension Store {
  /// Opens the database of a configuration; blocks the thread.
  ///
  /// A database without tables gets the tables of the configuration, and a writable one gets a
  /// UUID.
  init(_ configuration: ModelConfiguration) throws(BatchError) {
    var options = Connection.Options(
      isReadOnly: configuration.isReadOnly,
      busyTimeout: configuration.busyTimeout,
      extensions: configuration.extensions
    )
    let location: String
    if let path = configuration.path {
      if configuration.initialSchema != nil, !configuration.isReadOnly {
        try makeFile(atPath: path)
      }
      location = try resolvedPath(path)
      options = options.suited(toStoreAt: location)
    } else {
      // The connections of this process share a database in memory whose name begins with a slash.
      location = "file:/\(UUID().uuidString)?vfs=memdb"
      options.isURI = true
    }
    let connection = try Connection(path: location, options: options)
    try Store.prepare(connection, initialSchema: configuration.initialSchema)
    self = try Store(opening: connection, options: options)
    if configuration.isStoredInMemoryOnly { anchor = StoreAnchor(connection) }
  }

  static func opened(_ configurations: [ModelConfiguration]) async throws(BatchError) -> [Store] {
    let thread = StoreConnection(label: "batch.open", path: "", options: Connection.Options())
    return try await thread.compute { () throws(BatchError) in
      var stores: [Store] = []
      for configuration in configurations { stores.append(try Store(configuration)) }
      return stores
    }
  }

  private static func prepare(
    _ connection: Connection,
    initialSchema: String?
  ) throws(BatchError) {
    guard !connection.isReadOnly else { return }
    let isNew = try isWithoutTables(connection)
    if initialSchema == nil || !isNew {
      guard try StoreIdentity.read(in: connection).isDerived else { return }
    }
    try connection.transaction(.immediate) { () throws(BatchError) in
      // Another process may have been faster.
      if let initialSchema, try isWithoutTables(connection) {
        try connection.runScript(initialSchema)
      }
      _ = try StoreIdentity.establish(.made(), in: connection)
    }
  }

  private static func isWithoutTables(_ connection: Connection) throws(BatchError) -> Bool {
    try connection.value(
      """
      SELECT 1 FROM sqlite_schema
      WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_batch\\_%' ESCAPE '\\'
      """
    ) == nil
  }
}
