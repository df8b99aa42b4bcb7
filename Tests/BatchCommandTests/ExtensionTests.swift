import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Databases whose schemas need functions and collations that an extension of SQLite has.
@Suite(.timeLimit(.minutes(10))) struct ExtensionTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A library of books, as Calibre's: triggers, a view and an index call what only its program has.
  private func makeLibrary() throws -> String {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL COLLATE NOCASE, sort TEXT, path TEXT)
      """,
      "CREATE TABLE tags (name TEXT PRIMARY KEY COLLATE NOCASE, n INTEGER) WITHOUT ROWID",
      "CREATE TABLE gone (id INTEGER, title TEXT, sort TEXT, path TEXT)",
      "CREATE INDEX by_sort ON books (hex(title))",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300)
      INSERT INTO books SELECT i, 'the book ' || i, 'book ' || i || ', the', 'a/' || i FROM c
      """,
      "INSERT INTO tags SELECT title, id FROM books",
      "CREATE VIEW shown AS SELECT id, title_sort(title) AS sort FROM books",
      """
      CREATE TRIGGER renamed AFTER UPDATE OF title ON books
      BEGIN UPDATE books SET sort = title_sort(new.title) WHERE id = new.id; END
      """
    )
    // The order of these rows is the same by either name.
    try TestDatabase.rename("NOCASE", "unicase", inSchemaOf: path)
    return path
  }

  private let database: [String: Any] = ["path": "test.db", "extensions": ["./own.so"]]

  @discardableResult
  private func run(
    _ arguments: String...,
    status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(
      result.status == status,
      "\(arguments): \(result.output) \(result.errors)",
      sourceLocation: location
    )
    return result
  }

  @Test func `every command loads the extensions that the job's schema needs`() throws {
    try SQLiteExtension.put(in: directory)
    let path = try makeLibrary()
    try FileManager.default.copyItem(atPath: path, toPath: directory.file("before.db"))
    let more: [String: Any] = ["database": database, "undo": true]
    try directory.write(
      JobText.update(
        ["title": "'The ' || id"],
        where: "id <= 200 AND title_sort(title) = title",
        entity: "books",
        adding: more
      ),
      to: "job.json"
    )
    for command in ["validate", "plan"] { try run(command, "job.json") }
    let rehearsal = try run("rehearse", "job.json", "--json")
    let changes = try #require(JSONOutput.object(rehearsal.output)["tables"] as? [[String: Any]])
    #expect(changes.map { $0["table"] as? String } == ["books"])
    #expect(changes.first?["changed"] as? Int == 200)
    try run("run", "job.json")
    let sorted = "SELECT count(*) FROM books WHERE sort = id || ', The'"
    #expect(try TestDatabase.texts(path, sorted) == ["200"])
    let verified = try run(
      "verify",
      "job.json",
      "--against",
      "before.db",
      "--allow",
      "books.sort",
      "--json"
    )
    let verification = try JSONOutput.object(verified.output)
    #expect(verification["computedColumns"] as? [String] == ["books.title"])
    let unchecked = try #require(verification["unchecked"] as? [[String: Any]])
    #expect(unchecked.map { $0["column"] as? String } == ["sort"])
    #expect((verification["uncompared"] as? [Any])?.isEmpty == true)
    try run("verify", "job.json")
    try run("ids", "job.json", "--count")
    try run("undo", "job.json")
    let restored = "SELECT count(*) FROM books WHERE title COLLATE BINARY = 'the book ' || id"
    #expect(try TestDatabase.texts(path, restored) == ["300"])

    try directory.write(
      JobText.export(
        to: "out.ndjson",
        where: "sort LIKE '% 1%'",
        entity: "shown",
        adding: ["database": database]
      ),
      to: "export.json"
    )
    try run("run", "export.json")
    let lines = try JSONOutput.lines(String(decoding: directory.read("out.ndjson"), as: UTF8.self))
    #expect(lines.count == 111)
    #expect(lines.first?["sort"] as? String == "the book 1")

    try directory.write(
      JobText.update(entity: "tags", adding: ["database": database]),
      to: "tags.json"
    )
    try run("run", "tags.json")
    var options = Connection.Options()
    options.extensions = [directory.file("own.so")]
    let connection = try Connection(path: path, options: options)
    #expect(try connection.texts("SELECT sum(n) FROM tags") == ["45450"])
  }

  @Test func `the error of an extension that cannot be loaded names its place in the job`() throws {
    try TestDatabase.makeNumbers(3, in: directory)
    for (name, says) in [("mod_none", "where the system looks"), ("./none.so", "give the path")] {
      let database: [String: Any] = ["path": "test.db", "extensions": [name]]
      let job = try JobText.update(adding: ["database": database])
      try Refusal.ofEveryCommand(
        job,
        in: directory,
        says: ["database.extensions[0]: the extension \"", "none", "cannot be loaded", says]
      )
    }
  }

  @Test func `SQL cannot load extensions other than the job's`() throws {
    try SQLiteExtension.put(in: directory)
    try TestDatabase.makeNumbers(3, in: directory)
    for call in ["load_extension('./own.so')", "load_extension('./own.so', 'sqlite3_own_init')"] {
      try Refusal.ofEveryCommand(
        JobText.update(["n": call], adding: ["database": database]),
        in: directory,
        says: ["load_extension"]
      )
    }
    // Behind a trigger too.
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER t AFTER UPDATE ON numbers BEGIN SELECT load_extension('./own.so'); END"
    )
    try directory.write(JobText.update(adding: ["database": database]), to: "job.json")
    let result = try BatchProgram(["run", "job.json"], in: directory).wait()
    #expect(result.status != 0, "\(result.output)")
  }
}
