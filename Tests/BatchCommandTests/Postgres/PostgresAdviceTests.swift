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
