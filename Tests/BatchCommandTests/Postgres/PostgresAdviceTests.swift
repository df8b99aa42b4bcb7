#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// What a plan advises for the server.
@Suite(.timeLimit(.minutes(5))) struct PostgresAdviceTests {
  @Test func `a plan advises on the server as text and as JSON`() throws {
    let job = try SharedJob(rows: 10_000, "CREATE INDEX by_n ON t (n); ANALYZE t")
    func advice() throws -> [String] {
      let plan = try job.batch("plan", "job.json", "--json")
      #expect(plan.status == 0, "\(plan.errors)")
      return try #require(JSONOutput.object(plan.output)["advice"] as? [String])
    }
    let line = "the index by_n has n, which the job changes"
    #expect(try advice().map { $0.hasPrefix(line) } == [true])
    #expect(try job.batch("plan", "job.json").output.contains("\nadvice    \(line)"))
    try job.database.run("DROP INDEX by_n")
    #expect(try advice().map { $0.contains("SET (fillfactor = 50)") } == [true])
    try job.database.run("ALTER TABLE t SET (fillfactor = 50)")
    #expect(try advice() == [])
    #expect(try !job.batch("plan", "job.json").output.contains("advice"))
    try job.database.run("ALTER TABLE t SET (autovacuum_enabled = off)")
    #expect(try advice().map { $0.hasPrefix("autovacuum is off for t") } == [true])
  }

  @Test func `a plan advises a delete only on dead rows and an export on nothing`() throws {
    let job = try SharedJob(rows: 10_000, "CREATE INDEX by_n ON t (n); ANALYZE t")
    func advice(_ action: [String: Any]) throws -> [String] {
      try job.writeJob(["action": action])
      let plan = try job.batch("plan", "job.json", "--json")
      #expect(plan.status == 0, "\(plan.errors)")
      return try #require(JSONOutput.object(plan.output)["advice"] as? [String])
    }
    let export: [String: Any] = ["type": "export", "format": "csv", "folder": "rows"]
    #expect(try advice(["type": "delete"]) == [])
    try job.database.run("ALTER TABLE t SET (autovacuum_enabled = off)")
    #expect(try advice(["type": "delete"]).map { $0.hasPrefix("autovacuum is off") } == [true])
    #expect(try advice(export) == [])
  }

  private func warnings(_ job: SharedJob) throws -> [String] {
    let plan = try job.batch("plan", "job.json", "--json")
    #expect(plan.status == 0, "\(plan.errors)")
    return try #require(JSONOutput.object(plan.output)["warnings"] as? [String])
  }

  @Test func `a plan names the tables that are read whole for each deleted row`() throws {
    let job = try SharedJob(
      rows: 100,
      """
      CREATE TABLE child (id int PRIMARY KEY, t bigint REFERENCES t ON DELETE CASCADE);
      CREATE TABLE grandchild (child int REFERENCES child);
      CREATE TABLE other (u bigint, t bigint REFERENCES t);
      CREATE INDEX ON other (t, u);
      CREATE INDEX ON child (t) WHERE id > 0;
      INSERT INTO child SELECT i, i FROM generate_series(1, 100) AS i;
      ANALYZE
      """
    )
    #expect(try warnings(job).filter { $0.contains("reads all of") } == [])
    try job.writeJob(["action": ["type": "delete"], "source": ["entity": "t", "everything": true]])
    let scans = try warnings(job).filter { $0.contains("reads all of") }
    #expect(scans.count == 2, "\(scans)")
    #expect(scans.first?.contains("all of child (about 100 rows)") == true, "\(scans)")
    // The advice is a statement that helps.
    let command = try #require(
      scans.first?.firstMatch(of: /CREATE INDEX CONCURRENTLY ON \S+ \(\w+\)/)
    )
    try job.database.run(String(command.0))
    #expect(
      try warnings(job).filter { $0.contains("reads all of") }.map { $0.contains("grandchild") }
        == [true]
    )
    try job.writeJob(["action": ["type": "update", "set": ["id": "id"]]])
  }

  @Test func `a plan names the partitions that would better be dropped`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE log (id bigint, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
      CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (1) TO (2);
      CREATE TABLE log_2 PARTITION OF log FOR VALUES FROM (2) TO (3);
      CREATE TABLE log_3 PARTITION OF log FOR VALUES FROM (3) TO (4);
      CREATE TABLE log_4 PARTITION OF log FOR VALUES FROM (4) TO (5);
      INSERT INTO log SELECT i, 1 + i % 3 FROM generate_series(1, 300) AS i
      """
    )
    func dropped(where condition: String) throws -> [String] {
      try job.writeJob([
        "action": ["type": "delete"], "source": ["entity": "log", "where": condition],
      ])
      return try warnings(job).filter { $0.contains("DETACH PARTITION") }
    }
    let both = try dropped(where: "log.day < 3")
    #expect(
      both.count == 1 && both[0].contains("2 partitions: log_1, log_2 is selected"),
      "\(both)"
    )
    #expect(try dropped(where: "day = 1 AND id > 5") == [])
    #expect(try dropped(where: "day = 1").first?.contains("the partition log_1 is") == true)
    let statement = "ALTER TABLE log DETACH PARTITION log_1 CONCURRENTLY"
    #expect(both[0].contains(statement))
    try job.database.run(statement)
    try job.database.run("DROP TABLE log_1")
    #expect(try dropped(where: "day = 1") == [])
  }

  @Test func `a plan does not advise to drop partitions where that would lose something`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE log (id bigint, day int, PRIMARY KEY (id, day)) PARTITION BY LIST (day);
      CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (1);
      CREATE TABLE log_2 PARTITION OF log FOR VALUES IN (2) PARTITION BY LIST (day);
      CREATE TABLE log_2a PARTITION OF log_2 FOR VALUES IN (2);
      CREATE TABLE rest PARTITION OF log DEFAULT;
      INSERT INTO log SELECT i, 1 + i % 3 FROM generate_series(1, 300) AS i
      """
    )
    func advice(_ action: [String: Any] = ["type": "delete"]) throws -> [String] {
      try job.writeJob(["action": action, "source": ["entity": "log", "where": "day < 3"]])
      return try warnings(job).filter { $0.contains("DETACH PARTITION") }
    }
    let found = try advice()
    // What is deeper is no partition of the table itself.
    #expect(found.count == 1 && found[0].contains("the partition log_1 is selected"), "\(found)")
    let statement = try #require(found[0].firstMatch(of: /ALTER TABLE .*(?=, then)/))
    try job.database.run("BEGIN; \(statement.0); ROLLBACK")
    #expect(try advice(["type": "delete", "archive": ["entity": "kept", "create": true]]) == [])
    try job.database.run(
      "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN old; END';"
        + "CREATE TRIGGER d BEFORE DELETE ON log FOR EACH ROW EXECUTE FUNCTION f()"
    )
    #expect(try advice() == [])
    try job.database.run(
      "DROP TRIGGER d ON log; CREATE TABLE c (id bigint, day int, FOREIGN KEY (id, day) REFERENCES log)"
    )
    #expect(try advice() == [])
  }

  @Test func `a plan names rows that an update reaches in other tables, and tries none`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE "Kid Of" (id int PRIMARY KEY, code text);
      CREATE TABLE parent (id int PRIMARY KEY, code text UNIQUE, note text);
      INSERT INTO parent SELECT i, 'c' || i, '' FROM generate_series(1, 100) AS i;
      ALTER TABLE "Kid Of" ADD FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE
      """
    )
    func plan(_ set: [String: String]) throws -> [String: Any] {
      try job.writeJob([
        "source": ["entity": "parent", "everything": true],
        "action": ["type": "update", "set": set],
      ])
      return try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    }
    let reaching = try plan(["code": "code || 'x'"])
    let keys = try #require(reaching["foreignKeys"] as? [String])
    #expect(keys.count == 1 && keys[0].hasSuffix(", on update cascade"), "\(keys)")
    let found = try #require(reaching["warnings"] as? [String])
    #expect(
      found.contains { $0.hasPrefix("rows of \"Kid Of\" are changed or deleted too") },
      "\(found)"
    )
    #expect(reaching["estimatedSeconds"] == nil)
    // The advice is a statement.
    let index = try #require(
      found.lazy.compactMap { $0.firstMatch(of: /CREATE INDEX .*(?= avoids)/) }.first
    )
    try job.database.run(String(index.0))
    // An update of a key's column locks the row as a deletion does.
    #expect((reaching["locks"] as? [String])?.contains { $0.hasPrefix("FOR UPDATE ") } == true)
    let other = try plan(["note": "'x'"])
    #expect((other["locks"] as? [String])?.contains { $0.hasPrefix("FOR NO KEY UPDATE ") } == true)
    #expect(other["estimatedSeconds"] is Double)
  }

  @Test func `plan and run name what keeps the server from cleaning up`() throws {
    let cluster = try TestCluster(configuration: "max_prepared_transactions = 5")
    let job = try SharedJob(rows: 100, in: cluster)
    func remains() throws -> [String] {
      try warnings(job).filter { $0.contains("dead rows") || $0.contains("replication slot") }
    }
    #expect(try remains() == [])
    try job.database.run("SELECT pg_create_physical_replication_slot('lost', true)")
    let slot = try remains()
    #expect(
      slot.count == 1 && slot[0].contains("nobody reads the replication slot \"lost\""),
      "\(slot)"
    )
    let run = try job.start().wait()
    #expect(
      run.status == 0 && run.output.contains("nobody reads the replication slot"),
      "\(run.output)"
    )
    try job.database.run("SELECT pg_drop_replication_slot('lost')")
    try job.database.run("BEGIN; INSERT INTO t VALUES (1000); PREPARE TRANSACTION 'forgotten'")
    let prepared = try remains()
    #expect(
      prepared.count == 1
        && prepared[0].hasPrefix("the prepared transaction 'forgotten' has been open since"),
      "\(prepared)"
    )
    try job.database.run("ROLLBACK PREPARED 'forgotten'")
    #expect(try remains() == [])
  }
}
#endif
