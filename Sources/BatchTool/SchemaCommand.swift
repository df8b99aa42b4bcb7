import ArgumentParser
import BatchIdentifiers
import BatchStore

struct SchemaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Lists the entities of a database: keys, attributes, counts."
  )

  @Argument(help: "The database.", completion: .file())
  var database: String

  @Flag(help: "Print the schema as JSON.")
  var json = false

  func run() async throws {
    let store = try await Store(path: database, isReadOnly: true)
    var entities: [EntityDescription] = []
    for entity in store.schema.entities {
      // A view over a table that is gone, or a virtual table without its module, has no count.
      let count = try? await store.count(of: entity)
      entities.append(EntityDescription(entity, count: count))
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
    for entity in entities { try printText(entity) }
  }

  private func printText(_ entity: EntityDescription) throws(BatchError) {
    let count = entity.count.map { Format.count($0, "row") } ?? "not readable"
    let kind = entity.kind == "table" ? "" : " (\(entity.kind))"
    try Terminal.print("\n\(entity.name)\(kind): \(count)")
    let keys = entity.keys.map(\.name).joined(separator: ", ")
    try Terminal.print("  key  \(keys.isEmpty ? "none: rows cannot be identified" : keys)")
    let width = entity.attributes.map(\.name.count).max() ?? 0
    for attribute in entity.attributes {
      let padding = String(repeating: " ", count: width - attribute.name.count)
      try Terminal.print(
        "  \(attribute.name)\(padding)  \(attribute.type)\(attribute.optional ? "" : " not null")"
      )
    }
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
  let attributes: [Attribute]
  let count: Int?

  init(_ entity: Entity, count: Int?) {
    name = entity.name
    table = entity.table
    kind = entity.kind.rawValue
    self.count = count
    keys = (entity.key?.columns ?? []).map { column in
      Key(name: column, type: entity.attribute(named: column)?.type ?? "INTEGER")
    }
    attributes = entity.attributes.map {
      Attribute(
        name: $0.name,
        column: $0.column,
        type: $0.type,
        optional: $0.isOptional,
        generated: $0.isGenerated
      )
    }
  }
}
