import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What an undo leaves, and how it is reported.
@Suite struct UndoRemainsTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER, label TEXT COLLATE NOCASE)",
      "INSERT INTO items VALUES (1, 1, 'new'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, NULL)"
    )
  }

  /// Runs SQL in another connection, which is then closed.
  private func execute(_ sql: String) throws {
    try Connection(path: path).execute(sql)
  }

  @Test func `the removal statement of an undo spares copies of rows that were not restored`()
    throws
  {
    try execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, n, label TEXT COLLATE NOCASE)")
    try execute("INSERT INTO kept VALUES (1, 1, 'NEW')")
    try directory.write(
      JobText.delete(archive: "kept", where: "id > 1", entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try execute("INSERT INTO items VALUES (2, 2, 'another')")
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 4, "\(undo.errors)")
    let says = "not undone: 2 copies in \"kept\"; this removes them: "
    let line = try #require(undo.errors.split(separator: "\n").first { $0.contains(says) })
    try execute(String(line[try #require(line.firstRange(of: says)).upperBound...]))
    let left = try TestDatabase.texts(path, "SELECT id || label FROM kept ORDER BY id")
    #expect(left == ["1NEW", "2b"])
    let history = try BatchProgram.run("history", "job.json", in: directory)
    #expect(history.output.contains(" partly undone "), "\(history.output)")
  }

  @Test func `an undo reports the columns that a trigger of the table has written`() throws {
    try execute("ALTER TABLE items ADD COLUMN touched INTEGER")
    try execute(
      """
      CREATE TRIGGER touch AFTER UPDATE OF n ON items
      BEGIN UPDATE items SET touched = 1 WHERE id = new.id; END
      """
    )
    try directory.write(
      JobText.update(["n": "n + 1"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    let warning = "the run may also write \"touched\" of \"items\""
    #expect(plan.errors.contains(warning), "\(plan.errors)")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    let says = "not undone: what the run may have written in \"touched\" of \"items\""
    #expect(undo.errors.contains(says), "\(undo.errors)")
  }

  @Test func `an undo of some or no rows is not reported as complete`() throws {
    try directory.write(
      JobText.update(["n": "-1"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let known = try TestDatabase.texts(path, "SELECT id FROM items ORDER BY id")
    for (ids, word) in [("999999", " completed "), (known[0], " partly undone ")] {
      try directory.write(ids, to: "keys.txt")
      let list = try BatchProgram(
        ["ids", "from", "keys.txt", "--database", "test.db", "--entity", "items"]
          + ["--output", "\(ids).ids"],
        in: directory
      ).wait()
      #expect(list.status == 0, "\(list.errors)")
      let undo = try BatchProgram.run("undo", "job.json", "--ids", "\(ids).ids", in: directory)
      #expect(undo.status == 0, "\(undo.errors)")
      let history = try BatchProgram.run("history", "job.json", in: directory)
      #expect(history.output.contains(word), "\(history.output)")
    }
    #expect(try BatchProgram.run("undo", "job.json", in: directory).status == 0)
    let history = try BatchProgram.run("history", "job.json", in: directory)
    #expect(history.output.contains(" undone "), "\(history.output)")
  }
}
