#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// The commands on a PostgreSQL job, as a user runs them.
@Suite(.timeLimit(.minutes(5))) struct PostgresCommandTests {
  @Test func `validate and plan only read`() throws {
    let job = try SharedJob(
      rows: 1_000,
      """
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER note BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
      """
    )
    let valid = try job.batch("validate", "job.json")
    #expect(valid.output == "job: valid (update of t)\n", "\(valid.errors)")
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(plan["matches"] as? Int == 1_000)
    #expect(plan["chunks"] as? Int == 10)
    #expect(plan["next"] as? String == "begin")
    #expect((plan["triggers"] as? [String])?.first?.hasPrefix("note, each row") == true)
    let sample = try #require((plan["sample"] as? [[String: Any]])?.first)
    #expect(sample["before"] as? [String: Int] == ["n": 0])
    #expect(sample["after"] as? [String: Int] == ["n": 1])
    let text = try job.batch("plan", "job.json").output
    #expect(text.contains("\n  * 1    n       0       1\n"), "\(text)")
    #expect(try job.counts() == ["0 x 1000"])
    #expect(try job.database.text("SELECT 1 FROM pg_class WHERE relname LIKE '\\_batch%'") == nil)
  }

  @Test func `a plan estimates time from trial chunks that leave no trace and wait for no lock`()
    throws
  {
    let job = try SharedJob(rows: 2_000)
    func plan() throws -> [String: Any] {
      try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    }
    let free = try plan()
    let keys = ["leastSeconds", "estimatedSeconds", "mostSeconds"]
    let times = keys.compactMap { free[$0] as? Double }
    #expect(times.count == 3 && times == times.sorted() && times[0] > 0, "\(times)")
    #expect(try job.batch("plan", "job.json").output.contains("\ntime      about "))
    #expect(try job.counts() == ["0 x 2000"])
    let other = try job.database.session()
    try other.begin(.init())
    try other.execute("UPDATE t SET n = 5 WHERE id = 1")
    #expect(try plan()["estimatedSeconds"] == nil)
    other.rollBack()
    let paced: [String: Any] = ["throttle": ["identifiersPerSecond": 1]]
    try job.writeJob(
      paced.merging(["source": ["entity": "t", "everything": true, "limit": 3]]) { $1 }
    )
    let few = try plan()
    #expect(few["estimatedSeconds"] as? Int == 3)
    #expect(few["pace"] as? String == "throttle.identifiersPerSecond")
    #expect((few["sample"] as? [Any])?.count == 3)
    // What a trigger does need not be undone by a rollback.
    try job.database.run(
      """
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER note BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
      """
    )
    try job.writeJob()
    #expect(try plan()["estimatedSeconds"] == nil)
  }

  @Test func `a run deletes rows into an archive and reports it`() throws {
    let job = try SharedJob(rows: 1_000, "CREATE TABLE gone (id bigint, n int);")
    try job.directory.write(
      JobText.delete(
        archive: "gone",
        where: "id % 4 = 0",
        entity: "t",
        adding: ["database": ["url": job.url()]]
      ),
      to: "job.json"
    )
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try result.last
    #expect(last["total"] as? Int == 250)
    #expect((last["outcomes"] as? [String: Any])?["succeeded"] as? Int == 250)
    #expect(try job.database.text("SELECT count(*) FROM t") == "750")
    #expect(try job.database.text("SELECT count(DISTINCT id) FROM gone") == "250")
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(status["state"] as? String == "completed")
    #expect(status["spansDone"] as? Int == status["spans"] as? Int)
    #expect(try job.batch("ids", "job.json", "--count").output == "250\n")
    #expect(try job.batch("ids", "job.json", "--outcome", "succeeded").output.hasPrefix("4\n8\n"))
  }

  @Test func `hosts that start simultaneously create the archive once`() throws {
    let job = try SharedJob(rows: 10_000, "ALTER TABLE t ADD email text UNIQUE CHECK (n = 0)")
    let action: [String: Any] = ["type": "delete", "archive": ["entity": "kept", "create": true]]
    func write(_ name: String, _ condition: String) throws {
      try job.writeJob([
        "name": name, "action": action, "source": ["entity": "t", "where": condition],
      ])
    }
    try write("odd", "id % 2 = 1")
    let valid = try job.batch("validate", "job.json")
    #expect(valid.status == 0, "\(valid.errors)")
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    let statement = "CREATE TABLE \"public\".\"kept\" (LIKE \"public\".\"t\", PRIMARY KEY (\"id\"))"
    #expect((plan["sql"] as? [String: Any])?["create"] as? String == statement)
    #expect(try job.batch("plan", "job.json").output.contains("create    CREATE TABLE"))
    #expect(try job.database.text("SELECT to_regclass('kept')") == nil)
    // Hosts of one run, and of another run with the same archive.
    let text = try job.directory.read("job.json")
    var programs = try (0..<3).map { _ in try job.start() }
    try job.directory.write(
      String(decoding: text, as: UTF8.self).replacing("odd", with: "even")
        .replacing("% 2 = 1", with: "% 2 = 0"),
      to: "even.json"
    )
    programs += try (0..<3).map { _ in
      try BatchProgram(["run", "even.json", "--json", "--run-id", "x"], in: job.directory)
    }
    for program in programs {
      let result = program.wait()
      #expect(result.status == 0, "\(result.errors)")
    }
    #expect(try job.database.text("SELECT count(*) FROM t") == "0")
    #expect(try job.database.text("SELECT count(*) FROM kept") == "10000")
    let constraints =
      "SELECT string_agg(contype::text, '') FROM pg_constraint WHERE conrelid = 'kept'::regclass AND contype <> 'n'"
    #expect(try job.database.text(constraints) == "p")
  }

  @Test func `an archive is created in the schema that it names if the role may`() throws {
    let job = try SharedJob(
      rows: 10,
      "CREATE SCHEMA old; ALTER TABLE t ADD twice int GENERATED ALWAYS AS (id * 2) STORED"
    )
    let role = "r\(job.database.name)"
    try job.database.run(
      "CREATE ROLE \(role) LOGIN; GRANT SELECT, DELETE ON t TO \(role); GRANT CREATE ON SCHEMA public TO \(role)"
    )
    func write(_ archive: String) throws {
      try job.writeJob([
        "database": ["url": job.url(role: role)], "source": ["entity": "t", "where": "id > 5"],
        "action": ["type": "delete", "archive": ["entity": archive, "create": true]],
      ])
    }
    for (archive, words) in [
      ("none.kept", "there is no schema for the archive"),
      ("old.kept", "have it granted CREATE on the schema"),
    ] {
      try write(archive)
      let result = try job.batch("validate", "job.json")
      #expect(result.status == 2)
      #expect(result.errors.contains(words), "\(result.errors)")
    }
    try job.database.run("GRANT CREATE, USAGE ON SCHEMA old TO \(role)")
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.database.text("SELECT sum(twice) FROM old.kept") == "80")
    // A run whose archive is gone does not go on without one.
    try job.database.run("INSERT INTO t SELECT generate_series(11, 20010)")
    try job.writeJob([
      "database": ["url": job.url(role: role)], "source": ["entity": "t", "where": "id > 10"],
      "action": ["type": "delete", "archive": ["entity": "old.kept", "create": true]],
      "throttle": ["identifiersPerSecond": 1_000],
    ])
    let process = try job.start()
    #expect(try process.event("started") != nil)
    process.send(SIGKILL)
    _ = process.wait()
    try job.database.run("DROP TABLE old.kept")
    let resumed = try job.start().wait()
    #expect(resumed.status == 2, "\(resumed.errors)")
    #expect(resumed.errors.contains("the schema has changed: \"old.kept\" is gone"))
    try job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test func `a run takes its rows from an identifier file, in its order`() throws {
    let job = try SharedJob(rows: 1_000, "CREATE TABLE u (k text PRIMARY KEY, n int DEFAULT 0)")
    try job.writeJob(["source": ["entity": "t", "where": "id % 10 = 0", "orderBy": ["-id"]]])
    #expect(try job.start().wait().status == 0)
    #expect(try job.batch("ids", "job.json", "--output", "tens.ids").status == 0)
    try job.database.run("DELETE FROM t WHERE id = 1000")

    let source = ["entity": "t", "identifiers": "tens.ids"]
    try job.writeJob(["name": "second", "source": source])
    let valid = try job.batch("validate", "job.json")
    #expect(valid.status == 0, "\(valid.errors)")
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(plan["matches"] as? Int == 100)
    #expect((plan["identifiers"] as? String)?.hasSuffix("tens.ids") == true)
    let sample = try #require(plan["sample"] as? [[String: Any]])
    #expect(sample.map { $0["identifier"] as? String } == ["990", "980", "970", "960"])
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect((try result.last["outcomes"] as? [String: Any])?["vanished"] as? Int == 1)
    #expect(try job.counts() == ["0 x 900", "2 x 99"])
    #expect(try job.batch("ids", "job.json").output.hasPrefix("1000\n990\n"))

    // An export to one file, whose record is in files, has them too.
    try job.writeJob([
      "name": "third", "source": source,
      "action": ["type": "export", "file": "tens.csv", "format": "csv", "columns": ["id"]],
    ])
    #expect(try job.start().wait().status == 0)
    let lines = try String(decoding: job.directory.read("tens.csv"), as: UTF8.self)
    #expect(lines.hasPrefix("id\r\n990\r\n980\r\n"))

    for (entity, words) in [("u", "belong to entity \"t\""), ("t", "No such file")] {
      let file = entity == "u" ? "tens.ids" : "none.ids"
      try job.writeJob(["name": "fourth", "source": ["entity": entity, "identifiers": file]])
      let refused = try job.batch("run", "job.json")
      #expect(refused.status == 2, "\(refused.errors)")
      #expect(refused.errors.contains(words), "\(refused.errors)")
    }
    let other = try SharedJob(rows: 10)
    try other.writeJob([
      "source": ["entity": "t", "identifiers": job.directory.file("tens.ids")]
    ])
    let refused = try other.batch("run", "job.json")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("the identifiers belong to store"), "\(refused.errors)")
    try job.writeJob([
      "name": "fifth", "source": ["entity": "t", "identifiers": "tens.ids", "key": ["id", "n"]],
    ])
    let key = try job.batch("run", "job.json")
    #expect(key.status == 2)
    #expect(key.errors.contains("the keys of the identifiers are not id, n"), "\(key.errors)")
  }

  @Test func `a run ID whose work was done with other parameters is told apart`() throws {
    let job = try SharedJob(
      rows: 100,
      adding: [
        "parameters": ["step": ["type": "integer", "default": 1]],
        "action": ["type": "update", "set": ["n": "n + :step"]],
      ]
    )
    for (step, isTold) in [("2", false), ("2", false), ("3", true)] {
      let run = try job.batch("run", "job.json", "--run-id", "mon", "--param", "step=\(step)")
      #expect(
        run.status == 0 && run.errors.contains("is done, but the run began with") == isTold,
        "\(run)"
      )
    }
    #expect(try job.counts() == ["2 x 100"])
    // The end says when it began as the events did, and how fast it was.
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    let recorded = try #require((history["runs"] as? [[String: Any]])?.first)
    #expect(status["startedAt"] as? String == recorded["startedAt"] as? String)
    #expect(status["identifiersPerSecond"] as? Double ?? 0 > 0, "\(status)")
  }

  @Test func `a run whose identifier file has changed is not joined`() throws {
    let job = try SharedJob(rows: 30_000)
    try job.writeJob(["source": ["entity": "t", "where": "id <= 20000"]])
    #expect(try job.start().wait().status == 0)
    #expect(try job.batch("ids", "job.json", "--output", "some.ids").status == 0)
    let more: [String: Any] = [
      "name": "second", "source": ["entity": "t", "identifiers": "some.ids"],
    ]
    try job.writeJob(more.merging(SharedJob.slowly) { $1 })
    let process = try job.start()
    #expect(try process.event("started") != nil)
    process.send(SIGKILL)
    _ = process.wait()
    let bytes = try job.directory.read("some.ids")
    let split = try job.batch("ids", "split", "2", "some.ids", "--output", "part.ids")
    #expect(split.status == 0, "\(split.errors)")
    let file = URL(fileURLWithPath: job.directory.file("some.ids"))
    try Data(job.directory.read("part.1.ids")).write(to: file)
    let refused = try job.start().wait()
    #expect(refused.status == 2)
    #expect(refused.errors.contains("the job has changed since the run began"))
    try Data(bytes).write(to: file)
    try job.writeJob(more)
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["0 x 10000", "2 x 20000"])
  }

  @Test func `failed identifiers are skipped and listed`() throws {
    let job = try SharedJob(rows: 1_000, "ALTER TABLE t ADD CHECK (id NOT IN (7, 700) OR n = 0)")
    try job.writeJob(["skip": ["limit": 5]])
    let result = try job.start().wait()
    #expect(result.status == 4, "\(result.errors)")
    #expect(try job.counts() == ["0 x 2", "1 x 998"])
    #expect(try job.batch("ids", "job.json", "--outcome", "failed").output == "7\n700\n")
    let reasons = try job.batch("ids", "job.json", "--outcome", "failed", "--reasons").output
    #expect(reasons.contains("7,constraint,"))
    try job.writeJob()
    let failed = try job.batch("run", "job.json", "--fresh")
    #expect(failed.status == 1)
    // Which worker comes first to its row is open.
    #expect(failed.errors.contains(/identifier (7|700):/), "\(failed.errors)")
  }

  @Test func `failures are counted by constraint and not by row values`() throws {
    let job = try SharedJob(
      rows: 100,
      """
      CREATE TABLE c (id bigint PRIMARY KEY); INSERT INTO c VALUES (1);
      ALTER TABLE t ADD c bigint REFERENCES c, ADD CHECK (n < 50), ADD d date, ADD s text;
      UPDATE t SET s = 'x' || id;
      """
    )
    try job.writeJob([
      "skip": ["limit": 200],
      "action": [
        "type": "update",
        "set": [
          "n": "id", "c": "CASE WHEN id < 48 THEN id + 9 ELSE 1 END",
          "d": "CASE WHEN id % 10 = 0 THEN s::date END",
        ],
      ],
    ])
    #expect(try job.start().wait().status == 4)
    let counts = try job.batch(
      "ids",
      "job.json",
      "--outcome",
      "failed",
      "--reasons",
      "--count"
    ).output.split(separator: "\n")
    #expect(counts.count == 3, "\(counts)")
    #expect(
      counts.map { $0.prefix { $0 != ":" } } == [
        "45 constraint", "43 constraint", "10 invalidValue",
      ]
    )
    #expect(counts[0].contains("t_n_check") && counts[1].contains("t_c_fkey"), "\(counts)")
    #expect(counts[2].hasSuffix("invalid input syntax for type date: \"…\""), "\(counts)")
  }

  @Test func `a plan for keys of any type shows the run's statement`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE u (id uuid PRIMARY KEY, at timestamptz, name text, n int, UNIQUE (at, name));
      INSERT INTO u SELECT gen_random_uuid(), now() + g * interval '1 s', 'n' || g, 0 FROM generate_series(1, 20000) AS g;
      ALTER TABLE u ALTER at SET NOT NULL, ALTER name SET NOT NULL; ANALYZE u
      """
    )
    for key in [["id"], ["at", "name"]] {
      for action in [
        ["type": "update", "set": ["n": "n + 1"]], ["type": "delete"],
        ["type": "export", "file": "u.csv", "format": "csv"],
        ["type": "transform", "columns": ["n"], "writes": ["n"], "command": ["cat"]],
      ] as [[String: Any]] {
        try job.writeJob([
          "source": ["entity": "u", "everything": true, "key": key], "action": action,
        ])
        let result = try job.batch("plan", "job.json", "--json")
        #expect(result.status == 0, "\(result.errors)")
        let plan = try JSONOutput.object(result.output)
        let sql = try #require((plan["sql"] as? [String: Any])?["apply"] as? String)
        #expect(!sql.contains("IS NOT DISTINCT FROM"), "\(sql)")
        let lookUp = try #require((plan["lookUp"] as? [String: Any])?["queryPlan"] as? [String])
        #expect(!lookUp.contains { $0.contains("Seq Scan") }, "\(key) \(action): \(lookUp)")
      }
    }
  }

  @Test func `rows that move to another partition are found by a key without its column`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE p (id int, region text, n int NOT NULL DEFAULT 0, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
      CREATE TABLE north PARTITION OF p FOR VALUES IN ('n'); CREATE TABLE south PARTITION OF p FOR VALUES IN ('s');
      INSERT INTO p SELECT g, 'n' FROM generate_series(1, 20000) AS g
      """
    )
    let moving =
      "is partitioned; if columns that stay as they are identify a row, name only these in source.key"
    try job.writeJob(["source": ["entity": "p", "everything": true]])
    let warned = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect((warned["warnings"] as? [String])?.contains { $0.hasSuffix(moving) } == true)
    let source: [String: Any] = ["entity": "p", "everything": true, "key": ["id"]]
    try job.writeJob(["source": source].merging(SharedJob.slowly) { $1 })
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect((plan["warnings"] as? [String])?.contains { $0.hasSuffix(moving) } == false)
    let process = try job.start()
    try job.wait(until: "(SELECT count(*) FROM p WHERE n > 0) >= 1000")
    try job.database.run("UPDATE p SET region = 's' WHERE id % 2 = 0")
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.database.text("SELECT count(*) FILTER (WHERE n = 1) FROM p") == "20000")
  }

  @Test func `a watcher that starts before the run waits for it`() throws {
    let job = try SharedJob(rows: 2_000)
    let watcher = try BatchProgram(["status", "job.json", "--watch"], in: job.directory)
    #expect(try job.start().wait().status == 0)
    let result = watcher.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("2,000 of 2,000 done"), "\(result.output)")
  }

  @Test func `the history lists the runs in the database, and status shows each`() throws {
    let job = try SharedJob(rows: 500, "ALTER TABLE t ADD CHECK (id <> 7 OR n < 2)")
    #expect(try job.batch("history", "job.json").output == "the job has not run\n")
    #expect(try job.start("--run-id", "monday").wait().status == 0)
    try job.writeJob(["skip": ["limit": 5]])
    #expect(try job.start("--run-id", "tuesday").wait().status == 4)
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    let runs = try #require(history["runs"] as? [[String: Any]])
    #expect(runs.map { $0["runID"] as? String } == ["tuesday", "monday"])
    #expect(runs.map { $0["action"] as? String } == ["update", "update"])
    #expect(runs.map { $0["entity"] as? String } == ["t", "t"])
    let all = try job.batch("history", "job.json").output.split(separator: "\n")
    #expect(all.count == 5 && all[2].contains(", run ID tuesday"), "\(all)")
    let lines = all.filter { !$0.hasPrefix(" ") }
    #expect(lines.allSatisfy { $0.count <= 80 })
    #expect(lines[1].contains(" failures ") && lines[2].contains(" completed "), "\(lines)")
    let first = try #require(runs[1]["run"] as? String)
    let status = try job.batch("status", "job.json", "--json", "--run", String(first.prefix(8)))
    #expect(try JSONOutput.object(status.output)["runID"] as? String == "monday")
    let other = try job.batch("status", "job.json", "--run", "nosuch")
    #expect(other.status == 2)
    #expect(other.errors.contains("there is no record of run \"nosuch\""), "\(other.errors)")
    #expect(try job.batch("ids", "job.json", "--run", "nosuch").status == 2)
  }

  @Test func `the identifiers of a run are listed in the job's order`() throws {
    let job = try SharedJob(rows: 25_000)
    try job.writeJob([
      "source": ["entity": "t", "everything": true, "orderBy": ["-id"]], "chunk": ["size": 5_000],
    ])
    #expect(try job.start().wait().status == 0)
    let identifiers = try job.batch("ids", "job.json").output.split(separator: "\n")
    #expect(identifiers.count == 25_000)
    #expect(identifiers.first == "25000" && identifiers.last == "1")
  }

  @Test func `a run whose spans were removed is not complete`() throws {
    let job = try SharedJob(rows: 30_000)
    try job.writeJob(SharedJob.slowly)
    let process = try job.start()
    #expect(try process.event("started") != nil)
    try job.untilDone(500)
    try job.database.run("DELETE FROM _batch_span WHERE host IS NULL AND NOT done")
    let result = process.wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("missing in _batch_span"), "\(result.errors)")
    #expect(try job.start().wait().status == 1)
    #expect(try job.batch("run", "job.json", "--fresh").status == 0)
  }

  @Test func `a run waits for a session that has locked the table`() throws {
    let job = try SharedJob(rows: 20_000)
    try job.writeJob(SharedJob.slowly)
    let process = try job.start()
    #expect(try process.event("started") != nil)
    let other = try job.database.session()
    try other.run("BEGIN; LOCK TABLE t IN SHARE MODE")
    var held = try process.event("throttled")
    while let reason = held?["throttle"] as? String, !reason.hasPrefix("tableLock: process ") {
      held = try process.event("throttled")
    }
    #expect((held?["throttle"] as? String)?.hasSuffix("has ShareLock on the table") == true)
    try other.run("ROLLBACK")
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 20000"])
  }
}
#endif
