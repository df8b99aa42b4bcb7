import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchStore

struct SchemaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Lists tables, columns, keys, indexes and triggers."
  )

  @Argument(help: "The database.", completion: .file())
  var database: String

  @Flag(help: "Print the schema as JSON.")
  var json = false

  func run() async throws {
    try Job.DatabaseOptions.Server.requireFile(
      database,
      for: "batch schema",
      remedy: "use \\d in psql"
    )
    let store = try await Store(path: database, isReadOnly: true)
    var entities: [EntityDescription] = []
    for entity in store.schema.entities {
      // A view over a missing table, or a virtual table without its module, has no count.
      let count = try? await store.count(of: entity)
      entities.append(
        EntityDescription(
          entity,
          count: count,
          parts: try await store.parts(of: entity),
          modeled: store.coreData?.entity(named: entity.name)
        )
      )
    }
    if json {
      let description = SchemaDescription(
        store: store.identity.uuid,
        storeIsDerived: store.identity.isDerived,
        entities: entities
      )
      return try Terminal.printJSON(description, pretty: true)
    }
    let derived = store.identity.isDerived ? ", derived from the path" : ""
    try Terminal.print("store \(store.identity.uuid)\(derived)")
    if let coreData = store.coreData {
      try Terminal.print(
        "made by Core Data, read only"
          + (coreData.isCached ? "" : "; has no model: attributes have the names of columns")
      )
    }
    for entity in entities { try printText(entity) }
  }

  private func printText(_ entity: EntityDescription) throws(BatchError) {
    let count = entity.count.map { Format.count($0, "row") } ?? "not readable"
    var kind = entity.kind == "table" ? "" : " (\(entity.kind))"
    if entity.relationships != nil {
      kind =
        entity.superentity.map { " (extends \($0), table \(entity.table))" }
        ?? " (table \(entity.table))"
    }
    try Terminal.print("\n\(entity.name)\(kind): \(count)")
    let keys = entity.keys.map(\.name).joined(separator: ", ")
    try Terminal.print("  key  \(keys.isEmpty ? "none: rows cannot be identified" : keys)")
    let width = entity.attributes.map(\.name.count).max() ?? 0
    for attribute in entity.attributes {
      let padding = String(repeating: " ", count: width - attribute.name.count)
      // A column may have no type.
      let words = [attribute.type, attribute.optional ? "" : "not null"].filter { !$0.isEmpty }
      let declared = words.isEmpty ? "" : "\(padding)  \(words.joined(separator: " "))"
      try Terminal.print("  \(attribute.name)\(declared)")
    }
    for relationship in entity.relationships ?? [] {
      let many = relationship.toMany ? "many " : ""
      try printPart(
        "relates",
        "\(relationship.name) to \(many)\(relationship.destination)"
          + (relationship.deleteRule == "noAction" ? "" : ", on delete \(relationship.deleteRule)")
      )
    }
    for index in entity.indexes where index.origin != "primaryKey" {
      let name = index.origin == "created" ? "\(index.name) " : ""
      let columns = index.columns.map {
        ($0.name ?? "an expression") + ($0.descending ? " desc" : "")
      }
      let partial = index.partial ? ", of some rows" : ""
      try printPart(
        index.unique ? "unique" : "index",
        "\(name)(\(columns.joined(separator: ", ")))\(partial)"
      )
    }
    for key in entity.foreignKeys {
      let targets = key.targets.isEmpty ? "" : " (\(key.targets.joined(separator: ", ")))"
      var text = "\(key.columns.joined(separator: ", ")) to \(key.table)\(targets)"
      let actions = [("delete", key.onDelete), ("update", key.onUpdate)]
      for (event, action) in actions where action != "NO ACTION" {
        text += ", on \(event) \(action.lowercased())"
      }
      try printPart("refers", text)
    }
    for trigger in entity.triggers {
      let event = trigger.event.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      try printPart("trigger", "\(trigger.name)\(event.isEmpty ? "" : ", \(event)")")
    }
  }

  /// Prints a part of a table on one line, or on several, indented, if it is longer than 80 columns.
  private func printPart(_ kind: String, _ text: String) throws(BatchError) {
    var line = "  " + kind.padding(to: 7)
    for word in text.split(separator: " ") {
      if line.count + 1 + word.count > 80, !line.allSatisfy(\.isWhitespace) {
        try Terminal.print(line)
        line = String(repeating: " ", count: 9)
      }
      line += " \(word)"
    }
    try Terminal.print(line)
  }
}

/// The object that `schema --json` prints.
private struct SchemaDescription: Encodable {
  let store: String
  let storeIsDerived: Bool
  let entities: [EntityDescription]
}

private struct EntityDescription: Encodable {
  struct Key: Encodable {
    let name: String
    let type: String
  }

  struct Attribute: Encodable {
    let name: String
    let column: String
    let type: String
    let optional: Bool
    let generated: Bool
  }

  let name: String
  let table: String
  let kind: String
  let keys: [Key]
  struct Index: Encodable {
    struct Column: Encodable {
      let name: String?
      let descending: Bool
    }

    let name: String
    let unique: Bool
    let partial: Bool
    let origin: String
    let columns: [Column]
    let sql: String?
  }

  struct ForeignKey: Encodable {
    let columns: [String]
    let table: String
    let targets: [String]
    let onDelete: String
    let onUpdate: String
  }

  struct Trigger: Encodable {
    let name: String
    let event: String
    let sql: String
  }

  struct Relationship: Encodable {
    let name: String
    let destination: String
    let toMany: Bool
    let deleteRule: String
  }

  let attributes: [Attribute]
  /// Those of an entity of Core Data's model; nil for others.
  let relationships: [Relationship]?
  let superentity: String?
  let count: Int?
  let indexes: [Index]
  let foreignKeys: [ForeignKey]
  let triggers: [Trigger]

  init(_ entity: Entity, count: Int?, parts: TableParts, modeled: CoreDataEntity?) {
    name = entity.name
    table = modeled?.table ?? entity.table
    superentity = modeled?.superentity
    relationships = modeled?.relationships.map {
      Relationship(
        name: $0.name,
        destination: $0.destination,
        toMany: $0.isToMany,
        deleteRule: "\($0.deleteRule)"
      )
    }
    kind = entity.kind.rawValue
    self.count = count
    keys = (entity.key?.columns ?? []).map { column in
      Key(name: column, type: entity.attribute(named: column)?.type ?? "INTEGER")
    }
    attributes = entity.attributes.map {
      Attribute(
        name: $0.name,
        column: modeled?.column(ofAttribute: $0.name)?.column ?? $0.column,
        type: $0.type,
        optional: $0.isOptional,
        generated: $0.isGenerated
      )
    }
    indexes = parts.indexes.map { index in
      Index(
        name: index.name,
        unique: index.isUnique,
        partial: index.isPartial,
        origin: index.origin.rawValue,
        columns: index.columns.map { .init(name: $0.name, descending: $0.isDescending) },
        sql: index.sql
      )
    }
    foreignKeys = parts.foreignKeys.map {
      ForeignKey(
        columns: $0.columns,
        table: $0.table,
        targets: $0.targets,
        onDelete: $0.onDelete,
        onUpdate: $0.onUpdate
      )
    }
    triggers = parts.triggers.map { Trigger(name: $0.name, event: $0.event, sql: $0.sql) }
  }
}

extension String {
  /// The text, with spaces after it up to a width.
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
