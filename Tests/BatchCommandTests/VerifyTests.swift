import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `batch verify`: what a run has changed, by a copy of the database from before it.
@Suite struct VerifyTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE archive (id INTEGER PRIMARY KEY, n INTEGER, label TEXT)",
      "CREATE TABLE log (what TEXT)"
    )
  }

  /// Copies the database, and runs a job.
  private func run(_ job: String, status: Int32 = 0) throws {
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("before.db"))'")
    try directory.write(job, to: "job.json")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == status, "\(run.errors)")
  }

  /// Verifies the run, which writes nothing; lines of standard output.
  private func verify(_ arguments: String..., status: Int32 = 0) throws -> [String] {
    let before = try directory.contents()
    let result = try BatchProgram(
      ["verify", "job.json", "--against", "before.db"] + arguments,
      in: directory
    ).wait()
    #expect(result.status == status, "\(result.output) \(result.errors)")
    #expect(result.errors == "")
    #expect(try directory.changes(since: before) == [])
    return Self.lines(result)
  }

  /// The lines of standard output, but for the names of the runs.
  private static func lines(_ result: BatchProgram.Result) -> [String] {
    result.output.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("  run: ") }
  }

  @Test func `verify says which run it has checked`() throws {
    try run(JobText.update(where: "id % 2 = 0"))
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    let id = try #require(JSONOutput.object(status)["run"] as? String)
    let output = try BatchProgram.run("verify", "job.json", "--against", "before.db", in: directory)
      .output
    #expect(output.contains("\n  run: \(id) of job, 1,000 rows done\n"), "\(output)")
  }

  @Test func `verify of an update that did only what it declares has exit status 0`() throws {
    try run(JobText.update(where: "id % 2 = 0"))
    #expect(
      try verify() == [
        "job: nothing differs but what the job declares",
        "  compared: 2,000 rows in 3 tables", "  selected: 1,000 rows",
        "  set as computed: 1,000 rows in numbers.n",
      ]
    )
  }

  @Test func `verify shows any other difference with its key and both values`() throws {
    try run(JobText.update(where: "id % 2 = 0"))
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET label = 'é' WHERE id = 2",
      "UPDATE numbers SET n = 5 WHERE id = 3",
      "DELETE FROM numbers WHERE id = 4",
      "INSERT INTO numbers (id) VALUES (0)",
      "INSERT INTO log VALUES ('x')",
      "CREATE INDEX by_label ON numbers (label)"
    )
    #expect(
      try verify(status: 1) == [
        "index by_label is in the database only", "log rowid = 1: in the database only",
        "numbers id = 0: in the database only", "numbers id = 2: label: 'label 2' → 'é'",
        "numbers id = 3: n: 0 → 5", "numbers id = 4: in the other file only",
        "log: 1 row more", "numbers: 2 rows differ: n 1, label 1; 1 row more, 1 row less",
        "job: 6 differences that the job does not declare", "  compared: 2,002 rows in 3 tables",
        "  selected: 1,000 rows", "  set as computed: 998 rows in numbers.n", "  changed: 2 rows",
        "  added: 2 rows", "  removed: 1 row", "  schema: 1 object",
      ]
    )
    let short = try verify("--limit", "1", status: 1)
    #expect(
      short.prefix(4) == [
        "index by_label is in the database only", "and 5 more", "log: 1 row more",
        "numbers: 2 rows differ: n 1, label 1; 1 row more, 1 row less",
      ]
    )
  }

  @Test func `verify counts in how many rows each column differs`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE wide (id INTEGER PRIMARY KEY, \((0..<70).map { "c\($0)" }.joined(separator: ", ")))",
      "INSERT INTO wide (id) SELECT id FROM numbers WHERE id <= 3"
    )
    try run(JobText.update(where: "id % 2 = 0"))
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET label = 'other' WHERE id <= 100",
      "UPDATE numbers SET n = 7 WHERE id <= 50 AND id % 2 = 1",
      "UPDATE wide SET \((0..<70).map { "c\($0) = -1" }.joined(separator: ", ")) WHERE id < 3",
      "UPDATE wide SET c69 = 1 WHERE id = 3"
    )
    let lines = try verify("--limit", "0", status: 1)
    let others = (1..<20).map { "c\($0) 2" }.joined(separator: ", ")
    #expect(
      lines.prefix(3) == [
        "and 103 more", "numbers: 100 rows differ: n 25, label 100",
        "wide: 3 rows differ: c0 2, \(others), and 50 other columns",
      ]
    )
    let object = try JSONOutput.object(
      verify("--json", "--limit", "0", status: 1).joined(separator: "\n")
    )
    let tables = try #require(object["byTable"] as? [[String: Any]])
    let columns = try #require(tables.last?["columns"] as? [[String: Any]])
    #expect(columns.map { $0["rows"] as? Int } == Array(repeating: 2, count: 69) + [3])
  }

  @Test func `the JSON of verify has the counts and the differences, as in CommandLine.md`() throws
  {
    try run(JobText.update(where: "id % 2 = 0"))
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 1.5 WHERE id = 2")
    let object = try JSONOutput.object(verify("--json", status: 1).joined(separator: "\n"))
    let counts = [
      "selected": 1000, "tables": 3, "rows": 2000, "changedAsDeclared": 999, "deletedAsDeclared": 0,
      "archivedAsDeclared": 0, "changed": 1, "added": 0, "removed": 0, "outcome": 0, "schema": 0,
    ]
    for (name, count) in counts { #expect(object[name] as? Int == count, "\(name)") }
    #expect(object["isAsDeclared"] as? Bool == false)
    let differences = try #require(object["differences"] as? [[String: Any]])
    #expect(differences.count == 1)
    #expect(differences[0]["kind"] as? String == "changed")
    #expect(differences[0]["table"] as? String == "numbers")
    #expect(differences[0]["key"] as? [[String: String]] == [["name": "id", "value": "2"]])
    #expect(
      differences[0]["columns"] as? [[String: String]] == [
        ["name": "label", "file": "'label 2'", "database": "'1.5'"]
      ]
    )
    let table = try #require((object["byTable"] as? [[String: Any]])?.first)
    #expect(table["table"] as? String == "numbers" && table["changed"] as? Int == 1)
    let columns = try #require(table["columns"] as? [[String: Any]])
    #expect(columns.count == 1 && columns[0]["name"] as? String == "label")
    #expect(columns[0]["rows"] as? Int == 1)
    let page = try Repository.text("Documentation/CommandLine.md")
    for field in object.keys { #expect(page.contains("`\(field)`"), "\(field)") }
    for field in differences[0].keys { #expect(page.contains("`\(field)`"), "\(field)") }
  }

  @Test func `verify requires deleted rows in the archive and nothing else`() throws {
    try run(JobText.delete(archive: "archive", where: "id > 1500"))
    #expect(
      try verify() == [
        "job: nothing differs but what the job declares", "  compared: 2,500 rows in 3 tables",
        "  selected: 500 rows", "  deleted as declared: 500 rows", "  archived: 500 rows",
      ]
    )
    try TestDatabase.make(
      in: directory,
      "DELETE FROM archive WHERE id = 1501",
      "UPDATE archive SET label = 'other' WHERE id = 1502",
      "INSERT INTO archive VALUES (7, 0, 'label 7')"
    )
    #expect(
      try verify(status: 1).prefix(5) == [
        "archive id = 7: in the database only", "archive id = 1502: in the database only",
        "numbers id = 1501: in the other file only", "numbers id = 1502: in the other file only",
        "archive: 2 rows more",
      ]
    )
  }

  @Test func `verify allows a transform its declared columns and an export no change`() throws {
    try run(JobText.export(to: "out.ndjson"))
    #expect(
      try verify().dropFirst() == ["  compared: 2,000 rows in 3 tables", "  selected: 2,000 rows"]
    )
    try FileManager.default.removeItem(atPath: directory.file("before.db"))
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    let action: [String: Any] = [
      "type": "transform", "columns": ["id"], "writes": ["n"],
      "command": ["/bin/sed", "-u", #"s/.*"id":\([0-9]*\).*/{"n":\1}/"#],
    ]
    try run(JobText.update(adding: ["action": action]))
    let lines = try verify()
    #expect(lines.last == "  not checked: 2,000 rows in numbers.n: a program wrote it")
  }

  @Test func `verify does not compute a time that depends on the time zone`() throws {
    try run(JobText.update(["n": "unixepoch('2026-01-01', 'utc') + id"]))
    let lines = try verify()
    #expect(lines.last?.contains("it depends on the time zone: 'utc'") == true, "\(lines)")
  }

  @Test func `verify says that the run was undone`() throws {
    try run(JobText.update(["n": "n + 1"], adding: ["undo": true]))
    #expect(try BatchProgram.run("undo", "job.json", in: directory).status == 0)
    for more in [["--against", "before.db"], []] {
      let result = try BatchProgram(["verify", "job.json"] + more, in: directory).wait()
      #expect(result.status == 1)
      #expect(result.errors.contains("was undone by run"), "\(result.errors)")
    }
  }

  @Test func `verify compares what a program gave with the undo records`() throws {
    let action: [String: Any] = [
      "type": "transform", "columns": ["id"], "writes": ["n"],
      "command": ["/bin/sed", "-u", #"s/.*"id":\([0-9]*\).*/{"n":\1}/"#],
    ]
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = id WHERE id <= 100")
    try run(JobText.update(adding: ["action": action, "undo": true]))
    #expect(try verify().last == "  set as computed: 1,900 rows in numbers.n")
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET n = 5 WHERE id = 50",
      "UPDATE numbers SET n = 5 WHERE id = 150",
      "UPDATE numbers SET n = 0 WHERE id = 151"
    )
    let lines = try verify(status: 1)
    #expect(lines[0] == "numbers id = 50: n: 50 → 5")
    #expect(lines[1].hasPrefix("identifier 150: somebody has changed the row since: \"n\" is 5"))
    #expect(lines.contains("job: 3 differences that the job does not declare"))
    #expect(lines.contains("  set as computed: 1,898 rows in numbers.n"))
  }

  @Test func `verify requires rows that an unfinished run has not done to be unchanged`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 550
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """
    )
    try run(JobText.update(adding: ["chunk": ["size": 100], "workers": 1]), status: 1)
    // The chunk with this row is not done; one that was under way beside it may be.
    let done = try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 1")
    let object = try JSONOutput.object(verify("--json").joined(separator: "\n"))
    #expect(object["selected"] as? Int == Int(done[0]))
    #expect(object["changedAsDeclared"] as? Int == Int(done[0]))
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = 1 WHERE id = 549")
    #expect(try verify(status: 1).first == "numbers id = 549: n: 0 → 1")
  }

  @Test func `verify leaves a copy with a write-ahead log unchanged`() throws {
    try run(JobText.update(["n": "1"]))
    try FileManager.default.removeItem(atPath: directory.file("before.db"))
    try FileManager.default.copyItem(atPath: path, toPath: directory.file("before.db"))
    let first = try verify().first
    #expect(first == "job: nothing differs but what the job declares")
    #expect(try !directory.names().contains { $0.hasPrefix("before.db-") })
  }

  @Test func `verify refuses a file that is not a copy of the database immediately`() throws {
    try run(JobText.update())
    try TestDatabase.makeNumbers(3, in: directory, name: "other.db")
    let command = ["verify", "job.json", "--against"]
    try Refusal.expect(
      command + ["test.db"],
      in: directory,
      says: ["the database of the job itself"]
    )
    try Refusal.expect(command + ["none.db"], in: directory, says: ["none.db: no such file"])
    try Refusal.expect(command + ["job.json"], in: directory, says: ["not an SQLite database"])
    // Of another store, since that was written by a run as well.
    try directory.write(JobText.update(database: "other.db"), to: "other.json")
    _ = try BatchProgram.run("run", "other.json", in: directory)
    try Refusal.expect(command + ["other.db"], in: directory, says: ["this is another database"])
    try TestDatabase.make("empty.db", in: directory, "CREATE TABLE z (a)")
    try Refusal.expect(command + ["empty.db"], in: directory, says: ["it has no table of"])
    let wide = directory.file("wide.db")
    #expect(FileManager.default.createFile(atPath: wide, contents: nil))
    let connection = try Connection(path: wide)
    try connection.execute("PRAGMA encoding = 'UTF-16le'")
    try connection.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY)")
    try Refusal.expect(command + ["wide.db"], in: directory, says: ["wide.db", "encoding"])
  }

  @Test func `verify refuses a job that never ran or has changed since`() throws {
    try directory.write(JobText.update(), to: "job.json")
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("before.db"))'")
    let command = ["verify", "job.json", "--against", "before.db"]
    try Refusal.expect(command, in: directory, says: ["has no checkpoint", "run it first"])
    _ = try BatchProgram.run("run", "job.json", in: directory)
    try directory.write(JobText.update(["label": "1"]), to: "job.json")
    try Refusal.expect(command, in: directory, says: ["the job has changed since the run began"])
  }

  @Test func `verify reports tables whose rowids VACUUM has changed`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE loose (a)",
      "INSERT INTO loose SELECT id FROM numbers"
    )
    try run(JobText.update())
    try TestDatabase.make(in: directory, "UPDATE loose SET rowid = -rowid")
    let result = try BatchProgram(
      ["verify", "job.json", "--against", "before.db"],
      in: directory
    ).wait()
    #expect(result.status == 1)
    #expect(
      result.errors.contains("most rows of \"loose\" differ, and it has no INTEGER PRIMARY KEY")
    )
  }

  @Test func `verify names and counts what triggers may have written, and nothing else passes`()
    throws
  {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER touch AFTER UPDATE OF n ON numbers
      BEGIN
        UPDATE numbers SET label = 'touched' WHERE id = new.id;
        INSERT INTO log VALUES (new.id);
      END
      """
    )
    try run(JobText.update(where: "id % 2 = 0"))
    let lines = try verify()
    #expect(
      lines == [
        "job: nothing differs but what the job declares and what is not checked",
        "  compared: 3,000 rows in 3 tables", "  selected: 1,000 rows",
        "  set as computed: 1,000 rows in numbers.n",
        "  not checked: 1,000 rows in log: the trigger touch may write it",
        "  not checked: 1,000 rows in numbers.label: the trigger touch may write it",
      ]
    )
    try TestDatabase.make(
      in: directory,
      "DROP TRIGGER touch",
      "UPDATE numbers SET label = 'other' WHERE id < 3",
      "CREATE TRIGGER touch AFTER UPDATE OF n ON numbers BEGIN SELECT 1; END"
    )
    // The trigger is another now, and the row 1 was not the run's.
    let other = try verify("--allow", "log", "--allow", "numbers.label", status: 1)
    #expect(other.first == "trigger touch was made in another way")
    #expect(
      other.suffix(2) == [
        "  not checked: 1,000 rows in log: it was allowed to differ",
        "  not checked: 1,001 rows in numbers.label: it was allowed to differ",
      ]
    )
    let strict = try verify("--allow", "log", status: 1)
    #expect(strict.contains("numbers: 1,001 rows differ: label 1,001"))
    let command = ["verify", "job.json", "--against", "before.db", "--allow"]
    try Refusal.expect(command + ["numbers.lable"], in: directory, says: ["did you mean"])
    try Refusal.expect(command + ["lgo"], in: directory, says: ["there is no entity \"lgo\""])
  }

  @Test func `verify finds values that the job would not give and rows of another outcome`() throws
  {
    let set = ["n": "n + 7", "label": "upper(label) || char(0)"]
    try run(JobText.update(set, where: "id % 2 = 0"))
    #expect(try verify().last == "  set as computed: 1,000 rows in numbers.n, numbers.label")
    for (statement, told) in [
      ("UPDATE numbers SET n = 8 WHERE id = 2", "numbers id = 2: n: 7 → 8"),
      ("UPDATE numbers SET n = n - 7 WHERE id = 4", "numbers id = 4: n: 7 → 0"),
      ("UPDATE numbers SET n = '7 ' WHERE id = 6", ""),
      ("UPDATE numbers SET n = 'seven' WHERE id = 6", "numbers id = 6: n: 7 → 'seven'"),
      ("UPDATE numbers SET label = 'LABEL 8' WHERE id = 8", "numbers id = 8: label: "),
      ("UPDATE numbers SET n = n + 7 WHERE id = 9", "numbers id = 9: n: 0 → 7"),
      ("DELETE FROM numbers WHERE id = 10", "numbers id = 10: in the other file only"),
    ] {
      let path = directory.file("kept.db")
      try? FileManager.default.removeItem(atPath: path)
      try TestDatabase.make(in: directory, "VACUUM INTO '\(path)'", statement)
      let lines = try verify(status: told == "" ? 0 : 1)
      #expect(lines[0].hasPrefix(told == "" ? "job: nothing" : told), "\(statement): \(lines)")
      if told != "" {
        #expect(lines.contains("job: 1 difference that the job does not declare"))
        #expect(lines.contains { $0.hasPrefix("  set as computed: ") }, "\(lines)")
      }
      try TestDatabase.make(
        in: directory,
        "ATTACH '\(path)' AS kept",
        "DELETE FROM numbers",
        "INSERT INTO numbers SELECT * FROM kept.numbers"
      )
    }
  }

  @Test func `verify finds deleted rows that are there and rows that are nowhere`() throws {
    try run(JobText.delete(where: "id > 1500"))
    #expect(try verify().last == "  deleted as declared: 500 rows")
    try TestDatabase.make(in: directory, "INSERT INTO numbers VALUES (1501, 0, 'label 1501')")
    #expect(
      try verify(status: 1) == [
        "numbers id = 1501: the run has deleted it, and it is there",
        "numbers: 1 row not as recorded", "job: 1 difference that the job does not declare",
        "  compared: 2,000 rows in 3 tables", "  selected: 500 rows",
        "  deleted as declared: 499 rows", "  not as recorded: 1 row",
      ]
    )
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id = 1501")
    try TestDatabase.make("before.db", in: directory, "DELETE FROM numbers WHERE id > 1998")
    let lost = "2 of the rows that were done are neither in the database nor in the copy"
    #expect(try verify(status: 1).first == lost)
  }

  @Test func `verify compares with a table that has the rows as they were`() throws {
    try TestDatabase.make(in: directory, "CREATE TABLE was AS SELECT * FROM numbers")
    try directory.write(JobText.update(["n": "id * 1.0"], where: "id % 2 = 0"), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    func verify() throws -> [String] {
      let result = try BatchProgram.run("verify", "job.json", "--against", "was", in: directory)
      #expect(result.errors.contains("only the rows of the job's table were compared"))
      return Self.lines(result)
    }
    #expect(
      try verify() == [
        "job: nothing differs but what the job declares", "  compared: 2,000 rows in 1 table",
        "  selected: 1,000 rows", "  set as computed: 1,000 rows in numbers.n",
      ]
    )
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET n = 1 WHERE id = 3",
      "UPDATE numbers SET n = 1 WHERE id = 4",
      "INSERT INTO numbers VALUES (0, 0, '')"
    )
    #expect(
      try verify().prefix(4) == [
        "numbers id = 0: in the database only", "numbers id = 3: n: 0 → 1",
        "numbers id = 4: n: 4 → 1", "numbers: 2 rows differ: n 2; 1 row more",
      ]
    )
    try Refusal.expect(
      ["verify", "job.json", "--against", "log"],
      in: directory,
      says: ["the table \"log\" does not have id"]
    )
  }

  @Test func `verify computes what one job left for the next`() throws {
    try run(JobText.update(["n": "id * 2", "label": "n"], where: "id % 2 = 0"))
    try directory.write(
      JobText.update(
        ["n": "n + 1", "label": "n || label"],
        where: "n > 100",
        adding: ["name": "next"]
      ),
      to: "next.json"
    )
    #expect(try BatchProgram.run("run", "next.json", in: directory).status == 0)
    #expect(try verify(status: 1).contains("numbers: 975 rows differ: n 975, label 975"))
    func both(_ arguments: String..., status: Int32 = 0) throws -> [String] {
      let command = ["verify", "job.json", "next.json", "--against", "before.db"]
      let result = try BatchProgram(command + arguments, in: directory).wait()
      #expect(result.status == status, "\(result.output) \(result.errors)")
      return Self.lines(result)
    }
    #expect(
      try both() == [
        "job, next: nothing differs but what the job declares",
        "  compared: 2,000 rows in 3 tables", "  selected: 1,975 rows",
        "  set as computed: 1,000 rows in numbers.n, numbers.label",
      ]
    )
    let runs = try ["job.json", "next.json"].map { name in
      let status = try BatchProgram.run("status", name, "--json", in: directory)
      return try #require(JSONOutput.object(status.output)["run"] as? String)
    }
    #expect(try both("--run", runs[0], "--run", runs[1]).count == 4)
    // In the other order, the second job would have found no row as it is.
    #expect(try both("--run", runs[1], "--run", runs[0], status: 1).count > 4)
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = '400' WHERE id = 200")
    #expect(try both(status: 1).first == "numbers id = 200: label: '4000' → '400'")
  }

  @Test func `verify names the values that cannot be computed again`() throws {
    let token: [String: Any] = ["type": "text", "secret": true]
    try TestDatabase.make(in: directory, "ALTER TABLE numbers ADD COLUMN at")
    let set = [
      "n": "(SELECT count(*) FROM log) + 1", "label": "hex(randomblob(4))", "at": "datetime('now')",
    ]
    try run(JobText.update(set, where: "id <= 10"))
    #expect(
      try verify().suffix(4) == [
        "  set: 10 rows", "  not checked: 10 rows in numbers.n: it reads log",
        "  not checked: 10 rows in numbers.label: it calls randomblob, which may give another value"
          + " each time",
        "  not checked: 10 rows in numbers.at: it reads the time: 'now'",
      ]
    )
    try FileManager.default.removeItem(atPath: directory.file("before.db"))
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("before.db"))'")
    let job = try JobText.update(["label": ":token"], adding: ["parameters": ["token": token]])
    try directory.write(job, to: "job.json")
    let given = ["--param", "token=abc"]
    #expect(try BatchProgram(["run", "job.json"] + given, in: directory).wait().status == 0)
    let command = ["verify", "job.json", "--against", "before.db"]
    try Refusal.expect(command, in: directory, says: ["token"])
    try Refusal.expect(command + ["--param", "tokn=abc"], in: directory, says: ["\"tokn\""])
    #expect(try verify(given[0], given[1]).last == "  set as computed: 2,000 rows in numbers.label")
  }

  @Test func `verify names columns added to a table since`() throws {
    try run(JobText.update())
    try TestDatabase.make(in: directory, "ALTER TABLE log ADD COLUMN vip")
    #expect(try verify(status: 1).first == "table log has other columns: vip added")
  }

  @Test func `verify checks an earlier run by its record`() throws {
    let job = try JobText.update(where: "n = 0 AND id <= 500")
    try run(job)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    let first = try #require(JSONOutput.object(status.output)["run"] as? String)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try verify(status: 1).contains("  selected: 0 rows"))
    let earlier = try verify("--run", String(first.prefix(8))).last
    #expect(earlier == "  set as computed: 500 rows in numbers.n")
    let command = ["verify", "job.json", "--against", "before.db", "--run", "XYZ"]
    try Refusal.expect(command, in: directory, says: ["there is no record of run \"XYZ\""])
  }
}
