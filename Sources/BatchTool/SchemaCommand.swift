import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct SchemaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Lists tables, columns, keys, indexes and triggers."
  )

  @Argument(
    help: """
      The database: a file, or a URL such as postgres://user@host/shop, or postgres://?service=shop \
      for a service of pg_service.conf.
      """,
    completion: .file()
  )
  var database: String

  @Flag(help: "Print the schema as JSON.")
  var json = false

  func run() async throws {
    let schema =
      Job.DatabaseOptions.Server.isURL(database)
      ? try await DatabaseSchema(ofServerAt: database)
      : try await DatabaseSchema(ofFileAt: database)
    if json { return try Terminal.printJSON(schema, pretty: true) }
    for line in schema.heading { try Self.print(line) }
    for entity in schema.entities { try Self.print(entity) }
  }

  private static func print(_ entity: DatabaseSchema.DescribedEntity) throws(BatchError) {
    var kind = entity.kind == "table" ? "" : " (\(entity.kind))"
    if entity.relationships != nil {
      kind =
        entity.superentity.map { " (extends \($0), table \(entity.table))" }
        ?? " (table \(entity.table))"
    }
    try Terminal.print("")
    try print("\(entity.name)\(kind)\(rows(entity))", indent: 2, first: "")
    if let problem = entity.problem { try printPart("problem", problem) }
    let keys = entity.keys.map(\.name).joined(separator: ", ")
    try print(keys.isEmpty ? "none: rows cannot be identified" : keys, indent: 7, first: "  key  ")
    // A single long name does not move the types of all others far to the right.
    let width = min(entity.attributes.map(\.name.count).max() ?? 0, 40)
    for attribute in entity.attributes {
      // A column may have no declared type.
      let words = [attribute.type, attribute.optional ? "" : "not null"].filter { !$0.isEmpty }
      let name = attribute.name.onOneLine
      let padded = words.isEmpty ? name : TextLayout.padded(name, to: width) + "  "
      try print(words.joined(separator: " "), indent: width + 4, first: "  \(padded)")
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
      // SQLite chose the names of these indexes, so they mean nothing to users.
      let name = index.sql == nil ? "" : "\(index.name) "
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
      try printPart(
        "trigger",
        "\(trigger.name)\(event.isEmpty ? "" : ", \(event)")\(trigger.enabled ? "" : ", disabled")"
      )
    }
  }

  /// Text about the rows, to follow the name.
  private static func rows(_ entity: DatabaseSchema.DescribedEntity) -> String {
    if !entity.readable { return ": not readable" }
    if let count = entity.count { return ": \(Format.count(count, "row"))" }
    if let count = entity.estimatedCount { return ": about \(Format.count(count, "row"))" }
    // The server makes no estimates for views.
    return entity.kind == "view" ? "" : ": not counted before ANALYZE"
  }

  private static func printPart(_ kind: String, _ text: String) throws(BatchError) {
    try print(text, indent: 10, first: "  \(TextLayout.padded(kind, to: 7)) ")
  }

  /// Prints a text on one line, or on several if it is longer than 80 columns.
  private static func print(
    _ text: String,
    indent: Int = 2,
    first: String = ""
  ) throws(BatchError) {
    let lines = TextLayout.wrapped(
      text.onOneLine,
      width: TextLayout.standardWidth,
      indent: indent,
      first: first
    )
    try Terminal.print(lines.joined(separator: "\n"))
  }
}
