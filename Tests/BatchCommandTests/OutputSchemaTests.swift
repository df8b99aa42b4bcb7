import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

#if PostgreSQL
import BatchPostgres
#endif

/// Holds what commands print with `--json`, and `output.schema.json`, together.
@Suite(.timeLimit(.minutes(5))) struct OutputSchemaTests {
  @Test func `the outputs and the output schema have equal keys`() throws {
    var outputs = Outputs(schema: try OutputSchema())
    try outputs.printPlans()
    try outputs.printApproval()
    try outputs.printRuns()
    try outputs.printAfterwards()
    try outputs.printIncrements()
    try outputs.printVerifications()
    try outputs.printRehearsals()
    #if PostgreSQL
    try outputs.printServerPlans()
    try outputs.printServerRuns()
    try outputs.printServerRehearsals()
    let isServed = true
    #else
    let isServed = false
    #endif
    let expected = outputs.schema.properties.filter { isServed || !$0.value }.keys
    let dead = Set(expected).subtracting(outputs.schema.seen)
    #expect(dead.sorted() == [], "no output has these")
  }

  @Test func `a key missing in the schema and a value of a wrong type are noticed`() throws {
    var schema = try OutputSchema()
    let text = #"{ "event": "message", "message": 1, "more": null }"#
    #expect(
      try schema.check(text, as: "event") == [
        "event.message is the number 1, and no [\"string\"]", "event.more is not in the schema",
      ]
    )
    #expect(try schema.check("{}", as: "history").contains("history has no runs"))
    #expect(!schema.seen.contains("#/$defs/history/properties/runs"))
  }
}

/// Commands whose outputs have all keys between them.
private struct Outputs {
  var schema: OutputSchema

  /// Checks what a command prints: one value, or lines.
  private mutating func check(
    _ arguments: [String],
    as name: String,
    in directory: TemporaryDirectory,
    status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try BatchProgram(arguments + ["--json"], in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.errors)", sourceLocation: location)
    try check(result.output, as: name, location)
  }

  private mutating func check(
    _ output: String,
    as name: String,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let texts = name == "event" ? output.split(separator: "\n").map(String.init) : [output]
    for text in texts {
      #expect(try schema.check(text, as: name) == [], "\(text)", sourceLocation: location)
    }
  }

  // MARK: SQLite

  mutating func printApproval() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(5, in: directory)
    try directory.write(JobText.update(adding: ["approval": ["by": 1]]), to: "job.json")
    try check(["run", "job.json"], as: "event", in: directory, status: 7)
    try check(["status", "job.json"], as: "status", in: directory)
  }

  mutating func printPlans() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(50, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE odd (id INTEGER PRIMARY KEY, bytes BLOB, label TEXT)",
      "INSERT INTO odd VALUES (1, x'00ff', CAST(x'ff' AS TEXT))",
      "CREATE TABLE many (label TEXT)",
      "WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000) INSERT INTO many SELECT i FROM c"
    )
    func write(_ job: String) throws { try directory.write(job, to: "job.json") }
    let plan = ["plan", "job.json"]
    let update: [String: Any] = ["type": "update", "set": ["n": "0"], "unchanged": "skip"]
    let source: [String: Any] = [
      "entity": "numbers", "recheck": "skip",
      "where": "id > 0 AND n >= (SELECT min(n) FROM numbers)",
    ]
    try write(
      JobText.update(
        adding: [
          "action": update, "source": source, "chunk": ["target": "50ms"],
          "throttle": ["identifiersPerSecond": 1],
        ]
      )
    )
    try check(plan, as: "plan", in: directory)
    try check(["run", "job.json", "--dry-run"], as: "plan", in: directory)
    try check(plan + ["--digest"], as: "plan", in: directory)
    try write(JobText.update(where: "random() IS NOT NULL"))
    try check(plan, as: "plan", in: directory)
    try write(
      JobText.update(
        adding: ["action": ["type": "delete", "archive": ["entity": "kept", "create": true]]]
      )
    )
    try check(plan, as: "plan", in: directory)
    for format in ["ndjson", "parquet"] {
      try write(JobText.export(to: "odd.\(format)", format: format, entity: "odd"))
      try check(plan, as: "plan", in: directory)
    }
    try directory.write("label\nx\n", to: "many.csv")
    try write(
      """
      { "version": 1, "name": "load", "database": { "path": "test.db" },
        "action": { "type": "load", "files": "many.csv", "format": "csv", "into": "many" } }
      """
    )
    try check(plan, as: "plan", in: directory)
    let query: [String: Any] = [
      "query": "SELECT label, count(*) AS c FROM many GROUP BY label", "key": ["label"],
    ]
    try write(JobText.export(to: "query.ndjson", adding: ["source": query]))
    try check(plan, as: "plan", in: directory)
    try BatchProgram.run("run", "job.json", in: directory)
    try write(JobText.update())
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(
      try BatchProgram.run("ids", "job.json", "--output", "all.ids", in: directory).status == 0
    )
    try write(
      JobText.update(
        adding: ["source": ["entity": "numbers", "identifiers": "all.ids"], "name": "other"]
      )
    )
    try check(plan, as: "plan", in: directory)
  }

  mutating func printRuns() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(60, in: directory)
    let base: [String: Any] = [
      "database": ["path": "test.db", "busyTimeout": "0ms"], "chunk": ["size": 10], "workers": 1,
      "checkpoint": ["interval": "1ms"], "undo": true, "retry": ["limit": 1_000, "backoff": "1ms"],
      "hooks": ["onStart": ["sh", "-c", "echo begun >&2"]],
      "parameters": ["step": ["type": "integer", "default": 1]],
    ]
    func write(_ more: [String: Any] = [:]) throws {
      let job = try JobText.update(
        ["n": "n + :step"],
        where: "id > 0",
        adding: base.merging(more) { $1 }
      )
      try directory.write(job, to: "job.json")
    }
    try write(["throttle": ["identifiersPerSecond": 0.001]])
    let held = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try held.wait(forEvent: "throttled")
    for request in [["pause", "job.json"], ["set", "job.json", "chunk.size=5"]] {
      #expect(try BatchProgram(request, in: directory).wait().status == 0)
    }
    try check(["status", "job.json"], as: "status", in: directory)
    held.send(SIGTERM)
    try check(held.wait().output, as: "event")
    let run = ["run", "job.json"]
    try write()
    try check(run + ["--fresh"], as: "event", in: directory)
    try check(["status", "job.json"], as: "status", in: directory)

    // More actions of a kind than are kept.
    let paced: [String: Any] = ["identifiersPerSecond": 0.001]
    try write(["throttle": paced, "limits": ["runtime": "1ms"]])
    for _ in 0..<22 {
      #expect(try BatchProgram.run("run", "job.json", in: directory).status == 3)
    }
    try check(["status", "job.json"], as: "status", in: directory)
    try write()
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)

    // Another connection has the database locked once a run is held.
    try write(["throttle": ["identifiersPerSecond": 0.001]])
    let locked = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try locked.wait(forEvent: "throttled")
    let connection = try Connection(path: path, options: .init(busyTimeout: .seconds(60)))
    try connection.execute("BEGIN IMMEDIATE")
    try BatchProgram.run("set", "job.json", "throttle.identifiersPerSecond=none", in: directory)
    while let line = locked.nextLine() {
      try check(line, as: "event")
      if line.contains(#""event":"retrying""#) { break }
    }
    try connection.execute("COMMIT")
    try check(locked.wait().output, as: "event")
    let failing = base.merging(["name": "failing", "skip": ["limit": 5]]) { $1 }
    let job = try JobText.update(["n": "nullif(n, n)"], where: "id = 9", adding: failing)
    try directory.write(job, to: "failing.json")
    try check(["run", "failing.json"], as: "event", in: directory, status: 4)
    try check(["retry-failed", "failing.json"], as: "event", in: directory, status: 4)
    try write()
    #expect(try BatchProgram.run("undo", "job.json", in: directory).status == 0)
    try check(["history", "job.json"], as: "history", in: directory)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    let last = try #require(try JSONOutput.object(status)["run"] as? String)
    try check(["status", "job.json", "--run", last], as: "recordedRun", in: directory)
  }

  mutating func printAfterwards() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(50, in: directory)
    try TestDatabase.make(in: directory, "PRAGMA journal_mode = wal")
    let reader = try Connection(path: path)
    for kept in [40, 30] {
      try directory.write(
        JobText.delete(where: "id > \(kept)", adding: ["afterwards": "vacuum"]),
        to: "job.json"
      )
      try check(["plan", "job.json"], as: "plan", in: directory)
      // A reader keeps the log, from which the file would shrink.
      if kept == 40 {
        try reader.execute("BEGIN")
        _ = try reader.value("SELECT count(*) FROM numbers")
      }
      try check(["run", "job.json"], as: "event", in: directory)
      if kept == 40 { try reader.execute("COMMIT") }
    }
  }

  mutating func printIncrements() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(5, in: directory)
    let source: [String: Any] = ["entity": "numbers", "since": ["column": "id"]]
    let folder: [String: Any] = ["type": "export", "folder": "out-{runID}", "format": "ndjson"]
    let job = try JobText.export(to: "", adding: ["source": source, "action": folder])
    try directory.write(job, to: "job.json")
    for _ in 0..<2 {
      try check(["plan", "job.json"], as: "plan", in: directory)
      try check(["run", "job.json"], as: "event", in: directory)
    }
    try check(["status", "job.json"], as: "status", in: directory)
    try check(["history", "job.json"], as: "history", in: directory)
  }

  mutating func printVerifications() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(50, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE loose (rowid, _rowid_, oid)",
      "VACUUM INTO '\(directory.file("before.db"))'"
    )
    try directory.write(
      JobText.update(
        ["n": "7", "label": "hex(randomblob(4))"],
        adding: ["undo": ["keep": "1d"]]
      ),
      to: "job.json"
    )
    for _ in 0..<2 {
      #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    }
    try check(["verify", "job.json"], as: "verify", in: directory)
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET n = 8 WHERE id = 2",
      "CREATE INDEX more ON numbers (n)"
    )
    let against = ["verify", "job.json", "--against", "before.db"]
    try check(against, as: "verify", in: directory, status: 1)
  }

  mutating func printRehearsals() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(50, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE log (what TEXT)",
      "CREATE TRIGGER logged AFTER UPDATE ON numbers BEGIN INSERT INTO log VALUES ('was'); END",
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 5
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """
    )
    try directory.write(JobText.update(adding: ["skip": ["limit": 9]]), to: "job.json")
    try check(["rehearse", "job.json", "--keep"], as: "rehearse", in: directory, status: 4)
    try directory.write(JobText.delete(where: "id > 9"), to: "job.json")
    try check(["rehearse", "job.json"], as: "rehearse", in: directory)
  }

  #if PostgreSQL
  // MARK: PostgreSQL

  mutating func printServerRehearsals() throws {
    let job = try SharedJob(
      rows: 500,
      """
      CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER pass BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION pass();
      """
    )
    try check(["rehearse", "job.json"], as: "rehearse", in: job.directory)
  }

  mutating func printServerPlans() throws {
    let job = try SharedJob(rows: 60, "CREATE TABLE u (id int PRIMARY KEY, b bytea, t timestamp)")
    let plan = ["plan", "job.json"]
    try check(plan, as: "plan", in: job.directory)
    try job.database.run("INSERT INTO u VALUES (1, '\\xff00', now())")
    for action in [
      ["type": "delete", "archive": ["entity": "kept", "create": true]],
      ["type": "export", "file": "u.ndjson", "format": "ndjson"],
      ["type": "export", "folder": "u", "format": "csv"],
      ["type": "transform", "columns": ["b"], "writes": ["b"], "command": ["cat"]],
    ] as [[String: Any]] {
      try job.writeJob(["source": ["entity": "u", "everything": true], "action": action])
      try check(plan, as: "plan", in: job.directory)
    }
  }

  mutating func printServerRuns() throws {
    let job = try SharedJob(rows: 500, "ALTER TABLE t ADD CHECK (id <> 500 OR n = 0)")
    let status = ["status", "job.json"]
    try check(["run", "job.json"], as: "event", in: job.directory, status: 1)
    try check(status, as: "status", in: job.directory)
    try job.database.run("ALTER TABLE t DROP CONSTRAINT t_check; TRUNCATE _batch_run CASCADE")
    try job.writeJob(["throttle": ["identifiersPerSecond": 50], "chunk": ["size": 5]])
    let held = try job.start()
    try job.wait(until: "(SELECT max(rate) FROM _batch_host) > 0")
    try check(status, as: "status", in: job.directory)
    let other = try job.database.session()
    try other.run("BEGIN; SELECT FROM t FOR UPDATE")
    try job.wait(until: "(SELECT max(waiting) FROM _batch_host) IS NOT NULL")
    try check(status, as: "status", in: job.directory)
    try other.run("ROLLBACK")
    try job.batch("pause", "job.json")
    try job.wait(until: "(SELECT max(hold) FROM _batch_host) IS NOT NULL")
    try check(status, as: "status", in: job.directory)
    held.send(SIGTERM)
    try check(held.wait().output, as: "event")
    try check(["history", "job.json"], as: "history", in: job.directory)
  }
  #endif
}
