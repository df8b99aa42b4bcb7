package import BatchIdentifiers
import BatchJobs
import BatchRuns
import BatchSQLite

/// What a list of identifiers is of.
package struct ListedEntity: Sendable {
  package let name: String
  /// The identity of its database.
  package let store: String
  /// The kind of its keys; nil to find out from the keys.
  package let keyKind: IdentifierList.KeyKind?

  init(name: String, store: String, keyKind: IdentifierList.KeyKind?) {
    (self.name, self.store, self.keyKind) = (name, store, keyKind)
  }

  /// Looks an entity up in a database, which is a file or the URL of a server.
  package init(named name: String, in database: String) async throws(BatchError) {
    if Job.DatabaseOptions.Server.isURL(database) {
      self = try await ListedEntity(named: name, onServerAt: database)
      return
    }
    let store = try await Store(path: database, isReadOnly: true)
    let entity = try store.schema.entity(named: name)
    self.init(
      name: entity.name,
      store: store.identity.uuid,
      keyKind: try entity.requireKey().origin == .rowID ? .integer : nil
    )
  }
}
