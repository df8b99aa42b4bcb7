#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Jobs on PostgreSQL whose rows depend on one another: through a view, or by a foreign key of the table to itself.
@Suite(.timeLimit(.minutes(5))) struct SharedViewTests {
  private static func plan(_ job: SharedJob) throws -> [String: Any] {
    let result = try job.batch("plan", "job.json", "--json")
    #expect(result.status == 0, "\(result.errors)")
    return try JSONOutput.object(result.output)
  }

  private static func warnings(_ job: SharedJob) throws -> String {
    (try plan(job)["warnings"] as? [String] ?? []).joined(separator: "\n")
  }

  // MARK: Views

  @Test(arguments: ["row", "skip"])
  func `a condition on a view that reads other rows is applied again only if the job demands it`(
    recheck: String
  ) throws {
    let job = try SharedJob(
      rows: 500,
      """
      UPDATE t SET n = id;
      CREATE VIEW v AS SELECT id, n, (SELECT avg(n) FROM t) AS mean FROM t
      """
    )
    let source: [String: Any] = [
      "entity": "v", "key": ["id"], "where": "n > mean", "orderBy": ["id"], "recheck": recheck,
    ]
    let action: [String: Any] = ["type": "update", "set": ["n": "n * 10"]]
    try job.writeJob(["source": source, "action": action, "chunk": ["size": 10]])
    let rechecking = try #require(try Self.plan(job)["recheck"] as? [String: Any])
    #expect((rechecking["terms"] as? [String])?.count == (recheck == "row" ? 0 : 1))
    #expect((rechecking["notRechecked"] as? [Any])?.count == (recheck == "row" ? 1 : 0))
    let caution = "where reads other rows"
    #expect(try Self.warnings(job).contains(caution) == (recheck == "row"))
    #expect(try job.batch("run", "job.json").status == 0)
    // As one UPDATE would: the run's own work does not decide which rows are above the average.
    let changed = try job.database.text("SELECT count(*) FROM t WHERE n <> id")
    #expect((changed == "250") == (recheck == "row"), "\(changed ?? "")")
  }

  @Test func `a condition on a view of single rows is applied again`() throws {
    let job = try SharedJob(
      rows: 500,
      "CREATE VIEW v AS SELECT id, n, id % 2 = 0 AS even FROM t WHERE id > 0"
    )
    let source: [String: Any] = ["entity": "v", "key": ["id"], "where": "even AND n = 0"]
    try job.writeJob(["source": source, "throttle": ["identifiersPerSecond": 100], "workers": 1])
    let rechecking = try #require(try Self.plan(job)["recheck"] as? [String: Any])
    #expect((rechecking["terms"] as? [String])?.count == 1)
    let program = try job.start()
    try job.untilDone(1)
    try job.database.run("UPDATE t SET n = 7 WHERE id = 500")
    try job.batch("set", "job.json", "throttle.identifiersPerSecond=none")
    #expect(program.wait().status == 0)
    #expect(try job.counts() == ["0 x 250", "1 x 249", "7 x 1"])
  }

  // MARK: A table that refers to itself

  private static func writeDeletion(_ job: SharedJob, _ order: [String] = []) throws {
    var source: [String: Any] = ["entity": "t", "everything": true]
    if !order.isEmpty { source["orderBy"] = order }
    try job.writeJob(["source": source, "action": ["type": "delete"], "workers": 1])
  }

  @Test func `a plan of a deletion names the order in which no row fails`() throws {
    let job = try SharedJob(
      rows: 1_000,
      """
      ALTER TABLE t ADD up bigint REFERENCES t; CREATE INDEX ON t (up);
      UPDATE t SET up = id - 1 WHERE id > 1
      """
    )
    try Self.writeDeletion(job)
    let words = "rows of \"t\" refer to one another (\"t_up_fkey\")"
    let remedy = "none would with \"orderBy\": [\"-id\"]"
    #expect(try Self.warnings(job).contains(words))
    #expect(try Self.warnings(job).contains(remedy))
    #expect(try job.batch("run", "job.json").status == 1)
    try Self.writeDeletion(job, ["id"])
    #expect(try Self.warnings(job).contains(remedy))
    try Self.writeDeletion(job, ["-id"])
    #expect(try !Self.warnings(job).contains(words))
    let result = try job.batch("run", "job.json", "--fresh")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == [])
  }

  @Test(arguments: [
    // Rows refer to newer ones.
    ("UPDATE t SET up = id + 1 WHERE id < 1000", "none would with \"orderBy\": [\"id\"]"),
    // No order by key helps.
    (
      "UPDATE t SET up = CASE WHEN id % 2 = 0 THEN id - 1 ELSE id + 3 END WHERE id < 900",
      "refer to one another"
    ),
    // Of one chunk, all rows go at once, and a row may refer to itself.
    ("UPDATE t SET up = id - 1 WHERE id = 2; DELETE FROM t WHERE id > 90", ""),
    ("UPDATE t SET up = id", ""),
    ("", ""),
    // The server deletes the others by itself.
    (
      "UPDATE t SET up = id - 1 WHERE id > 1; ALTER TABLE t DROP CONSTRAINT t_up_fkey, ADD FOREIGN KEY (up) REFERENCES t ON DELETE SET NULL",
      ""
    ),
  ])
  func `a plan warns of rows that refer to one another only where some would fail`(
    script: String,
    expected: String
  ) throws {
    let job = try SharedJob(
      rows: 1_000,
      "ALTER TABLE t ADD up bigint REFERENCES t; CREATE INDEX ON t (up); \(script)"
    )
    try Self.writeDeletion(job)
    let warnings = try Self.warnings(job)
    #expect(warnings.contains("refer to one another") == !expected.isEmpty, "\(warnings)")
    #expect(warnings.contains(expected) || expected.isEmpty, "\(warnings)")
    if !expected.contains("none") { #expect(!warnings.contains("none would with")) }
    if expected.isEmpty { #expect(try job.batch("run", "job.json").status == 0) }
  }
}
#endif
