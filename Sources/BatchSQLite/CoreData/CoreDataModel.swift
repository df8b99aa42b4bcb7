import BatchRuns
import BatchIdentifiers

/// The model of a store made by Core Data: its entities by name, and where their rows are.
///
/// Names and inheritance of entities are in `Z_PRIMARYKEY`, names of attributes and relationships
/// in the cached model. Without the latter, an attribute has its column's name in lower case:
/// `firstname` for `ZFIRSTNAME`.
///
/// Rows are read through temporary views with the entities' names, which belong to a connection, so
/// the store does not change. The views have the names of the model, dates as ISO 8601, UUIDs as
/// text, and no rows of other entities.
package struct CoreDataModel: Sendable {
  package let entities: [CoreDataEntity]
  /// Whether the store has its model, which names attributes and relationships.
  package let isCached: Bool

  private static let ownTables = [
    "Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE", "ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING",
  ]
  /// The first number of Core Data's own entities.
  private static let firstOwnNumber = 16_000

  /// Reads the model of a store that has the tables typical of Core Data; nil for any other
  /// database.
  init?(
    reading connection: Connection,
    tables: [Entity]
  ) throws(BatchError) {
    guard try connection.isCoreDataStore else { return nil }
    guard try connection.namesCoreDataEntities else {
      entities = []
      isCached = false
      return
    }
    var listed: [CoreDataHierarchy.Listed] = []
    let rows = try connection.prepare(
      "SELECT Z_ENT, Z_NAME, Z_SUPER FROM main.Z_PRIMARYKEY WHERE Z_ENT < ? ORDER BY Z_ENT"
    )
    try rows.bind(.integer(Int64(Self.firstOwnNumber)), at: 1)
    while try rows.step() {
      listed.append(
        .init(number: rows.integer(at: 0), name: rows.text(at: 1), superNumber: rows.integer(at: 2))
      )
    }
    let cached = try CachedModel.read(in: connection)
    isCached = cached != nil
    var entities: [CoreDataEntity] = []
    for hierarchy in CoreDataHierarchy.all(of: listed) {
      guard let table = tables.first(where: { SQLName.equal($0.table, hierarchy.table) }),
        table.kind == .table, table.key?.columns == ["Z_PK"]
      else { continue }
      entities += hierarchy.entities(in: table, cached)
    }
    // A view must not hide a table of the same name.
    entities.removeAll { entity in tables.contains { SQLName.equal($0.table, entity.name) } }
    self.entities = CoreDataRelationships(of: entities, cached, tables).resolved
      .sorted { $0.number < $1.number }
  }

  package func entity(named name: String) -> CoreDataEntity? {
    entities.first { SQLName.equal($0.name, name) }
  }

  func schema(beside tables: [Entity]) -> Schema {
    let joins = entities.flatMap(\.relationships).compactMap(\.joinTable)
    let claimed = Set(entities.map(\.table) + joins + Self.ownTables)
    let isClaimed = Dictionary(grouping: tables.map(\.versioned)) { claimed.contains($0.table) }
    return Schema(
      entities: (entities.map(\.entity) + isClaimed[false, default: []]).sorted {
        $0.name < $1.name
      },
      tables: isClaimed[true, default: []]
    )
  }

  var views: [String] { entities.map(\.view) }
}

extension Connection {
  package var isCoreDataStore: Bool {
    get throws(BatchError) { try hasKeyTable(with: ["Z_ENT", "Z_MAX"]) }
  }

  var namesCoreDataEntities: Bool {
    get throws(BatchError) { try hasKeyTable(with: ["Z_ENT", "Z_MAX", "Z_NAME", "Z_SUPER"]) }
  }

  private func hasKeyTable(with columns: [String]) throws(BatchError) -> Bool {
    let found = try texts("SELECT name FROM pragma_table_info('Z_PRIMARYKEY', 'main')")
    return columns.allSatisfy(found.contains)
  }
}

extension Entity {
  /// The table, with the column that Core Data increments with every change of a row, if there is
  /// one.
  fileprivate var versioned: Entity {
    guard kind == .table, key?.columns == ["Z_PK"], attribute(named: "Z_OPT") != nil else {
      return self
    }
    var entity = self
    entity.versionColumn = "Z_OPT"
    return entity
  }
}

package struct CoreDataEntity: Sendable {
  package let name: String
  /// Its number, as in the column `Z_ENT` of its rows.
  package let number: Int64
  package let superentity: String?
  /// The table, shared by all entities of a hierarchy.
  package let table: String
  package let columns: [CoreDataColumn]
  package let family: [Int64: String]
  package let members: [Int64]
  package internal(set) var relationships: [CoreDataRelationship] = []

  var entity: Entity {
    Entity(
      name: name,
      table: name,
      kind: .model,
      key: EntityKey(columns: ["Z_PK"], origin: .rowID, prefersIntegers: true),
      attributes: columns.filter(\.isAttribute).map(\.attribute),
      foreignKeys: relationships.compactMap { relationship in
        relationship.column.map { column in
          ForeignKey(
            column: column,
            table: relationship.destination,
            target: "Z_PK",
            onDelete: "NO ACTION"
          )
        }
      },
      family: EntityFamily(
        columns: columns.map(\.name),
        discriminator: columns.first { $0.column == "Z_ENT" }?.name,
        names: family,
        members: members
      )
    )
  }

  var view: String {
    let values = columns.map {
      "\($0.type.read(SQLName.quoted($0.column))) AS \(SQLName.quoted($0.name))"
    }
    // The sign keeps SQLite from using the column's index, which would not return rows in key
    // order. Chunks find rows by ranges of keys.
    let isAll = members.count == family.count
    let numbers = members.map { "\($0)" }.joined(separator: ", ")
    return """
      CREATE TEMP VIEW IF NOT EXISTS \(SQLName.quoted(name)) AS \
      SELECT \(values.joined(separator: ", ")) FROM main.\(SQLName.quoted(table))\
      \(isAll ? "" : " WHERE +Z_ENT IN (\(numbers))")
      """
  }

  /// The column beside a relationship's that has the number of the other object's entity: `Z1_BOOK`
  /// beside `ZBOOK`.
  package func entityColumn(of relationship: CoreDataColumn) -> String? {
    let suffix = "_\(relationship.column.dropFirst())"
    return columns.map(\.column).first { column in
      column.hasPrefix("Z") && column.hasSuffix(suffix)
        && !column.dropFirst().dropLast(suffix.count).isEmpty
        && column.dropFirst().dropLast(suffix.count).allSatisfy(\.isWholeNumber)
    }
  }

  package func column(ofAttribute name: String) -> CoreDataColumn? {
    columns.first { SQLName.equal($0.name, name) }
  }
}

/// A column of a Core Data table, as an entity sees it.
package struct CoreDataColumn: Sendable {
  package let column: String
  /// The model's name of the attribute or relationship, or the column's name if the entity does not
  /// own the column.
  package let name: String
  package let type: CoreDataType
  /// Whether it is an attribute, a to-one relationship, or the key of the entity.
  let isAttribute: Bool
  let isOptional: Bool
  let isDerived: Bool

  var attribute: Attribute {
    Attribute(
      name: name,
      column: name,
      type: type.declaration,
      isOptional: isOptional,
      isGenerated: isDerived,
      hasDefault: true
    )
  }
}

package struct CoreDataRelationship: Sendable {
  package enum Storage: Sendable {
    /// In a column of the entity's own rows.
    case column(String)
    /// In a column of the other entity's rows.
    case inverse(String)
    /// In a table of pairs, with the columns of both entities' keys.
    case table(String, source: String, target: String)
  }

  package let name: String
  package let destination: String
  package let isToMany: Bool
  package let deleteRule: CoreDataDeleteRule
  package let storage: Storage

  package var column: String? {
    if case .column(let column) = storage { column } else { nil }
  }

  var joinTable: String? {
    if case .table(let table, _, _) = storage { table } else { nil }
  }
}
