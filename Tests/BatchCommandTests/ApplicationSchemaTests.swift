import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Jobs on the databases of well-known applications, compared with the same in SQL.
@Suite(.timeLimit(.minutes(10))) struct ApplicationSchemaTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @discardableResult
  private func run(
    _ arguments: String...,
    at location: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(
      result.status == 0,
      "\(arguments): \(result.output) \(result.errors)",
      sourceLocation: location
    )
    return result
  }

  private func connect(
    _ name: String,
    to schema: ApplicationSchema
  ) throws -> Connection {
    if !FileManager.default.fileExists(atPath: directory.file(name)) {
      try TestDatabase.make(name, in: directory)
    }
    var options = Connection.Options()
    options.extensions = schema.needsExtension ? [directory.file("own.so")] : []
    return try Connection(path: directory.file(name), options: options)
  }

  private func copy(_ name: String, to copy: String) throws {
    try? FileManager.default.removeItem(atPath: directory.file(copy))
    var options = Connection.Options()
    let hasExtension = FileManager.default.fileExists(atPath: directory.file("own.so"))
    options.extensions = hasExtension ? [directory.file("own.so")] : []
    try Connection(path: directory.file(name), options: options)
      .execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try FileManager.default.copyItem(atPath: directory.file(name), toPath: directory.file(copy))
  }

  /// All rows of all tables but the archive, each as text with its table.
  private func rows(
    _ name: String,
    of schema: ApplicationSchema
  ) throws -> [String] {
    let connection = try connect(name, to: schema)
    var rows: [String] = []
    let tables = try connection.texts(
      """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
        AND name NOT LIKE '\\_batch\\_%' ESCAPE '\\' AND name NOT IN ('sqlite_schema', 'archive')
        AND name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY name
      """
    )
    for table in tables {
      let columns = try connection.texts("SELECT name FROM pragma_table_info(?)", .text(table))
      let values = columns.map { "quote(\(SQLName.quoted($0)))" }.joined(separator: " || ', ' || ")
      let found = try connection.texts("SELECT \(values) FROM \(SQLName.quoted(table))")
      rows += found.map { "\(table): \($0)" }.sorted()
    }
    // The archive's counter is the archive's.
    return rows.filter { !$0.hasPrefix("sqlite_sequence: 'archive'") }
  }

  private func expectSame(
    _ name: String,
    _ other: String,
    of schema: ApplicationSchema,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let difference = try rows(name, of: schema).difference(from: rows(other, of: schema))
    #expect(difference.isEmpty, "\(Array(difference.prefix(4)))", sourceLocation: location)
    #expect(
      try connect(name, to: schema).texts("PRAGMA integrity_check") == ["ok"],
      sourceLocation: location
    )
  }

  @Test(arguments: ApplicationSchema.all)
  func `jobs on an application's schema equal plain SQL and are rehearsed, verified and undone`(
    schema: ApplicationSchema
  ) throws {
    var database: [String: Any] = ["path": "app.db"]
    if schema.needsExtension {
      try SQLiteExtension.put(in: directory)
      database["extensions"] = ["./own.so"]
    }
    do {
      let connection = try connect("app.db", to: schema)
      try connection.transaction(.immediate) { () throws(BatchError) in
        try connection.runScript(schema.script)
      }
    }
    try copy("app.db", to: "before.db")
    let more: [String: Any] = ["database": database, "undo": true, "chunk": ["size": 7]]
    try update(schema, more)
    try purge(schema, more)
    try export(schema, ["database": database])
  }

  private func update(_ schema: ApplicationSchema, _ more: [String: Any]) throws {
    let update = schema.update
    try directory.write(
      JobText.update(
        update.set,
        where: update.condition,
        entity: update.table,
        adding: more.merging(["name": "update"]) { $1 }
      ),
      to: "update.json"
    )
    try copy("before.db", to: "sql.db")
    let set = update.set.map { "\(SQLName.quoted($0)) = \($1)" }.joined(separator: ", ")
    let table = SQLName.quoted(update.table)
    let other = try connect("sql.db", to: schema)
    try other.execute("UPDATE \(table) SET \(set) WHERE \(update.condition)")
    let changed = other.changes
    #expect(changed > 0)

    for command in ["validate", "plan"] { try run(command, "update.json") }
    let rehearsal = try JSONOutput.object(run("rehearse", "update.json", "--json").output)
    let changes = rehearsal["tables"] as? [[String: Any]] ?? []
    let own = changes.first { $0["table"] as? String == update.table }
    #expect(own?["changed"] as? Int == changed, "\(changes)")
    try expectSame("app.db", "before.db", of: schema)
    try run("run", "update.json")
    try expectSame("app.db", "sql.db", of: schema)
    try run("verify", "update.json")
    let allowed = update.triggered.flatMap { ["--allow", "\(update.table).\($0)"] }
    let verified = try BatchProgram(
      ["verify", "update.json", "--against", "before.db", "--json"] + allowed,
      in: directory
    ).wait()
    let verification = try JSONOutput.object(verified.output)
    #expect(verification["changedAsDeclared"] as? Int == changed, "\(verified.errors)")
    // Tables behind a virtual table differ too where triggers write to it.
    let writesIndex = schema.script.contains("CREATE VIRTUAL TABLE")
    #expect(writesIndex || verification["isAsDeclared"] as? Bool == true, "\(verified.output)")
    try run("undo", "update.json")
    try expectSame("app.db", "before.db", of: schema)
  }

  private func purge(_ schema: ApplicationSchema, _ more: [String: Any]) throws {
    let purge = schema.purge
    let table = SQLName.quoted(purge.table)
    let action: [String: Any] = [
      "type": "delete", "archive": ["entity": "archive", "create": true],
    ]
    try directory.write(
      JobText.delete(
        where: purge.condition,
        entity: purge.table,
        adding: more.merging(["name": "purge", "action": action]) { $1 }
      ),
      to: "purge.json"
    )
    try copy("before.db", to: "sql.db")
    do {
      let other = try connect("sql.db", to: schema)
      try other.execute("CREATE TABLE archive AS SELECT * FROM \(table) WHERE \(purge.condition)")
      try other.execute("DELETE FROM \(table) WHERE \(purge.condition)")
    }
    try run("rehearse", "purge.json")
    try run("run", "purge.json")
    try expectSame("app.db", "sql.db", of: schema)
    let columns = try connect("app.db", to: schema).texts(
      "SELECT name FROM pragma_table_info('archive')"
    )
    let archived =
      "SELECT \(columns.map { "quote(\(SQLName.quoted($0)))" }.joined(separator: " || ")) FROM archive"
    let kept = try connect("app.db", to: schema).texts(archived).sorted()
    #expect(try kept == connect("sql.db", to: schema).texts(archived).sorted())
    #expect(!kept.isEmpty)
    try run("verify", "purge.json")
    let undo = try BatchProgram(["undo", "purge.json"], in: directory).wait()
    #expect(undo.status == 0, "\(undo.output) \(undo.errors)")
    if !purge.deletesOthers { try expectSame("app.db", "before.db", of: schema) }
  }

  private func export(_ schema: ApplicationSchema, _ more: [String: Any]) throws {
    let (entity, key) = schema.export
    var source: [String: Any] = ["entity": entity, "everything": true]
    if let key { source["key"] = key }
    try directory.write(
      JobText.export(
        to: "out.ndjson",
        entity: entity,
        adding: more.merging(["name": "export", "source": source]) { $1 }
      ),
      to: "export.json"
    )
    try run("run", "export.json")
    let lines = try JSONOutput.lines(String(decoding: directory.read("out.ndjson"), as: UTF8.self))
    let connection = try connect("app.db", to: schema)
    let count = try connection.value("SELECT count(*) FROM \(SQLName.quoted(entity))")
    #expect(count == .integer(Int64(lines.count)))
    #expect(lines.count > 0)
  }
}
