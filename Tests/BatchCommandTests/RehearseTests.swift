import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `batch rehearse`: a run on a clone, and its changes there.
@Suite struct RehearseTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
  }

  /// Rehearses, which leaves everything unchanged, including modification times.
  @discardableResult
  private func rehearse(
    _ arguments: String...,
    status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let before = try directory.contents()
    let time = try modificationTime()
    let result = try BatchProgram(["rehearse", "job.json"] + arguments, in: directory).wait()
    let said: Comment = "\(result.output) \(result.errors)"
    #expect(result.status == status, said, sourceLocation: location)
    let changes = try directory.changes(since: before).filter { !$0.hasPrefix("job.rehearsal.") }
    #expect(changes == [], sourceLocation: location)
    #expect(try modificationTime() == time, sourceLocation: location)
    return result
  }

  private func modificationTime() throws -> Date? {
    try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
  }

  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter {
      !$0.contains(/^  (time|peak WAL|database|clone):/)
    }
  }

  @Test func `a rehearsal shows the changes of triggers and foreign keys beside the job's`() throws
  {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE parts (id INTEGER PRIMARY KEY, n REFERENCES numbers ON DELETE CASCADE, w TEXT)",
      "INSERT INTO parts SELECT id, id, 'part' FROM numbers WHERE id > 1990",
      "CREATE INDEX parts_n ON parts (n)",
      "CREATE TABLE log (what TEXT)",
      """
      CREATE TRIGGER logged AFTER DELETE ON numbers WHEN old.id = 1995
      BEGIN
        INSERT INTO log VALUES ('gone');
        UPDATE numbers SET n = 5, label = NULL WHERE id = 2;
      END
      """
    )
    let job = try JobText.delete(
      where: "id > 1990",
      adding: ["database": ["path": "test.db", "foreignKeys": true]]
    )
    try directory.write(job, to: "job.json")
    let result = try rehearse("--samples", "1")
    #expect(
      lines(result.output).map { $0.prefix { $0 != "(" } }.joined(separator: "\n").replacing(
        /done in .*/,
        with: "done"
      )
        == """
        job: rehearsed: completed, 10 of 10 done
          succeeded: 10
          compared:  2,011 rows in 3 tables
        changed:
          log: 1 row added
            + rowid = 1  what: 'gone'
          numbers: 1 row changed, 10 rows removed
            n: 1 row
              id = 2: 0 → 5
            label: 1 row
              id = 2: 'label 2' → NULL
            - id = 1991  n: 0, label: 'label 1991'
          parts: 10 rows removed
            - id = 1991  n: 1991, w: 'part'
        """
    )
    #expect(result.errors.hasPrefix("cloning "))
    #expect(try !directory.names().contains { $0.hasPrefix("job.rehearsal.") })
  }

  @Test(arguments: ["wal", "delete"])
  func `a rehearsal leaves the database unchanged in any journal mode`(mode: String) throws {
    try TestDatabase.make(in: directory, "PRAGMA journal_mode = \(mode)")
    try directory.write(JobText.update(), to: "job.json")
    #expect(try rehearse().output.contains("n: 2,000 rows\n"))
    #expect(try directory.names() == ["job.json", "test.db"])
  }

  @Test func `a rehearsal includes the contents of a live database's log`() throws {
    try TestDatabase.make(in: directory, "PRAGMA journal_mode = wal")
    let live = try Connection(path: path)
    try live.execute("UPDATE numbers SET n = 9 WHERE id = 7")
    try directory.write(JobText.update(where: "n = 9"), to: "job.json")
    let names = try directory.names()
    let result = try BatchProgram.run("rehearse", "job.json", in: directory)
    #expect(result.output.contains("id = 7: 9 → 10\n"), "\(result.output)")
    #expect(try directory.names() == names)
    #expect(try live.value("SELECT n FROM numbers WHERE id = 7") == .integer(9))
  }

  @Test func `a rehearsal leaves the job's run, hooks and report alone`() throws {
    let more: [String: Any] = [
      "hooks": ["onStart": ["/bin/touch", "hook"], "onFinish": ["/bin/touch", "hook"]],
      "report": ["path": "report.json"], "chunk": ["size": 100], "workers": 1,
      "throttle": ["identifiersPerSecond": 1, "window": "00:00-00:01", "flagFile": "hold"],
      "limits": ["runtime": "1ms"],
    ]
    try directory.write("", to: "hold")
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 150
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """
    )
    // A run that has failed, and could be resumed.
    try directory.write(JobText.update(adding: ["chunk": ["size": 100]]), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    try directory.write(JobText.update(adding: more), to: "job.json")
    let result = try rehearse()
    #expect(result.output.contains("rehearsed: completed, 2,000 of 2,000 done"))
    #expect(result.errors.contains("warning: this was a new selection, but the job has an"))
  }

  @Test func `a rehearsed export is written to the rehearsal's folder`() throws {
    try directory.write("mine", to: "out.ndjson")
    try directory.write(JobText.export(to: "out.ndjson", where: "id < 4"), to: "job.json")
    let result = try rehearse("--keep")
    #expect(result.output.contains("\nnothing changed\n"))
    #expect(result.errors.contains("out.ndjson exists, and batch run does not replace it"))
    let folder = try #require(try directory.names().first { $0.hasPrefix("job.rehearsal.") })
    #expect(result.output.contains("clone:     \(directory.file(folder))\n"))
    #expect(try directory.read("\(folder)/output/out.ndjson").count(where: { $0 == 10 }) == 3)
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.file(folder))
    #expect(attributes[.posixPermissions] as? Int == 0o700)
  }

  @Test func `a rehearsal lists failures by reason`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id IN (5, 6, 42)
      BEGIN SELECT RAISE(ABORT, 'no') WHERE old.id < 10; SELECT RAISE(ABORT, 'never'); END
      """
    )
    try directory.write(JobText.update(adding: ["skip": ["limit": 9]]), to: "job.json")
    let skipped = try rehearse(status: 4).output
    #expect(skipped.contains("\nfailed:\n  2 constraint: no (first 5)\n  1 constraint: never (f"))
    #expect(skipped.contains("numbers: 1,997 rows changed\n"))
    try directory.write(JobText.update(adding: ["chunk": ["size": 10]]), to: "job.json")
    let failed = try rehearse("--workers", "1", status: 1)
    #expect(failed.output.contains("rehearsed: failed, "))
    // Several chunks are under way, and any that fails may be the first to be recorded.
    #expect(failed.errors.contains(/error: .*: identifier (5: no|6: no|42: never)\n/))
    #expect(!failed.errors.contains("resume"))
  }

  @Test func `a rehearsed command knows that it is rehearsed`() throws {
    let answer = #"while read -r line; do echo "{\"label\":\"$BATCH_REHEARSAL\"}"; done"#
    let action: [String: Any] = [
      "type": "transform", "columns": ["id"], "writes": ["label"],
      "command": ["/bin/sh", "-c", answer],
    ]
    try directory.write(JobText.update(where: "id < 9", adding: ["action": action]), to: "job.json")
    #expect(try rehearse().output.contains("id = 1: 'label 1' → '1'\n"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT label FROM numbers WHERE id = 1") == [""])
  }

  @Test func `a rehearsal accepts identifiers of a database without an identity`() throws {
    try directory.write("3\n5\n", to: "list.txt")
    let list = ["list.txt", "--database", "test.db", "--entity", "numbers", "--output", "l.ids"]
    let made = try BatchProgram(["ids", "from"] + list, in: directory).wait()
    #expect(made.status == 0, "\(made.errors)")
    let source = ["source": ["entity": "numbers", "identifiers": "l.ids"]]
    try directory.write(JobText.update(adding: source), to: "job.json")
    #expect(try rehearse().output.contains("n: 2 rows\n"))
  }

  @Test func `a rehearsal refuses what a run would refuse before it copies anything`() throws {
    try directory.write(JobText.update(["none": "1"]), to: "job.json")
    try Refusal.expect(["rehearse", "job.json"], in: directory, says: ["none"])
    try directory.write(JobText.update(), to: "job.json")
    try Refusal.expect(
      ["rehearse", "job.json", "--folder", "nowhere"],
      in: directory,
      says: ["nowhere"]
    )
  }

  @Test func `a running job is not rehearsed`() throws {
    try directory.write("", to: "hold")
    try directory.write(JobText.update(adding: ["throttle": ["flagFile": "hold"]]), to: "job.json")
    let run = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = run.nextLine(), !line.contains(#""event":"throttled""#) {}
    let result = try BatchProgram.run("rehearse", "job.json", in: directory)
    #expect(result.status == 5, "\(result.errors)")
    run.send(SIGINT)
    #expect(run.wait().status == 3)
  }

  @Test func `a stopped rehearsal leaves no files, and a killed one those that it has named`()
    throws
  {
    try directory.write(JobText.update(["n": JobText.slowZero], where: "id <= 700"), to: "job.json")
    let stopped = try BatchProgram(["rehearse", "job.json"], in: directory)
    #expect(stopped.nextErrorLine()?.hasPrefix("cloning ") == true)
    while let line = stopped.nextErrorLine(), !line.contains("selected") {}
    stopped.send(SIGINT)
    let end = stopped.wait()
    #expect(end.status == 3, "\(end.errors)")
    #expect(end.errors.contains("the rehearsal was stopped; the database is as it was"))
    #expect(try directory.names() == ["job.json", "test.db"])

    let killed = try BatchProgram(["rehearse", "job.json"], in: directory)
    let line = try #require(killed.nextErrorLine())
    while let line = killed.nextErrorLine(), !line.contains("selected") {}
    killed.send(SIGKILL)
    #expect(killed.wait().status == -SIGKILL)
    let folder = try #require(try directory.names().first { $0.hasPrefix("job.rehearsal.") })
    #expect(line.hasSuffix("into \(directory.file(folder))"))
    try directory.write(JobText.update(), to: "job.json")
    try rehearse()
  }

  @Test func `the JSON fields of a rehearsal are in CommandLine.md`() throws {
    try directory.write(JobText.update(where: "id = 3"), to: "job.json")
    let object = try JSONOutput.object(rehearse("--json", "--quiet").output)
    let page = try Repository.text("Documentation/CommandLine.md")
    for field in object.keys { #expect(page.contains("`\(field)`"), "\(field)") }
    let tables = try #require(object["tables"] as? [[String: Any]])
    for field in tables[0].keys { #expect(page.contains("`\(field)`"), "\(field)") }
    let columns = try #require(tables[0]["columns"] as? [[String: Any]])
    #expect(columns.map { $0["name"] as? String } == ["n"])
    #expect((object["run"] as? [String: Any])?["state"] as? String == "completed")
  }

  @Test func `a rehearsal gives a plan's warnings`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER touch AFTER UPDATE OF n ON numbers
      BEGIN UPDATE numbers SET label = 'touched' WHERE id = new.id; END
      """
    )
    try directory.write(JobText.update(where: "id = 1 OR n = NULL"), to: "job.json")
    let errors = try rehearse().errors
    #expect(errors.contains("warning: \"numbers\" has triggers, which run: touch"), "\(errors)")
    #expect(errors.contains("write IS NULL"), "\(errors)")
  }
}
