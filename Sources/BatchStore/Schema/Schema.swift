public import BatchIdentifiers

/// The entities of a store, read from the database as it is.
///
/// Each table, view and virtual table becomes an entity of the same name. Tables of SQLite's own
/// (`sqlite_…`), of this library (`_batch_…`) and the shadow tables of virtual tables are left out. A
/// store that Core Data made has the entities of its model, and its tables are found by their names all
/// the same.
public struct Schema: Sendable {
  /// The entities, ordered by name.
  public let entities: [Entity]
  /// Tables that are not listed, but found by their names.
  package let tables: [Entity]

  /// A schema of these entities.
  package init(entities: [Entity], tables: [Entity] = []) {
    self.entities = entities
    self.tables = tables
  }

  /// The entities, and the tables that are not listed among them.
  package var all: [Entity] { entities + tables }

  /// The entity of this name.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` with the nearest name there is.
  public func entity(named name: String) throws(BatchError) -> Entity {
    if let entity = all.first(where: { SQLName.equal($0.name, name) }) { return entity }
    throw BatchError(
      .unknownEntity,
      "there is no entity \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: entities.map(\.name), kind: "entities")
    ).about(.entity(name))
  }
}

extension Entity {
  /// The attribute of this name.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` with the nearest name there is.
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
    if attributes.isEmpty {
      throw BatchError(
        .unstableKey,
        "\"\(name)\" cannot be read: something that it is made of is missing",
        remedy: "see what SELECT * FROM it says"
      )
    }
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
