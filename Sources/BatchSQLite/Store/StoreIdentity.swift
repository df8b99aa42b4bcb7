import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// The identity of a store: the UUID in the identifiers of its rows.
///
/// The UUID is in the table `_batch_store`, which the first writing run creates. Copies of the file
/// share it, like copies of a Core Data store. A database that this library never wrote has a UUID
/// derived from its path. A Core Data store has the UUID in its table `Z_METADATA`.
public struct StoreIdentity: Sendable, Hashable {
  /// The UUID, in upper case.
  public let uuid: String
  /// Whether the UUID derives from the path because the database has none.
  public let isDerived: Bool

  /// Whether identifiers made with the UUID `other` belong to this store at this path.
  package func admits(_ other: String, atPath path: String) -> Bool {
    other == uuid || other == Self.derived(fromPath: path).uuid
  }

  package static func read(in connection: Connection) throws(BatchError) -> StoreIdentity {
    if let identity = try readCoreData(in: connection) { return identity }
    let hasTable = try connection.value(
      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_store'"
    )
    if hasTable != nil,
      case .text(let text) = try connection.value("SELECT uuid FROM _batch_store LIMIT 1")
    {
      guard let uuid = UUID(uuidString: text) else {
        throw BatchError(
          .notADatabase,
          "the store's UUID in table _batch_store is \"\(text)\"",
          at: connection.path,
          remedy: "restore it, or drop the table to get a new one"
        )
      }
      return StoreIdentity(uuid: uuid.uuidString, isDerived: false)
    }
    return derived(fromPath: connection.path)
  }

  /// The UUID of a Core Data store, which this library never changes.
  private static func readCoreData(
    in connection: Connection
  ) throws(BatchError) -> StoreIdentity? {
    let hasColumn = try connection.value(
      "SELECT 1 FROM pragma_table_info('Z_METADATA') WHERE name = 'Z_UUID'"
    )
    guard hasColumn != nil,
      case .text(let text) = try connection.value("SELECT Z_UUID FROM Z_METADATA LIMIT 1"),
      let uuid = UUID(uuidString: text)
    else { return nil }
    return StoreIdentity(uuid: uuid.uuidString, isDerived: false)
  }

  package static func made() -> StoreIdentity {
    StoreIdentity(uuid: UUID().uuidString, isDerived: false)
  }

  /// Reads the store's UUID, or sets it to that of `proposal`, inside the caller's transaction.
  package static func establish(
    _ proposal: StoreIdentity,
    in connection: Connection
  ) throws(BatchError) -> StoreIdentity {
    let identity = try read(in: connection)
    guard identity.isDerived else { return identity }
    try connection.execute("CREATE TABLE IF NOT EXISTS _batch_store (uuid TEXT NOT NULL)")
    try connection.execute("INSERT INTO _batch_store (uuid) VALUES (?)", .text(proposal.uuid))
    return proposal
  }

  static func derived(fromPath path: String) -> StoreIdentity {
    StoreIdentity(uuid: XXHash64.uuid(of: path), isDerived: true)
  }
}

extension StoreIdentity {
  /// The identity of a database on a server.
  package init(ofServer uuid: String) {
    self.init(uuid: uuid, isDerived: false)
  }
}
