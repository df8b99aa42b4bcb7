#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Problems of a server, a role or a table are reported in one line with the right status, and lose nothing.
@Suite(.timeLimit(.minutes(5))) struct BadServerTests {
  private func expect(
    _ job: SharedJob,
    status: Int32,
    saying words: String,
    environment: [String: String] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try job.batch("run", "job.json", environment: environment)
    #expect(result.status == status, "\(result.errors)", sourceLocation: sourceLocation)
    #expect(result.errors.contains(words), "\(result.errors)", sourceLocation: sourceLocation)
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 1, "\(result.errors)", sourceLocation: sourceLocation)
  }

  @Test func `a run on a stopped server has exit status 1 and says to check the server`() throws {
    let job = try SharedJob(rows: 1)
    try job.writeJob(["database": ["url": "postgres://nobody@127.0.0.1:1/shop"]])
    try expect(job, status: 1, saying: "check that the server is running")
  }

  @Test func `the error of a wrong password does not show it`() throws {
    let job = try SharedJob(rows: 1)
    let port = job.database.cluster.port
    try job.writeJob(
      ["database": ["url": "postgres://postgres@127.0.0.1:\(port)/\(job.database.name)"]]
    )
    let environment = ["PGPASSWORD": "hunter2-hunter2"]
    try expect(job, status: 2, saying: "password", environment: environment)
    let result = try job.batch("run", "job.json", environment: environment)
    #expect(!result.errors.contains("hunter2"))
  }

  @Test func `the error of a password in a job does not show it`() throws {
    let job = try SharedJob(rows: 1)
    let urls = [
      "postgres://a:hunter2@h/d", "postgres://h/d?password=hunter2",
      "postgres://a@h/d?pass%77ord=hunter2", "postgresql://h/d?user=a&pass%77%6Frd=hunter2",
      "postgres://h/d?sslpasswor%64=hunter2", "postgres://a%3ab:hunter2@h,i/d",
      "postgres://a:hunter2@h:x%zz/d",
    ]
    for url in urls {
      try job.writeJob(["database": ["url": url]])
      let result = try job.batch("run", "job.json")
      #expect(result.status == 2)
      #expect(result.errors.contains("contains a password"), "\(result.errors)")
      #expect(!result.errors.contains("hunter2"))
    }
  }

  @Test func `the error of an invalid server URL names its place`() throws {
    let job = try SharedJob(rows: 1)
    for url in ["postgres://a@h:x%zz/d", "postgres://h/d?colour=red", "postgres://a:@[::1/d"] {
      try job.writeJob(["database": ["url": url]])
      for command in ["validate", "plan", "run", "status", "history"] {
        let result = try job.batch(command, "job.json")
        #expect(result.status == 2, "\(result.errors)")
        #expect(result.errors.contains("database.url: the URL cannot be read"), "\(result.errors)")
      }
    }
  }

  @Test func `a missing database, table or column is reported`() throws {
    let job = try SharedJob(rows: 1)
    try job.writeJob(["database": ["url": job.database.cluster.url(database: "nowhere")]])
    try expect(job, status: 2, saying: "database \"nowhere\" does not exist")
    try job.writeJob(["source": ["entity": "u", "everything": true]])
    try expect(job, status: 2, saying: "the entities are t")
    try job.writeJob(["action": ["type": "update", "set": ["m": "1"]]])
    try expect(job, status: 2, saying: "has no attribute \"m\"")
    try job.writeJob(["source": ["entity": "t", "where": "pg_sleep(1) IS NULL"]])
    try expect(job, status: 2, saying: "the function pg_sleep is not allowed")
    #expect(try job.counts() == ["0 x 1"])
  }

  @Test func `the error of missing rights names them before any row is changed`() throws {
    let job = try SharedJob(rows: 10)
    let role = "r\(job.database.name)"
    try job.database.run("CREATE ROLE \(role) LOGIN; GRANT SELECT ON t TO \(role)")
    try job.writeJob(["database": ["url": job.url(role: role)]])
    try expect(job, status: 2, saying: "have it granted UPDATE")
    try job.database.run("GRANT UPDATE ON t TO \(role)")
    try expect(job, status: 2, saying: "have it granted CREATE on the schema")
    #expect(try job.counts() == ["0 x 10"])
    try job.database.run("GRANT CREATE ON SCHEMA public TO \(role)")
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 10"])
    try job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test(arguments: ["ROLE", "DATABASE"])
  func `a run with more workers than connections continues with fewer`(limited: String) throws {
    let role = "few_\(UInt32.random(in: 0 ... .max))"
    let job = try SharedJob(rows: 20_000)
    try job.database.run(
      """
      CREATE ROLE \(role) LOGIN; GRANT ALL ON t TO \(role); GRANT ALL ON SCHEMA public TO \(role);
      ALTER \(limited) \(limited == "ROLE" ? role : job.database.name) CONNECTION LIMIT 10
      """
    )
    defer { try? job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    try job.writeJob(["database": ["url": job.url(role: role), "lease": "10s"]])
    let result = try job.batch("run", "job.json", "--workers", "30")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains(/the database has room for [1-9] of 30 workers for now/))
    #expect(try job.counts() == ["1 x 20000"])
  }

  @Test func `a role without all rights to the run tables is refused`() throws {
    let role = "clerk_\(UInt32.random(in: 0 ... .max))"
    let job = try SharedJob(rows: 100)
    try job.batch("run", "job.json")
    try job.database.run(
      """
      CREATE ROLE \(role) LOGIN;
      GRANT SELECT, UPDATE ON t TO \(role);
      GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO \(role)
      """
    )
    defer { try? job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    try job.writeJob(["database": ["url": job.url(role: role)]])
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("lacks DELETE on _batch_action in the schema \"public\""))
    #expect(try job.counts() == ["1 x 100"])
    try job.database.run("GRANT DELETE ON ALL TABLES IN SCHEMA public TO \(role)")
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try job.counts() == ["2 x 100"])
  }

  @Test func `a column that changes its type ends the run, and another job does not join it`()
    throws
  {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let process = try job.start()
    try job.untilDone(2_000)
    try job.database.run("ALTER TABLE t ALTER n DROP DEFAULT, ALTER n TYPE text")
    let result = process.wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(try result.last["state"] as? String == "failed")
    let words = "the schema has changed: \"t\" has the type"
    #expect(result.errors.contains("\(words) text for column n instead of integer"))
    try expect(job, status: 2, saying: "\(words) text for column n instead of integer")
    try job.database.run("ALTER TABLE t ALTER n TYPE bigint USING n::bigint")
    try expect(job, status: 2, saying: "\(words) bigint for column n instead of integer")
    try job.database.run("ALTER TABLE t ALTER n TYPE int")
    try job.writeJob(["action": ["type": "update", "set": ["n": "n + 2"]]])
    try expect(job, status: 2, saying: "the job has changed since the run began")
    try job.writeJob()
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test(arguments: ["archive", "delete", "update"])
  func `a column that is added during a run loses no value`(action: String) throws {
    let job = try SharedJob(rows: 3_000, "CREATE TABLE old (LIKE t)")
    let actions: [String: [String: Any]] = [
      "archive": ["type": "delete", "archive": ["entity": "old"]],
      "delete": ["type": "delete"], "update": ["type": "update", "set": ["n": "n + 1"]],
    ]
    try job.writeJob(
      ["action": actions[action] ?? [:], "throttle": ["identifiersPerSecond": 1_000]]
    )
    let process = try job.start()
    #expect(try process.event("started") != nil)
    try job.wait(until: "EXISTS (SELECT FROM _batch_ledger)")
    try job.database.run(
      "ALTER TABLE t ADD COLUMN note text; UPDATE t SET note = 'n' WHERE id > 2900"
    )
    let result = process.wait()
    #expect(result.status == (action == "archive" ? 1 : 0), "\(result.output)")
    let notes = try job.database.text("SELECT count(*) FROM t WHERE note = 'n'")
    #expect(notes == (action == "delete" ? "0" : "100"))
    if action == "archive" {
      #expect(result.output.contains("has got note, whose values would be deleted without a copy"))
    }
  }

  @Test func `a run ends if another column takes the name of one that it uses`() throws {
    let job = try SharedJob(rows: 3_000, "ALTER TABLE t ADD COLUMN k int")
    try job.writeJob(["throttle": ["identifiersPerSecond": 1_000]])
    let process = try job.start()
    #expect(try process.event("started") != nil)
    try job.wait(until: "EXISTS (SELECT FROM _batch_ledger)")
    try job.database.run(
      "BEGIN; ALTER TABLE t RENAME COLUMN n TO was; ALTER TABLE t RENAME COLUMN k TO n; COMMIT"
    )
    let result = process.wait()
    #expect(result.status == 1, "\(result.output)")
    let words = "has another column n now: the one that the run began with is named was"
    #expect(result.output.contains(words), "\(result.output)")
    #expect(try job.database.text("SELECT count(n) FROM t") == "0")
  }

  @Test func `a run that is recorded in another schema is not begun again`() throws {
    let job = try SharedJob(rows: 3_000, adding: ["limits": ["runtime": "1s"]])
    let role = "r\(job.database.name)"
    try job.database.run(
      "CREATE ROLE \(role) LOGIN; GRANT ALL ON t TO \(role); GRANT ALL ON SCHEMA public TO \(role)"
    )
    defer { try? job.database.run("DROP OWNED BY \(role) CASCADE; DROP ROLE \(role)") }
    try job.writeJob([
      "database": ["url": job.url(role: role)], "throttle": ["identifiersPerSecond": 1_000],
      "limits": ["runtime": "1s"],
    ])
    #expect(try job.batch("run", "job.json").status == 3)
    try job.database.run("CREATE SCHEMA \(role) AUTHORIZATION \(role)")
    try job.writeJob(["database": ["url": job.url(role: role)]])
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2)
    let words = "recorded in the schema \"public\""
    #expect(refused.errors.contains(words), "\(refused.errors)")
    let foreseen = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(foreseen["next"] as? String == "refuse")
    #expect((foreseen["nextWords"] as? String)?.contains(words) == true, "\(foreseen)")
    // Another job may be run there, and its status does not look at this one.
    try job.writeJob(["name": "other", "database": ["url": job.url(role: role), "lease": "2s"]])
    let other = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(other["next"] as? String == "begin")
    #expect(try job.batch("run", "job.json").status == 0)
    try job.writeJob(["database": ["url": job.url(role: role)]])
    // Tables that the role cannot read may have one too.
    try job.database.run(
      "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM \(role); ALTER TABLE _batch_run OWNER TO postgres; GRANT ALL ON t TO \(role)"
    )
    let plan = try job.batch("plan", "job.json")
    #expect((plan.output + plan.errors).contains("also has tables of runs"), "\(plan)")
    try job.database.run(
      "DROP SCHEMA \(role) CASCADE; ALTER TABLE _batch_run OWNER TO \(role); GRANT ALL ON ALL TABLES IN SCHEMA public TO \(role)"
    )
    let resumed = try job.batch("run", "job.json")
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try job.counts() == ["2 x 3000"])
  }

  @Test func `status tells of an unfinished run in another schema, beside which none is begun`()
    throws
  {
    let job = try SharedJob(rows: 3_000)
    #expect(try job.batch("run", "job.json").status == 0)
    try job.database.run("CREATE SCHEMA other")
    let url = "\(job.url())&options=-csearch_path%3Dother,public"
    try job.writeJob([
      "database": ["url": url, "lease": "2s"], "throttle": ["identifiersPerSecond": 1_000],
      "limits": ["runtime": "1s"],
    ])
    #expect(try job.batch("run", "job.json").status == 3)
    try job.writeJob()
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(status["state"] as? String == "completed")
    #expect(status["next"] as? String == "refuse")
    let words = "recorded in the schema \"other\""
    #expect((status["nextWords"] as? String)?.contains(words) == true, "\(status)")
    #expect(try job.batch("run", "job.json").errors.contains(words))
    try job.writeJob(["database": ["url": url, "lease": "2s"]])
    #expect(try job.batch("run", "job.json").status == 0)
    try job.writeJob()
    let after = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(after["next"] as? String == "begin")
    #expect(try job.counts() == ["2 x 3000"])
  }

  @Test func `validate and plan refuse a schema in which the role cannot record a run`() throws {
    let job = try SharedJob(rows: 10)
    let role = "r\(job.database.name)"
    try job.database.run(
      "CREATE ROLE \(role) LOGIN; GRANT SELECT, UPDATE ON t TO \(role); REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    )
    try job.writeJob(["database": ["url": job.url(role: role)]])
    for command in ["validate", "plan", "run"] {
      let result = try job.batch(command, "job.json")
      #expect(result.status == 2, "\(command): \(result.output)")
      #expect(
        result.errors.contains("may not create the tables of runs in the schema \"public\""),
        "\(command): \(result.errors)"
      )
    }
    // An export to one file keeps its record beside the file.
    try job.writeJob([
      "database": ["url": job.url(role: role)],
      "action": ["type": "export", "file": "t.csv", "format": "csv"],
    ])
    for command in ["validate", "plan", "run"] {
      let result = try job.batch(command, "job.json")
      #expect(result.status == 0, "\(command): \(result.errors)")
    }
    try job.database.run("GRANT CREATE ON SCHEMA public TO \(role)")
    try job.writeJob(["database": ["url": job.url(role: role)]])
    for command in ["validate", "plan", "run"] {
      #expect(try job.batch(command, "job.json").status == 0)
    }
    #expect(try job.counts() == ["1 x 10"])
  }

  @Test func `the value of a secret parameter is never shown`() throws {
    let job = try SharedJob(rows: 3, "ALTER TABLE t ADD COLUMN s text UNIQUE")
    try job.writeJob([
      "parameters": ["token": ["type": "text", "secret": true] as [String: Any]],
      "action": ["type": "update", "set": ["s": ":token"]] as [String: Any], "skip": ["limit": 3],
    ])
    let result = try job.batch("run", "job.json", "--param", "token=S3cr3tValue")
    #expect(result.status == 4, "\(result.errors)")
    let failures = try job.batch("ids", "job.json", "--outcome", "failed", "--reasons")
    #expect(
      (failures.output + failures.errors).contains("Key (s)=(***) already exists"),
      "\(failures)"
    )
    let kept = try job.database.text("SELECT string_agg(message, ' ') FROM _batch_failure")
    #expect(kept?.contains("S3cr3t") == false)
    try job.writeJob([
      "parameters": ["token": ["type": "text", "secret": true] as [String: Any]],
      "action": ["type": "update", "set": ["n": "CAST(:token AS int)"]] as [String: Any],
    ])
    let failed = try job.batch("run", "job.json", "--fresh", "--param", "token=S3cr3tValue")
    #expect(failed.status != 0)
    #expect(!(failed.output + failed.errors).contains("S3cr3t"), "\(failed.errors)")
  }

  @Test func `a renamed table ends the run, which resumes once the old name is back`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let process = try job.start()
    try job.untilDone(2_000)
    try job.database.run("ALTER TABLE t RENAME TO u")
    let result = process.wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("\"t\" is named u now"), "\(result.errors)")
    try expect(job, status: 2, saying: "\"t\" is named u now")
    try job.database.run("ALTER TABLE u RENAME TO t")
    try job.writeJob()
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `job keys for SQLite and unsupported features are refused on PostgreSQL`() throws {
    let job = try SharedJob(rows: 1)
    let cases: [([String: Any], String)] = [
      (["database": ["url": job.url(), "journalMode": "keep"]], "PostgreSQL has no journal mode"),
      (["database": ["url": job.url(), "path": "x.db"]], "contradicts"),
      (["throttle": ["maximumWAL": "1GB"]], "bounds the log of an SQLite file"),
      // The default, too, would be ignored.
      (["throttle": ["maximumWAL": "64MB"]], "bounds the log of an SQLite file"),
      (["database": ["url": job.url(), "foreignKeys": false]], "always enforces foreign keys"),
      (["checkpoint": ["path": "x.batch"]], "keeps all in the database"),
    ]
    for (more, words) in cases {
      try job.writeJob(more)
      let result = try job.batch("run", "job.json")
      #expect(result.status == 2, "\(result.errors)")
      #expect(result.errors.contains(words), "\(result.errors)")
    }
  }

  @Test func `commands for SQLite files say so if given a server URL`() throws {
    let job = try SharedJob(rows: 1)
    let commands = [
      ["generate", "models", job.url()],
      ["new", "update", job.url(), "t", "--set", "n = 1", "--everything"],
    ]
    for command in commands {
      let result = try BatchProgram(command, in: job.directory).wait()
      #expect(result.status == 2)
      #expect(result.errors.contains("on PostgreSQL yet"), "\(command): \(result.errors)")
    }
  }

  @Test func `the error of a view that writes when read points to the view`() throws {
    let job = try SharedJob(
      rows: 10,
      """
      CREATE TABLE log (n int);
      CREATE FUNCTION write() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log VALUES (1); RETURN true; END $$;
      CREATE VIEW v AS SELECT id, n FROM t WHERE write();
      """
    )
    try job.writeJob(["source": ["entity": "v", "key": ["id"], "everything": true]])
    try expect(job, status: 2, saying: "the view \"v\" writes when it is read")
    let plan = try job.batch("plan", "job.json")
    #expect(plan.status == 2)
    #expect(plan.errors.contains("name the table behind it"), "\(plan.errors)")
    try job.writeJob(["source": ["entity": "t", "where": "id IN (SELECT id FROM v)"]])
    try expect(job, status: 2, saying: "see which view in where")
    #expect(try job.counts() == ["0 x 10"])
  }

  @Test func `the error of a missing archive contains the statement that creates it`() throws {
    let job = try SharedJob(rows: 10)
    try job.directory.write(
      JobText.delete(
        archive: "kept",
        where: "id <= 5",
        entity: "t",
        adding: ["database": ["url": job.url()]]
      ),
      to: "job.json"
    )
    let statement = "CREATE TABLE \"kept\" (LIKE \"public\".\"t\")"
    try expect(job, status: 2, saying: "run \(statement)")
    try job.database.run(statement)
    #expect(try job.start().wait().status == 0)
    #expect(try job.database.text("SELECT count(*) FROM kept") == "5")
  }

  @Test func `rows of inherited tables with equal keys are refused before the first chunk`() throws
  {
    let job = try SharedJob(
      rows: 100,
      "CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (50, 0), (200, 0)"
    )
    let valid = try job.batch("validate", "job.json")
    #expect(valid.status == 0)
    #expect((valid.output + valid.errors).contains("tables inherit from \"t\""), "\(valid)")
    let words = "two rows of \"t\" and the tables that inherit from it have the same id"
    #expect(try job.batch("plan", "job.json").errors.contains(words))
    try expect(job, status: 2, saying: words)
    #expect(try job.counts() == ["0 x 102"])
    #expect(try job.database.text("SELECT count(*) FROM _batch_run") == "0")
    try job.database.run("DELETE FROM child WHERE id = 50")
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 101"])
  }

  @Test func `a replaced table ends the run, which continues once its own table is back`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let process = try job.start()
    try job.untilDone(2_000)
    try job.database.run(
      "BEGIN; ALTER TABLE t RENAME TO u; CREATE TABLE t (LIKE u INCLUDING ALL); INSERT INTO t SELECT id, 0 FROM u; COMMIT"
    )
    let result = process.wait()
    #expect(result.status == 1, "\(result.errors)")
    let words = "is another table now: the one that the run began with is named u"
    #expect(result.errors.contains(words), "\(result.errors)")
    #expect(try job.counts() == ["0 x 30000"])
    try expect(job, status: 2, saying: words)
    try job.database.run("DROP TABLE t; ALTER TABLE u RENAME TO t")
    try job.writeJob()
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `a run with an emptied ledger is refused and changes no row twice`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let process = try job.start()
    try job.untilDone(2_000)
    try job.database.run("TRUNCATE _batch_ledger")
    process.send(SIGKILL)
    _ = process.wait()
    try job.writeJob()
    for _ in 0..<2 {
      let result = try job.start().wait()
      #expect(result.status == 1)
      #expect(result.errors.contains("but _batch_tally"), "\(result.errors)")
      #expect(result.errors.contains("run with --fresh to start over"), "\(result.errors)")
    }
    #expect(try job.counts().allSatisfy { $0.hasPrefix("0 ") || $0.hasPrefix("1 ") })
  }
}
#else
import BatchTestSupport
import Testing

@Suite struct PostgreSQLMissingTests {
  @Test func `a program without PostgreSQL refuses its jobs and names the build command`() throws {
    let directory = try TemporaryDirectory()
    try directory.write(
      JobText.update(adding: ["database": ["url": "postgres://h/d"]]),
      to: "job.json"
    )
    for command in ["run", "plan", "validate", "status", "ids", "pause", "cleanup"] {
      let result = try BatchProgram([command, "job.json"], in: directory).wait()
      #expect(result.status == 2)
      #expect(result.errors.contains("--product batch --traits PostgreSQL"), "\(result.errors)")
    }
    let schema = try BatchProgram(["schema", "postgres://h/d"], in: directory).wait()
    #expect(schema.status == 2)
    #expect(schema.errors.contains("--product batch --traits PostgreSQL"), "\(schema.errors)")
  }
}
#endif
