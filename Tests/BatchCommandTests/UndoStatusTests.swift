import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What commands tell of a run that was undone, in whole or in part.
@Suite struct UndoStatusTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func batch(_ arguments: String..., status: Int32 = 0) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.errors)")
    return result
  }

  private func write(_ more: [String: Any] = [:]) throws {
    try directory.write(
      JobText.update(["n": "-1"], adding: ["undo": true].merging(more) { $1 }),
      to: "job.json"
    )
  }

  private func makeList(_ keys: ClosedRange<Int>) throws {
    try directory.write(keys.map(String.init).joined(separator: "\n"), to: "some.txt")
    try? FileManager.default.removeItem(atPath: directory.file("some.ids"))
    let command = ["ids", "from", "some.txt", "--database", "test.db", "--entity", "numbers"]
    let result = try BatchProgram(command + ["--output", "some.ids"], in: directory).wait()
    #expect(result.status == 0, "\(result.errors)")
  }

  private func undoneBy() throws -> String? {
    let status = try batch("status", "job.json", "--json").output
    return try JSONOutput.object(status)["undoneBy"] as? String
  }

  /// The number of rows as the run leaves them.
  private func changed() throws -> Int {
    try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n = -1").count
  }

  /// The UUID of the run of which JSON on standard output tells.
  private func run(_ result: BatchProgram.Result) throws -> String {
    String(try #require(result.output.firstMatch(of: /"run":"([^"]+)"/)?.1))
  }

  /// Kills a run after its first chunk of ten rows.
  private func killRun(_ command: String) throws {
    try write(["chunk": ["size": 10], "throttle": ["identifiersPerSecond": 0.001]])
    let program = try BatchProgram([command, "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGKILL)
    #expect(program.wait().status == -SIGKILL)
    try write()
  }

  @Test func `status of a finished undo tells what the next undo does`() throws {
    try write()
    _ = try batch("run", "job.json")
    let undo = try run(batch("undo", "job.json", "--json"))
    let status = try batch("status", "job.undo").output.split(whereSeparator: \.isWhitespace)
      .joined(separator: " ")
    let words = "was undone by run \(undo)"
    #expect(status.contains("batch undo: refuses: "), "\(status)")
    #expect(status.contains(words), "\(status)")
    #expect(
      try batch("cancel", "job.undo", status: 2).errors.contains("; batch undo starts or resumes")
    )
    #expect(try batch("undo", "job.json", status: 2).errors.contains(words))

    // Another run can be undone in turn.
    _ = try batch("run", "job.json")
    #expect(try batch("status", "job.undo").output.contains("batch undo: starts a new run"))
    _ = try batch("undo", "job.json")
    #expect(try changed() == 0)

    // One that was undone in part is undone further.
    _ = try batch("run", "job.json")
    try makeList(1...40)
    _ = try batch("undo", "job.json", "--ids", "some.ids")
    #expect(try batch("status", "job.undo").output.contains("batch undo: starts a new run"))
    _ = try batch("undo", "job.json")
    #expect(try changed() == 0)
  }

  @Test func `the undo that restored most rows is the one that undid the run`() throws {
    try write()
    let undone = try run(batch("run", "job.json", "--json"))
    try makeList(1...40)
    let part = try run(batch("undo", "job.json", "--ids", "some.ids", "--json"))
    #expect(try undoneBy() == part)
    let whole = try run(batch("undo", "job.json", "--json"))
    #expect(try undoneBy() == whole)
    // It finds every row as before, and changes nothing.
    let nothing = try batch("undo", "job.json", "--run", undone, "--json")
    #expect(nothing.output.contains(#""succeeded":0"#), "\(nothing.output)")
    #expect(try undoneBy() == whole)
    // One row was changed since, and is put back again.
    try Connection(path: path).execute("UPDATE numbers SET n = 7 WHERE id = 3")
    try makeList(3...3)
    let again = ["undo", "job.json", "--run", undone, "--ids", "some.ids", "--overwrite"]
    let last = try BatchProgram(again, in: directory).wait()
    #expect(last.status == 0, "\(last.errors)")
    #expect(try TestDatabase.value(path, "SELECT n FROM numbers WHERE id = 3") == .integer(0))
    #expect(try undoneBy() == whole)
    #expect(!(try batch("status", "job.json").output.contains("of 100 rows undone")))
  }

  @Test func `undoing a part of a killed run warns that the run cannot be resumed`() throws {
    try killRun("run")
    try makeList(1...3)
    let words = "is not finished: once any of it is undone, it cannot be resumed, only started over"
    let plan = try batch("undo", "job.json", "--ids", "some.ids", "--plan")
    #expect(plan.errors.contains(words), "\(plan.errors)")
    let undo = try batch("undo", "job.json", "--ids", "some.ids")
    #expect(undo.errors.contains(words), "\(undo.errors)")
    #expect(try batch("run", "job.json", status: 2).errors.contains("so it is not resumed"))
    _ = try batch("run", "job.json", "--fresh")
    #expect(try changed() == 100)
    // Nothing is lost with a run that is finished.
    let other = try batch("undo", "job.json")
    #expect(!other.errors.contains("cannot be resumed"), "\(other.errors)")
  }

  @Test func `status of a folder tells of an undo that was killed`() throws {
    try write()
    _ = try batch("run", "job.json")
    try killRun("undo")
    let line = try batch("status", ".").output
    #expect(line.contains("job.json: completed"), "\(line)")
    let reason = "refuses: \(directory.file("test.db")): a run of the job is being undone"
    #expect(line.replacing(/\s+/, with: " ").contains("batch run \(reason)"), "\(line)")
    #expect(try batch("run", "job.json", status: 2).errors.contains("is being undone"))
    _ = try batch("undo", "job.json")
    #expect(try !batch("status", ".").output.contains("refuses"))
  }

  @Test(arguments: ["CASCADE", "SET NULL"])
  func `columns that follow an updated one are undone with it, and others are named`(
    action: String
  ) throws {
    try TestDatabase.make(
      "tree.db",
      in: directory,
      "CREATE TABLE parent (id INTEGER PRIMARY KEY, code TEXT UNIQUE)",
      """
      CREATE TABLE child (
        id INTEGER PRIMARY KEY, code TEXT REFERENCES parent (code) ON UPDATE \(action))
      """,
      "INSERT INTO parent VALUES (1, 'a'), (2, 'b')",
      "INSERT INTO child VALUES (1, 'a'), (2, 'b'), (3, 'a')"
    )
    try directory.write(
      """
      {"version": 1, "name": "tree", "database": {"path": "tree.db", "foreignKeys": true}, "undo": true,
       "source": {"entity": "parent", "everything": true},
       "action": {"type": "update", "set": {"code": "code || '!'"}}}
      """,
      to: "tree.json"
    )
    func codes() throws -> [String] {
      let path = directory.file("tree.db")
      return try TestDatabase.texts(path, "SELECT ifnull(code, '') FROM child ORDER BY id")
    }
    let plan = try batch("plan", "tree.json").errors.replacing(/\s+/, with: " ")
    let leaves = #"may also write "child", which batch undo leaves as it is"#
    #expect(plan.contains(leaves) == (action == "SET NULL"), "\(plan)")
    _ = try batch("run", "tree.json")
    #expect(try codes() == (action == "CASCADE" ? ["a!", "b!", "a!"] : ["", "", ""]))
    let undo = try batch("undo", "tree.json")
    let after = try codes()
    #expect(undo.errors.contains("not undone: ") == (after != ["a", "b", "a"]), "\(undo.errors)")
    #expect(after == (action == "CASCADE" ? ["a", "b", "a"] : ["", "", ""]))
  }
}
