import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct UndoTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Tables with every kind of key, and values of every kind.
  private static let schema = [
    "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER, price REAL, label TEXT, data)",
    "CREATE TABLE named (name TEXT PRIMARY KEY, n INTEGER, price REAL, label TEXT, data)",
    """
    CREATE TABLE pairs (a INTEGER, b TEXT, n INTEGER, price REAL, label TEXT, data,
      PRIMARY KEY (b, a)) WITHOUT ROWID
    """,
  ]

  private static func fill(_ table: String, _ columns: String) -> String {
    """
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 900)
    INSERT INTO \(table) (\(columns), n, price, label, data)
    SELECT \(table == "items" ? "i + i / 7" : table == "named" ? "'k' || i" : "i % 30, 'b' || (i / 30)"),
      nullif(i % 50, 3), round(i * 1.37, 2), CASE i % 4 WHEN 0 THEN NULL ELSE 'label ' || i END,
      CASE i % 5 WHEN 0 THEN x'00ff' WHEN 1 THEN i * 1e10 WHEN 2 THEN '' WHEN 3 THEN -i END
    FROM c
    """
  }

  @discardableResult
  private func makeTables() throws -> String {
    let path = try TestDatabase.make(in: directory)
    let connection = try Connection(path: path)
    for statement in Self.schema { try connection.execute(statement) }
    try connection.execute(Self.fill("items", "id"))
    try connection.execute(Self.fill("named", "name"))
    try connection.execute(Self.fill("pairs", "a, b"))
    return path
  }

  /// Has another connection do something, and be gone.
  private func execute(_ sql: String) throws {
    try Connection(path: directory.file("test.db")).execute(sql)
  }

  private static let selections = [
    "items": "SELECT * FROM items ORDER BY id",
    "named": "SELECT name, n, price, label, data FROM named ORDER BY name",
    "pairs": "SELECT * FROM pairs ORDER BY b, a",
  ]

  /// Gives a command until it ends, killed at random moments.
  private func complete(
    _ arguments: [String],
    kills: Int,
    _ generator: inout SeededGenerator
  ) throws -> BatchProgram.Result {
    for _ in 0..<kills {
      let program = try BatchProgram(arguments, in: directory)
      let moment = Double.random(in: 0.01...0.12, using: &generator)
      _ = program.send(SIGKILL, afterSeconds: moment)
      let result = program.wait()
      if result.status != -SIGKILL { return result }
    }
    return try BatchProgram(arguments, in: directory).wait()
  }

  @Test(
    arguments: ["items", "named", "pairs"],
    ["update", "delete"]
  )
  func `an undo restores every row that nobody has changed since`(
    table: String,
    action: String
  ) throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let path = try makeTables()
    let selection = try #require(Self.selections[table])
    let before = try TestDatabase.rows(path, selection)
    let more: [String: Any] = ["undo": true, "chunk": ["size": 37], "retry": ["limit": 30]]
    let set = ["n": "n + 1", "label": "upper(label)", "data": "id_of", "price": "price * 1.1"]
    try directory.write(
      action == "update"
        ? JobText.update(
          set.mapValues { $0 == "id_of" ? "typeof(data) || data" : $0 },
          where: "n IS NULL OR n < 40",
          entity: table,
          adding: more
        ) : JobText.delete(where: "n IS NULL OR n < 40", entity: table, adding: more),
      to: "job.json"
    )
    // With an ID, a command that was killed after its end starts no second run.
    let command = ["run", "job.json", "--quiet", "--run-id", "once"]
    let run = try complete(command, kills: 3, &generator)
    #expect(run.status == 0, "seed \(seed): \(run.errors)")
    #expect(try TestDatabase.rows(path, selection) != before)

    // Somebody else changes one row that the run has written, or inserts one that it has deleted.
    let key = table == "items" ? "id = 1" : table == "named" ? "name = 'k1'" : "a = 1 AND b = 'b0'"
    let writer = try Connection(path: path)
    if action == "update" {
      try writer.execute("UPDATE \(table) SET n = 777 WHERE \(key)")
    } else {
      let names = table == "items" ? "id" : table == "named" ? "name" : "a, b"
      let values = table == "items" ? "1" : table == "named" ? "'k1'" : "1, 'b0'"
      try writer.execute("INSERT INTO \(table) (\(names), n) VALUES (\(values), 777)")
    }
    let plan = try BatchProgram.run("undo", "job.json", "--plan", "--json", in: directory)
    let foreseen = try #require(JSONOutput.object(plan.output)["outcomes"] as? [String: Int])
    let undo = try complete(["undo", "job.json", "--quiet"], kills: 3, &generator)
    #expect(undo.status == 4, "seed \(seed): \(undo.errors)")
    let status = try BatchProgram.run("status", "job.undo", "--json", in: directory)
    let outcomes = try #require(JSONOutput.object(status.output)["outcomes"] as? [String: Int])
    // Killed after its last write, the undo is given once more, and finds its rows undone.
    var again = foreseen
    again["unchanged"] = foreseen["succeeded"]
    again["succeeded"] = 0
    #expect(outcomes == foreseen || outcomes == again, "seed \(seed)")
    #expect(foreseen["failed"] == 1)
    let rest = "\(selection.replacingOccurrences(of: "ORDER", with: "WHERE NOT (\(key)) ORDER"))"
    let others = try TestDatabase.rows(path, rest)
    let place = try #require(
      TestDatabase.rows(path, selection).firstIndex { $0.contains(.integer(777)) }
    )
    var expected = before
    expected.remove(at: place)
    #expect(others == expected, "seed \(seed)")
    #expect(
      try TestDatabase.value(path, "SELECT n FROM \(table) WHERE \(key)") == .integer(777)
    )

    // All the same, if that is wanted; what was undone already stays.
    let all = try BatchProgram.run("undo", "job.json", "--overwrite", in: directory)
    #expect(all.status == 0, "\(all.errors)")
    #expect(try TestDatabase.rows(path, selection) == before, "seed \(seed)")
  }

  @Test func `an undo of another job file's run needs that run's name`() throws {
    let path = try makeTables()
    try FileManager.default.createDirectory(
      atPath: directory.file("other"),
      withIntermediateDirectories: false
    )
    let undo: [String: Any] = ["undo": true]
    try directory.write(JobText.update(["n": "-1"], entity: "items", adding: undo), to: "job.json")
    var other = undo
    other["database"] = ["path": "../test.db"]
    try directory.write(
      JobText.update(["n": "-2"], entity: "items", adding: other),
      to: "other/job.json"
    )
    let before = try TestDatabase.rows(path, "SELECT * FROM items")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let first = try TestDatabase.rows(path, "SELECT * FROM items")
    #expect(try BatchProgram.run("run", "other/job.json", in: directory).status == 0)
    let refused = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(refused.status == 2)
    #expect(
      refused.errors.contains("was not run by this job file") && refused.errors.contains("--run"),
      "\(refused.errors)"
    )
    #expect(try TestDatabase.value(path, "SELECT min(n) FROM items") == .integer(-2))
    #expect(try BatchProgram.run("undo", "other/job.json", in: directory).status == 0)
    #expect(try TestDatabase.rows(path, "SELECT * FROM items") == first)
    let run =
      try JSONOutput.object(
        BatchProgram.run("status", "job.json", "--json", in: directory).output
      )["run"] as? String
    #expect(
      try BatchProgram.run("undo", "job.json", "--run", #require(run), in: directory).status == 0
    )
    #expect(try TestDatabase.rows(path, "SELECT * FROM items") == before)
  }

  @Test func `an undo can be limited to some rows and to a named run`() throws {
    let path = try makeTables()
    try directory.write(
      JobText.update(["n": "-1"], entity: "items", adding: ["undo": ["keep": "1d"]]),
      to: "job.json"
    )
    let before = try TestDatabase.rows(path, "SELECT id, n FROM items ORDER BY id")
    let first = try BatchProgram.run("run", "job.json", "--json", in: directory)
    let run = try #require(first.output.firstMatch(of: /"run":"([^"]+)"/)?.1)
    try directory.write(
      JobText.update(["n": "1"], entity: "items", adding: ["undo": ["keep": "1d"]]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try directory.write("1\n3\n5\n", to: "some.txt")
    let made = try BatchProgram.run(
      "ids",
      "from",
      "some.txt",
      "--database",
      "test.db",
      "--entity",
      "items",
      "--output",
      "some.ids",
      in: directory
    )
    #expect(made.status == 0, "\(made.errors)")
    let some = try BatchProgram.run("undo", "job.json", "--ids", "some.ids", in: directory)
    #expect(some.status == 0, "\(some.errors)")
    #expect(
      try TestDatabase.texts(path, "SELECT n FROM items WHERE id IN (1, 3, 5)") == [
        "-1", "-1", "-1",
      ]
    )
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM items WHERE n = 1") == .integer(897))
    // The one before: those that the second run has changed since are somebody else's now.
    let named = try BatchProgram.run(
      "undo",
      "job.json",
      "--run",
      String(run),
      "--overwrite",
      in: directory
    )
    #expect(named.status == 0, "\(named.errors)")
    #expect(try TestDatabase.rows(path, "SELECT id, n FROM items ORDER BY id") == before)
  }

  @Test func `the error of an impossible undo gives the reason`() throws {
    let path = try makeTables()
    try directory.write(JobText.update(["n": "0"], entity: "items"), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    // Users of the command have no use for the words of the library.
    try Refusal.expect(
      ["undo", "job.json"],
      in: directory,
      says: ["can be undone; give the job \"undo\": true before it runs\n"]
    )
    try directory.write(
      JobText.update(["n": "5"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try Refusal.expect(
      ["undo", "job.json", "--run", "no-such"],
      in: directory,
      says: ["no record", "no-such"]
    )
    try execute("UPDATE _batch_undo SET bytes = x'01' || bytes")
    let damaged = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(damaged.status == 2 && damaged.errors.contains("_batch_undo"), "\(damaged.errors)")
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM items WHERE n = 5") == .integer(900))
    try execute("ALTER TABLE items DROP COLUMN n")
    try Refusal.expect(["undo", "job.json"], in: directory, says: ["has changed", "column n"])
  }

  @Test func `undo records are removed when they are no longer to be kept`() throws {
    let path = try makeTables()
    try directory.write(
      JobText.update(["n": "0"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM _batch_undo") == .integer(1))
    try execute("UPDATE _batch_undo_run SET kept_until = '2020-01-01T00:00:00Z'")
    #expect(try BatchProgram.run("cleanup", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM _batch_undo") == .integer(0))
    try Refusal.expect(["undo", "job.json"], in: directory, says: ["can be undone"])
  }

  @Test func `a resumed undo restores exactly the rows that it began with`() throws {
    let path = try makeTables()
    let first = "SELECT * FROM items WHERE id <= 200 ORDER BY id"
    let before = try TestDatabase.rows(path, first)
    try directory.write(
      JobText.update(["n": "n + 1"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    for (name, range) in [("a", 1...200), ("b", 301...500)] {
      try directory.write(range.map(String.init).joined(separator: "\n"), to: "\(name).txt")
      let made = try BatchProgram.run(
        "ids",
        "from",
        "\(name).txt",
        "--database",
        "test.db",
        "--entity",
        "items",
        "--output",
        "\(name).ids",
        in: directory
      )
      #expect(made.status == 0, "\(made.errors)")
    }
    // Half of it: the job's limit of time is long over when the first chunk is done.
    try directory.write(
      JobText.update(
        ["n": "n + 1"],
        entity: "items",
        adding: ["undo": true, "limits": ["runtime": "1ms"], "chunk": ["size": 10]]
      ),
      to: "job.json"
    )
    let half = try BatchProgram.run("undo", "job.json", "--ids", "a.ids", in: directory)
    #expect(half.status == 3, "\(half.errors)")
    try Refusal.expect(
      ["undo", "job.json", "--ids", "b.ids"],
      in: directory,
      says: ["finish it first: batch undo job.json"]
    )
    // Nobody begins a run in between, unless it is wanted.
    try Refusal.expect(["run", "job.json"], in: directory, says: ["being undone", "batch undo"])
    for _ in 0..<30 {
      let more = try BatchProgram.run("undo", "job.json", "--ids", "a.ids", in: directory)
      if more.status == 0 { break }
      #expect(more.status == 3, "\(more.errors)")
    }
    #expect(try TestDatabase.rows(path, Self.selections["items"] ?? "").count == 900)
    #expect(try TestDatabase.rows(path, first) == before)
  }

  @Test func `an undo restores rows in reverse order`() throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE places (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 100)
      INSERT INTO places SELECT i, i FROM c
      """,
      "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 100)
      INSERT INTO tree SELECT i, nullif(i - 1, 0) FROM c
      """
    )
    let keys: [String: Any] = [
      "undo": true, "chunk": ["size": 7], "workers": 1,
      // One at a time, and so in the order of the list.
      "throttle": ["identifiersPerSecond": 1_000_000],
      "database": ["path": "test.db", "foreignKeys": true],
    ]
    for (table, job) in [
      ("places", try JobText.update(["n": "n - 1"], entity: "places", adding: keys)),
      (
        "tree",
        try JobText.delete(
          entity: "tree",
          adding: keys.merging([
            "source": ["entity": "tree", "everything": true, "orderBy": ["-id"]]
          ]) { $1 }
        )
      ),
    ] {
      let before = try TestDatabase.rows(path, "SELECT * FROM \(table) ORDER BY id")
      try directory.write(job, to: "\(table).json")
      let run = try BatchProgram.run("run", "\(table).json", in: directory)
      #expect(run.status == 0, "\(run.errors)")
      #expect(try TestDatabase.rows(path, "SELECT * FROM \(table) ORDER BY id") != before)
      let undo = try BatchProgram.run("undo", "\(table).json", in: directory)
      #expect(undo.status == 0, "\(undo.errors) \(undo.output)")
      #expect(try TestDatabase.rows(path, "SELECT * FROM \(table) ORDER BY id") == before)
    }
  }

  @Test func `an undo replaces no other row and restores invalid text byte for byte`() throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE mails (id INTEGER PRIMARY KEY, mail TEXT UNIQUE ON CONFLICT REPLACE, n)",
      "INSERT INTO mails VALUES (1, 'a', 1), (2, 'b', 2), (3, CAST(x'ff00fe' AS TEXT), 30)"
    )
    let keys = ["undo": true]
    try directory.write(
      JobText.update(
        ["mail": "'x' || id", "n": "max(n, 30)"],
        where: "id < 3",
        entity: "mails",
        adding: keys
      ),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try execute("INSERT INTO mails VALUES (9, 'b', 9)")
    #expect(try BatchProgram.run("undo", "job.json", in: directory).status == 4)
    #expect(
      try TestDatabase.texts(path, "SELECT mail FROM mails WHERE id <> 3 ORDER BY id")
        == ["a", "x2", "b"]
    )
    let reasons = try BatchProgram.run(
      "ids",
      "job.undo",
      "--outcome",
      "failed",
      "--reasons",
      in: directory
    )
    #expect(reasons.output.contains("2,constraint,"), "\(reasons.output) \(reasons.errors)")

    // What is no UTF-8 comes back byte for byte.
    try directory.write(
      JobText.delete(where: "id = 3", entity: "mails", adding: keys),
      to: "delete.json"
    )
    let bytes = "SELECT hex(CAST(mail AS BLOB)) FROM mails WHERE id = 3"
    #expect(try BatchProgram.run("run", "delete.json", "--fresh", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, bytes) == [])
    let undo = try BatchProgram.run("undo", "delete.json", in: directory)
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try TestDatabase.texts(path, bytes) == ["FF00FE"])
  }

  @Test func `the size of undo records is shown, and a plan of an undo writes nothing`() throws {
    let path = try makeTables()
    for n in 1...2 {
      try directory.write(
        JobText.update(["n": "\(-n)"], where: "id < 100", entity: "items", adding: ["undo": true]),
        to: "job.json"
      )
      #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    }
    #expect(try BatchProgram.run("verify", "job.json", in: directory).status == 0)
    try execute("UPDATE items SET n = 5 WHERE id = 8")
    try execute("DELETE FROM items WHERE id = 9")
    let before = try directory.contents()
    let plan = try BatchProgram.run("undo", "job.json", "--plan", in: directory)
    #expect(plan.status == 0, "\(plan.errors)")
    let rows = try TestDatabase.value(path, "SELECT count(*) FROM items WHERE id < 100 AND n = -2")
    #expect(rows == .integer(85))
    let verification = try BatchProgram.run("verify", "job.json", in: directory)
    #expect(
      verification.status == 1 && verification.output.contains("as the run left them: 85")
    )
    let others = try BatchProgram.run("verify", "job.json", "--json", "--limit", "0", in: directory)
    #expect(try JSONOutput.object(others.output)["isAsDeclared"] as? Bool == false)
    for part in [
      "record    87 rows, ", "undone    85 rows", "gone      1 row", "changed   1 row",
      "identifier 8: somebody has changed the row since: \"n\" is 5, the run had set -2, and",
      "can be undone with --run",
    ] { #expect(plan.output.contains(part), "\(part): \(plan.output)") }
    #expect(try directory.changes(since: before) == [])

    let bytes = try TestDatabase.texts(
      path,
      "SELECT sum(length(bytes)) FROM _batch_undo GROUP BY run ORDER BY max(number) DESC"
    )
    let cleanup = try BatchProgram.run("cleanup", "job.json", in: directory)
    for size in bytes { #expect(cleanup.output.contains(" 87 rows, \(size) bytes, until 20")) }
    let inspection = try BatchProgram.run("inspect", "job.batch", "--json", in: directory)
    let undo = try JSONOutput.object(inspection.output)["undo"] as? [String: Any]
    #expect(undo?["bytes"] as? Int == bytes.first.flatMap { Int($0) })
  }

  @Test func `undo records of an earlier version are refused and kept`() throws {
    let path = try makeTables()
    try directory.write(
      JobText.update(["n": "-1"], entity: "items", adding: ["undo": true]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    for column in ["kind", "store", "types", "seal", "recorded"] {
      try execute("ALTER TABLE _batch_undo_run DROP COLUMN \(column)")
    }
    let tables = ["items ORDER BY id", "_batch_undo ORDER BY number"]
    let after = try tables.map { try TestDatabase.rows(path, "SELECT * FROM \($0)") }
    for arguments in [["undo", "job.json"], ["run", "job.json"]] {
      let says = ["an earlier version of batch has made the table _batch_undo_run"]
      try Refusal.expect(arguments, in: directory, says: says)
    }
    #expect(try tables.map { try TestDatabase.rows(path, "SELECT * FROM \($0)") } == after)
  }

  @Test func `a run of no rows does not hide the undoable run before it`() throws {
    let path = try makeTables()
    for (n, condition) in [("0", "id < 100"), ("1", "id < 0")] {
      try directory.write(
        JobText.update(["n": n], where: condition, entity: "items", adding: ["undo": true]),
        to: "job.json"
      )
      #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    }
    let plan = try BatchProgram.run("undo", "job.json", "--plan", in: directory)
    #expect(plan.output.contains("undone    ") && !plan.output.contains("--run"), "\(plan.output)")
    let before = try TestDatabase.value(path, "SELECT count(*) FROM items WHERE n = 0")
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 0 && undo.errors.contains("undoing run"), "\(undo.errors)")
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM items WHERE n = 0") != before)
  }

  @Test func `large rows are recorded and restored in bounded memory`() throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 12)
      INSERT INTO files SELECT i, randomblob(5000000) FROM c
      """
    )
    let sum = "SELECT group_concat(hex(substr(data, 1, 50)) || length(data)) FROM files"
    let before = try TestDatabase.value(path, sum)
    for action in [
      try JobText.update(["data": "x'00' || data"], entity: "files", adding: ["undo": true]),
      try JobText.delete(where: "id > 0", entity: "files", adding: ["undo": true]),
    ] {
      try directory.write(action, to: "job.json")
      for command in ["run", "undo"] {
        let result = try BatchProgram.run(command, "job.json", "--json", in: directory)
        #expect(result.status == 0, "\(result.errors)")
        let peaks = result.output.matches(of: /"peakResidentBytes":(\d+)/).compactMap { Int($0.1) }
        #expect((peaks.max() ?? 0) < 200_000_000)
      }
      #expect(try TestDatabase.value(path, sum) == before)
    }
  }

  @Test func `the undo of a delete reports the rows remaining in other tables`() throws {
    let path = try makeTables()
    try execute("CREATE TABLE kept AS SELECT * FROM items WHERE 0")
    try execute("CREATE UNIQUE INDEX kept_id ON kept (id)")
    try execute("CREATE TABLE notes (item REFERENCES items ON DELETE CASCADE)")
    let more: [String: Any] = [
      "undo": true, "database": ["path": "test.db", "foreignKeys": true],
    ]
    try directory.write(
      JobText.delete(archive: "kept", where: "id <= 20", entity: "items", adding: more),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let count = try TestDatabase.texts(path, "SELECT count(*) FROM kept")[0]
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 0)
    let copies = "not undone: \(count) copies in \"kept\"; this removes them: "
    let line = try #require(undo.errors.split(separator: "\n").first { $0.contains(copies) })
    let deletion = try #require(line.firstRange(of: copies).map { String(line[$0.upperBound...]) })
    #expect(undo.errors.contains("not undone: what the run may have written in \"notes\""))

    let status = try BatchProgram.run("status", "job.json", in: directory)
    #expect(status.output.contains("undone by "), "\(status.output)")
    let history = try BatchProgram.run("history", "job.json", in: directory)
    #expect(history.output.contains(" undone "), "\(history.output)")
    let plan = try BatchProgram.run("undo", "job.json", "--plan", in: directory)
    #expect(plan.output.contains("; undone by "), "\(plan.output)")

    let again = try BatchProgram.run("run", "job.json", in: directory)
    #expect(again.status == 1)
    let reason = "\"kept\" already has a row with this key; compare it with the row in \"items\""
    #expect(again.errors.contains(reason), "\(again.errors)")
    try execute(deletion)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test func `plan and status report an unfinished undo`() throws {
    try makeTables()
    let more: [String: Any] = ["undo": true]
    try directory.write(JobText.update(["n": "-1"], entity: "items", adding: more), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    // The pace holds the undo after its first chunk, for hours.
    let held: [String: Any] = [
      "undo": true, "chunk": ["size": 10], "throttle": ["identifiersPerSecond": 0.001],
    ]
    try directory.write(JobText.update(["n": "-1"], entity: "items", adding: held), to: "job.json")
    let undo = try BatchProgram(["undo", "job.json", "--json"], in: directory)
    try undo.wait(forEvent: "throttled")
    undo.send(SIGKILL)
    #expect(undo.wait().status == -SIGKILL)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["next"] as? String == "refuse")
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(plan.output.contains("batch run refuses: "), "\(plan.output)")
    #expect(plan.output.contains("a run of the job is being undone"))
  }

  @Test func `an undo counts the identifiers that are not of its run`() throws {
    try makeTables()
    let more: [String: Any] = ["undo": true]
    for (condition, name) in [("id > 500", "others"), ("id <= 500", "job")] {
      try directory.write(
        JobText.update(["n": "-1"], where: condition, entity: "items", adding: more),
        to: "\(name).json"
      )
      #expect(try BatchProgram.run("run", "\(name).json", "--fresh", in: directory).status == 0)
    }
    let sources = ["others.json", "job.json"]
    let union = ["ids", "union"] + sources + ["--output", "all.ids"]
    #expect(try BatchProgram(union, in: directory).wait().status == 0)
    let strangers = try BatchProgram.run("ids", "others.json", "--count", in: directory).output
      .trimmingCharacters(in: .whitespacesAndNewlines)
    for last in [["--plan"], []] {
      let undo = try BatchProgram(["undo", "job.json", "--ids", "all.ids"] + last, in: directory)
        .wait()
      let message = "\(strangers) of the given identifiers are not of this run"
      #expect(undo.errors.contains(message), "\(undo.errors)")
    }
  }
}
