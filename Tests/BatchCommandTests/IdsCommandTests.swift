import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct IdsCommandTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(100, in: directory)
    // Row 61 fails, after three chunks of 20.
    let job = try JobText.update(
      ["n": "CASE id WHEN 61 THEN json('{') ELSE 1 END"],
      adding: ["chunk": ["size": 20]]
    )
    try directory.write(job, to: "job.json")
  }

  private func ids(_ arguments: String..., from source: String = "job.json") throws -> [String] {
    let result = try BatchProgram(["ids", source] + arguments, in: directory).wait()
    #expect(result.status == 0, "\(arguments): \(result.errors)")
    return result.output.split(separator: "\n").map(String.init)
  }

  private func failHalfWay() throws {
    let result = try BatchProgram.run("run", "job.json", "--workers", "1", in: directory)
    #expect(result.status == 1, "\(result.errors)")
  }

  @Test func `the outcomes of a run are listed separately`() throws {
    try failHalfWay()
    // The chunk after the failed one may have been at the writer already.
    let done = try ids("--outcome", "done", "--format", "key").compactMap(Int.init)
    #expect(done == Array(1...60) || done == Array(1...60) + Array(81...100))
    let remaining = try ids("--outcome", "remaining", "--format", "key").compactMap(Int.init)
    #expect(Set(done).union(remaining) == Set(1...100))
    #expect(done.count + remaining.count == 100)
    #expect(try ids("--count") == ["100"])
    #expect(try ids("--count", "--outcome", "done") == ["\(done.count)"])
    #expect(try ids("--count", "--outcome", "failed") == ["0"])
    #expect(try ids("--format", "key").compactMap(Int.init) == Array(1...100))
  }

  @Test func `every format of identifiers names the store, the entity and the key`() throws {
    try failHalfWay()
    let schema = try BatchProgram.run("schema", "test.db", "--json", in: directory)
    let store = try #require(JSONOutput.object(schema.output)["store"] as? String)
    let uris = try ids("--format", "uri")
    #expect(try ids() == ids("--format", "key"))
    #expect(uris.count == 100)
    #expect(uris.allSatisfy { $0.contains(store) && $0.contains("numbers") })
    let objects = try ids("--format", "json")
    #expect(objects.count == 100)
    let first = try #require(objects.first)
    _ = try JSONSerialization.jsonObject(with: Data(first.utf8), options: .fragmentsAllowed)
  }

  @Test func `a saved list of remaining rows can be another job's rows`() throws {
    try failHalfWay()
    let remaining = try ids("--outcome", "remaining", "--format", "key")
    #expect(try ids("--outcome", "remaining", "--output", "rest.ids") == [])
    #expect(try ids("--format", "key", from: "rest.ids") == remaining)
    #expect(try ids("--count", from: "rest.ids") == ["\(remaining.count)"])
    let before = try directory.contents()
    let again = try BatchProgram.run("ids", "job.json", "--output", "rest.ids", in: directory)
    #expect(again.status == 2)
    #expect(again.errors.contains("already a file of this name"))
    #expect(try directory.changes(since: before) == [])

    let source = ["entity": "numbers", "identifiers": "rest.ids"]
    let job = try JobText.update(["n": "n + 1000"], adding: ["source": source, "name": "rest"])
    try directory.write(job, to: "rest.json")
    let result = try BatchProgram.run("run", "rest.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let changed = try TestDatabase.texts(
      directory.file("test.db"),
      "SELECT id FROM numbers WHERE n >= 1000 ORDER BY id"
    )
    #expect(changed == remaining)
  }

  @Test func `a checkpoint is read like its job`() throws {
    try failHalfWay()
    #expect(try ids("--count", from: "job.batch") == ["100"])
    let result = try BatchProgram.run("ids", "job.batch", "--outcome", "done", in: directory)
    #expect(result.status == 2)
    #expect(result.errors.contains("recorded in the database"))
    try TestDatabase.make(in: directory, "UPDATE numbers SET id = 61000 WHERE id = 61")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try ids("--count", "--outcome", "done", from: "job.batch") == ["100"])
    #expect(try ids("--count", "--outcome", "remaining", from: "job.batch") == ["0"])
  }

  @Test func `a row whose retry has another outcome is listed under that outcome`() throws {
    let job = try JobText.update(
      ["n": "CASE WHEN id % 10 = 0 AND n = 0 THEN json('{') ELSE 1 END"],
      where: "label <> 'x'",
      adding: ["chunk": ["size": 20], "skip": ["limit": 50]]
    )
    try directory.write(job, to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    try TestDatabase.make(
      in: directory,
      "DELETE FROM numbers WHERE id IN (20, 21, 40)",
      "UPDATE numbers SET label = 'x' WHERE id IN (30, 31, 50)",
      "UPDATE numbers SET n = 5 WHERE id = 70"
    )
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 4)
    for source in ["job.json", "job.batch"] {
      #expect(try ids("--outcome", "vanished", from: source) == ["20", "40"])
      #expect(try ids("--outcome", "noLongerMatching", from: source) == ["30", "50"])
      #expect(try ids("--outcome", "failed", from: source) == ["10", "60", "80", "90", "100"])
      #expect(try ids("--outcome", "unchanged", from: source) == [])
      let succeeded = try ids("--outcome", "succeeded", from: source)
      #expect(succeeded == (1...100).filter { $0 % 10 != 0 || $0 == 70 }.map(String.init))
    }
  }

  @Test func `outcomes whose table was dropped are not guessed`() throws {
    try TestDatabase.make(
      in: directory,
      // The rows go away after they were selected.
      """
      CREATE TRIGGER gone AFTER UPDATE ON numbers WHEN new.id = 1
      BEGIN DELETE FROM numbers WHERE id IN (5, 15); END
      """
    )
    try failHalfWay()
    #expect(try ids("--outcome", "vanished") == ["5", "15"])
    try TestDatabase.make(in: directory, "DROP TABLE _batch_passed_over")
    for outcome in ["vanished", "succeeded"] {
      let arguments = ["ids", "job.json", "--outcome", outcome]
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status == 2 && result.errors.contains("is not recorded"), "\(result.errors)")
    }
    #expect(try ids("--outcome", "unchanged") == [])
    #expect(try ids("--outcome", "done").isEmpty == false)
  }

  @Test func `a list on standard output is an identifier file`() throws {
    try failHalfWay()
    let program = try BatchProgram(
      ["-c", "\(BatchProgram.path) ids job.json --format ids > some.ids"],
      of: "/bin/sh",
      in: directory
    ).wait()
    #expect(program.status == 0, "\(program.errors)")
    #expect(try ids(from: "some.ids") == ids())
  }

  @Test func `a reader that closes the pipe causes no error`() throws {
    try TestDatabase.makeNumbers(50_000, in: directory, name: "large.db")
    let job = try JobText.update(database: "large.db")
    try directory.write(job, to: "large.json")
    #expect(try BatchProgram.run("run", "large.json", in: directory).status == 0)
    let program = try BatchProgram(["ids", "large.json"], in: directory)
    #expect(program.nextLine() != nil)
    program.closeOutput()
    let result = program.wait()
    #expect(result.errors == "")
    #expect(result.status == 0)
  }
}
