#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports from PostgreSQL to one file, as a user runs them.
@Suite(.timeLimit(.minutes(5))) struct PostgresExportCommandTests {
  private static func write(
    _ job: SharedJob,
    to file: String = "t.ndjson",
    columns: [String]? = nil,
    adding more: [String: Any] = [:]
  ) throws {
    var action: [String: Any] = [
      "type": "export", "file": file, "format": file.hasSuffix(".csv") ? "csv" : "ndjson",
    ]
    action["columns"] = columns
    try job.writeJob(["action": action].merging(more) { $1 })
  }

  private static func text(_ job: SharedJob, _ name: String) throws -> String {
    String(decoding: try job.directory.read(name), as: UTF8.self)
  }

  /// A value of each kind, and one that is missing.
  private static let kinds = """
    CREATE TYPE mood AS ENUM ('glad', 'sad');
    CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE <= 100);
    ALTER TABLE t ADD price numeric, ADD share percent, ADD flag bool, ADD ratio float8, ADD single float4,
      ADD raw bytea, ADD name text, ADD tags text[], ADD at timestamptz, ADD day date, ADD detail jsonb, ADD mood mood,
      ADD key uuid, ADD span interval;
    UPDATE t SET price = 12345678901234567890.123456789, share = 12.50, flag = true, ratio = 0.1, single = 0.1,
      raw = '\\x00ff', name = E'a"é,\\n', tags = '{x,NULL,"a,b"}', at = '2026-02-28 23:59:59.123456+00',
      day = '2026-02-28', detail = '{"a": 1.50}', mood = 'sad', key = '9b2b4f5e-6d53-4c1c-8e35-0d9b1a7a0c11',
      span = '1 day 02:00' WHERE id = 1;
    UPDATE t SET price = 'NaN', ratio = 'NaN', single = '-Infinity', name = '' WHERE id = 2;
    """

  @Test func `an export writes values without loss`() throws {
    let job = try SharedJob(rows: 3, Self.kinds)
    try Self.write(job)
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      try Self.text(job, "t.ndjson") == #"""
        {"id":1,"n":0,"price":12345678901234567890.123456789,"share":12.50,"flag":true,"ratio":0.1,"single":0.1,\#
        "raw":{"$base64":true,"encoded":"AP8="},"name":"a\"é,\n","tags":"{x,NULL,\"a,b\"}",\#
        "at":"2026-02-28 23:59:59.123456+00","day":"2026-02-28","detail":"{\"a\": 1.50}","mood":"sad",\#
        "key":"9b2b4f5e-6d53-4c1c-8e35-0d9b1a7a0c11","span":"1 day 02:00:00"}
        {"id":2,"n":0,"price":"NaN","share":null,"flag":null,"ratio":"NaN","single":-1e999,"raw":null,"name":"",\#
        "tags":null,"at":null,"day":null,"detail":null,"mood":null,"key":null,"span":null}
        {"id":3,"n":0,"price":null,"share":null,"flag":null,"ratio":null,"single":null,"raw":null,"name":null,\#
        "tags":null,"at":null,"day":null,"detail":null,"mood":null,"key":null,"span":null}

        """#
    )
    try Self.write(job, to: "t.csv", columns: ["id", "name", "price", "raw"])
    let csv = try job.batch("run", "job.json", "--fresh")
    #expect(csv.status == 0, "\(csv.errors)")
    #expect(
      try Self.text(job, "t.csv")
        == "id,name,price,raw\r\n1,\"a\"\"é,\n\",12345678901234567890.123456789,AP8=\r\n"
        + "2,\"\",NaN,\r\n3,,,\r\n"
    )
  }

  @Test func `a read-only role can export without creating anything in the database`() throws {
    let job = try SharedJob(rows: 1_000)
    let role = "r\(job.database.name)"
    try job.database.run("CREATE ROLE \(role) LOGIN")
    try Self.write(
      job,
      adding: [
        "database": ["url": job.url(role: role)], "source": ["entity": "t", "where": "id % 4 = 0"],
      ]
    )
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("have it granted SELECT"), "\(refused.errors)")
    try job.database.run("GRANT SELECT ON t TO \(role)")
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(plan["matches"] as? Int == 250)
    #expect(plan["next"] as? String == "begin")
    #expect(try job.batch("validate", "job.json").output == "job: valid (export of t)\n")
    let result = try job.start("--run-id", "monday").wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try Self.text(job, "t.ndjson").split(separator: "\n").count == 250)
    #expect(try Self.text(job, "t.ndjson").hasPrefix("{\"id\":4,\"n\":0}\n{\"id\":8,"))
    #expect(try job.database.text("SELECT 1 FROM pg_class WHERE relname LIKE '\\_batch%'") == nil)
    // The checkpoint has everything known about the run, as on SQLite.
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(status["state"] as? String == "completed")
    #expect(try job.batch("ids", "job.json", "--count").output == "250\n")
    #expect(try job.batch("history", "job.json").output.contains("completed"))
    #expect(try job.batch("report", "job.json", "--output", "r.json").status == 0)
    #expect(try !Self.text(job, "r.json").contains("\"database\" : \"\""))
    let again = try job.start("--run-id", "monday").wait()
    #expect(again.status == 0)
    #expect(try again.last["run"] as? String == result.last["run"] as? String)
    try job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test func `an export replaces no foreign file and refuses unsupported options`() throws {
    let job = try SharedJob(rows: 10)
    try Self.write(job)
    try job.directory.write("mine", to: "t.ndjson")
    for command in ["run", "validate"] {
      let result = try job.batch(command, "job.json")
      #expect(result.status == 2)
      #expect(result.errors.contains("this job did not make it"), "\(result.errors)")
    }
    try FileManager.default.removeItem(atPath: job.directory.file("t.ndjson"))
    try Self.write(job, columns: ["m"])
    let unknown = try job.batch("run", "job.json")
    #expect(unknown.status == 2)
    #expect(unknown.errors.contains("has no attribute \"m\""), "\(unknown.errors)")
    try Self.write(job, to: "nowhere/t.csv")
    #expect(try job.batch("run", "job.json").errors.contains("there is no folder"))
    try Self.write(job)
    for command in ["verify", "undo"] {
      let refused = try job.batch(command, "job.json")
      #expect(refused.status == 2, "\(refused.errors)")
      #expect(refused.errors.contains("an export changes no row"), "\(refused.errors)")
    }
  }

  @Test func `an export skips vanished rows and names an unreadable row`() throws {
    let job = try SharedJob(
      rows: 1_000,
      "CREATE VIEW v AS SELECT id, CASE WHEN id IN (7, 700) THEN 1 / n ELSE n END AS n FROM t"
    )
    try Self.write(
      job,
      adding: [
        "source": ["entity": "v", "key": ["id"], "everything": true], "skip": ["limit": 5],
      ]
    )
    let result = try job.start().wait()
    #expect(result.status == 4, "\(result.errors)")
    #expect(try Self.text(job, "t.ndjson").split(separator: "\n").count == 998)
    #expect(try job.batch("ids", "job.json", "--outcome", "failed").output == "7\n700\n")
    let retried = try job.batch("retry-failed", "job.json")
    #expect(retried.status == 2)
    #expect(retried.errors.contains("an export has left out"), "\(retried.errors)")
  }

  @Test func `the files of an export are readable as the process's mask allows`() throws {
    let job = try SharedJob(rows: 100)
    try Self.write(job)
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try job.batch("ids", "job.json", "--output", "all.ids").status == 0)
    let folder: [String: Any] = ["type": "export", "folder": "parts", "format": "csv"]
    try job.directory.write(
      JobText.update(
        entity: "t",
        adding: ["name": "parts", "database": ["url": job.url()], "action": folder]
      ),
      to: "parts.json"
    )
    let parts = try job.batch("run", "parts.json")
    #expect(parts.status == 0, "\(parts.errors)")
    #expect(try job.batch("ids", "parts.json", "--output", "parts.ids").status == 0)
    // A new file, of which the mask decides too.
    let own = open(job.directory.file("own"), O_CREAT | O_WRONLY, 0o666)
    close(own)
    func mode(_ name: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: job.directory.file(name))[.posixPermissions]
        as? Int
    }
    let expected = try mode("own")
    let made = try FileManager.default.contentsOfDirectory(atPath: job.directory.file("parts"))
    #expect(made.contains("manifest.json") && made.count > 1, "\(made)")
    let names = ["t.ndjson", "job.batch", "all.ids", "parts.ids"] + made.map { "parts/\($0)" }
    for name in names { #expect(try mode(name) == expected, "\(name)") }
  }

  @Test func `a row in bytes that are no UTF-8 fails, and no other`() throws {
    let job = try SharedJob(rows: 1)
    let name = "\(job.database.name)_ascii"
    try job.database.run(
      "CREATE DATABASE \(name) ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    defer { try? job.database.run("DROP DATABASE \(name) WITH (FORCE)") }
    let url = job.database.cluster.url(database: name)
    try PostgresSession(
      ServerAddress(url: url),
      applicationName: "test",
      interrupter: PostgresInterrupter()
    ).run(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, word text);
      INSERT INTO t SELECT i, 0, CASE WHEN i IN (7, 700) THEN convert_from('\\x63616fe9', 'SQL_ASCII') ELSE 'w' || i END
      FROM generate_series(1, 1000) AS i
      """
    )
    let base: [String: Any] = ["database": ["url": url], "skip": ["limit": 5]]
    for format in ["ndjson", "csv"] {
      try Self.write(job, to: "t.\(format)", adding: base)
      let result = try job.batch("run", "job.json")
      #expect(result.status == 4, "\(result.errors)")
      let lines = try Self.text(job, "t.\(format)").split(whereSeparator: \.isNewline).count
      #expect(lines == (format == "csv" ? 999 : 998))
      #expect(try job.batch("ids", "job.json", "--outcome", "failed").output == "7\n700\n")
    }
    // A transform leaves out those that it cannot read, too.
    let action: [String: Any] = [
      "type": "transform", "columns": ["word"], "writes": ["n"],
      "command": ["sed", "-u", "s/.*/{\"n\": 1}/"],
    ]
    try job.directory.write(
      JobText.update(
        entity: "t",
        adding: base.merging(["name": "transform", "action": action]) { $1 }
      ),
      to: "job.json"
    )
    let result = try job.batch("run", "job.json")
    #expect(result.status == 4, "\(result.errors)")
    #expect(try job.batch("ids", "job.json", "--outcome", "failed").output == "7\n700\n")
    let session = try PostgresSession(
      ServerAddress(url: url),
      applicationName: "test",
      interrupter: PostgresInterrupter()
    )
    #expect(
      try session.text("SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE n <> 1")
        == "7,700"
    )
    session.close()
  }

  @Test func `an export continues after lost connections and after a refused schema change`() throws
  {
    let job = try SharedJob(rows: 20_000)
    try Self.write(job, adding: ["throttle": ["identifiersPerSecond": 1000]])
    let process = try job.start()
    var seen = 0
    while seen < 3, try process.event("progress") != nil {
      seen += 1
      try job.database.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'batch%'
        """
      )
    }
    process.send(SIGINT)
    #expect(process.wait().status == 3)
    try job.database.run("ALTER TABLE t ADD extra int; ALTER TABLE t RENAME n TO was")
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2)
    let words = "\"t\" has no column n any more: it is named was now"
    #expect(refused.errors.contains(words), "\(refused.errors)")
    try job.database.run("ALTER TABLE t RENAME was TO n")
    try Self.write(job)
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    // The file has the columns of the beginning.
    #expect(result.output.contains("has got extra since the run began"), "\(result.output)")
    #expect(
      try Self.text(job, "t.ndjson")
        == (1...20_000).map { "{\"id\":\($0),\"n\":0}\n" }.joined()
    )
  }

  @Test func `a killed export has identical bytes`() throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let job = try SharedJob(rows: 40_000)
    // In an order other than that of the keys.
    try Self.write(
      job,
      to: "t.csv",
      adding: [
        "source": ["entity": "t", "everything": true, "orderBy": ["-id"]],
        "checkpoint": ["interval": "20ms"],
      ]
    )
    let expected =
      "id,n\r\n" + stride(from: 40_000, to: 0, by: -1).map { "\($0),0\r\n" }.joined()
    var (kills, rounds) = (0, 0)
    while kills < KillLoop.kills {
      rounds += 1
      while true {
        let process = try BatchProgram(
          ["run", "job.json", "--quiet", "--run-id", "round \(rounds)"],
          in: job.directory
        )
        let wait = Double.random(in: 0...0.5, using: &generator)
        if kills < KillLoop.kills, process.send(SIGKILL, afterSeconds: wait) {
          kills += 1
          _ = process.wait()
          continue
        }
        let result = process.wait()
        #expect(result.status == 0, "seed \(seed): \(result.errors)")
        break
      }
      #expect(try Self.text(job, "t.csv") == expected, "seed \(seed), round \(rounds)")
    }
    print("kill-loop export: \(kills) kills in \(rounds) exports of 40,000 rows, seed \(seed)")
  }
}
#endif
