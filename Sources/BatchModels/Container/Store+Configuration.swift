import BatchIdentifiers
import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Store {
  /// Opens the database of a configuration, makes its tables where it has none, and gives it a
  /// UUID of its own where it may be written.
  init(_ configuration: ModelConfiguration) async throws(BatchError) {
    var options = Connection.Options(
      isReadOnly: configuration.isReadOnly,
      busyTimeout: configuration.busyTimeout
    )
    let location: String
    if let path = configuration.path {
      if configuration.initialSchema != nil, !configuration.isReadOnly {
        try makeFile(atPath: path)
      }
      location = try resolvedPath(path)
      options = try await options.suited(toStoreAt: location)
    } else {
      // A name that begins with a slash is shared by the connections of this process.
      location = "file:/\(UUID().uuidString)?vfs=memdb"
      options.isURI = true
    }
    let opening = StoreConnection(label: "batch.open", path: location, options: options)
    self = try await opening.perform { [options] connection throws(BatchError) in
      try Store.prepare(connection, initialSchema: configuration.initialSchema)
      return try Store(opening: connection, options: options)
    }
    if configuration.isStoredInMemoryOnly { anchor = opening }
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
      // Another process may have been first.
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
