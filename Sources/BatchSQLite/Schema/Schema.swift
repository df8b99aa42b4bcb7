public import BatchIdentifiers

/// The entities of a store, as read from the database.
///
/// Each table, view and virtual table becomes an entity of the same name. Excludes SQLite's own
/// tables (`sqlite_…`), this library's (`_batch_…`) and shadow tables of virtual tables. A Core
/// Data store has the entities of its model; its tables can still be found by name.
public struct Schema: Sendable {
  /// The entities, ordered by name.
  public let entities: [Entity]
  /// Tables that are not listed, but can be found by name.
  package let tables: [Entity]

  package init(entities: [Entity], tables: [Entity] = []) {
    self.entities = entities
    self.tables = tables
  }

  package var all: [Entity] { entities + tables }

  /// The entity with this name.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` with the nearest existing name, or `invalidSQL`
  ///   if it is a view or virtual table that SQLite cannot read.
  public func entity(named name: String) throws(BatchError) -> Entity {
    if let entity = all.first(where: { SQLName.equal($0.name, name) }) {
      guard let problem = entity.problem else { return entity }
      throw problem.about(.entity(name))
    }
    throw BatchError(
      .unknownEntity,
      "there is no entity \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: entities.map(\.name), kind: "entities")
    ).about(.entity(name))
  }
}

extension Entity {
  /// The attribute with this name.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` with the nearest existing name.
  public func requireAttribute(named name: String) throws(BatchError) -> Attribute {
    if let attribute = attribute(named: name) { return attribute }
    throw BatchError(
      .unknownAttribute,
      "entity \"\(self.name)\" has no attribute \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: attributes.map(\.name), kind: "attributes")
    ).about(.attribute(name))
  }

  /// The key.
  ///
  /// - Throws: `BatchError` of code `unstableKey` if there is none.
  public func requireKey() throws(BatchError) -> EntityKey {
    if let key { return key }
    throw BatchError(
      .unstableKey,
      """
      table "\(name)" has no primary key, and its rowids cannot be kept: VACUUM may change them
      """.replacing("\n", with: " "),
      advice: """
        declare a primary key or a unique index over NOT NULL columns, or name unique columns in \
        \(.key)
        """
    )
  }
}
