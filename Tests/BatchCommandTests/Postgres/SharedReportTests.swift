#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Reports of runs on PostgreSQL, and the space that they give back.
@Suite(.timeLimit(.minutes(10))) struct SharedReportTests {
  private func report(_ job: SharedJob, _ name: String = "run.json") throws -> [String: Any] {
    try JSONOutput.object(String(decoding: job.directory.read(name), as: UTF8.self))
  }

  private func number(_ job: SharedJob, _ sql: String) throws -> Int64? {
    try job.database.session().integer(sql)
  }

  // MARK: Reports

  @Test func `a report has the counts, the failures and the pace of its run`() throws {
    let job = try SharedJob(
      rows: 3_000,
      "ALTER TABLE t ADD CHECK (n = 0 OR id % 1000 <> 7)",
      adding: [
        "report": ["path": "run.json"], "skip": ["limit": 10], "description": "Adds one",
        "throttle": ["identifiersPerSecond": 1_000],
      ]
    )
    // A killed process leaves no report; the next one has the whole run in it.
    let killed = try job.start()
    try job.untilDone(500)
    killed.send(SIGKILL)
    _ = killed.wait()
    #expect(!FileManager.default.fileExists(atPath: job.directory.file("run.json")))
    let run = try job.start().wait()
    try #require(run.status == 4, "\(run.errors)")
    let told = try report(job)
    let summary = try #require(told["summary"] as? [String: Any])
    #expect(summary["state"] as? String == "completedWithFailures")
    let outcomes = try #require(summary["outcomes"] as? [String: Int])
    #expect(
      try outcomes["succeeded"].map(Int64.init) == number(job, "SELECT count(*) FROM t WHERE n = 1")
    )
    let failures = try #require(told["failures"] as? [[String: Any]])
    #expect(failures.map { $0["identifier"] as? String } == ["7", "1007", "2007"])
    #expect(failures.allSatisfy { ($0["message"] as? String)?.contains("t_check") == true })
    #expect(told["entity"] as? String == "t" && told["description"] as? String == "Adds one")
    let points = try #require(told["pace"] as? [[String: Double]])
    let done = points.compactMap { $0["done"] }
    let seconds = points.compactMap { $0["seconds"] }
    #expect(done == done.sorted() && done.last == 3_000, "\(points)")
    #expect(seconds == seconds.sorted() && points.count >= 1, "\(points)")

    let written = try job.batch("report", "job.json", "--output", "again.json")
    #expect(written.status == 0, "\(written.errors)")
    let again = try report(job, "again.json")
    for key in ["failures", "pace", "entity", "action", "startedAt", "database"] {
      #expect(try JSONOutput.text(again[key]) == JSONOutput.text(told[key]), "\(key)")
    }
    let page = try job.batch("report", "job.json", "--output", "run.html")
    #expect(page.status == 0, "\(page.errors)")
    let html = String(decoding: try job.directory.read("run.html"), as: UTF8.self)
    #expect(html.contains("completed with failures") && html.contains("1007"))
  }

  @Test func `a stopped run has a report, and a file that is none is refused`() throws {
    let job = try SharedJob(
      rows: 5_000,
      adding: SharedJob.slowly.merging(["report": ["path": "run.html"]]) { $1 }
    )
    try job.directory.write("mine", to: "run.html")
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2 && refused.errors.contains("is not a run's report"), "\(refused)")
    #expect(try job.counts() == ["0 x 5000"])
    try FileManager.default.removeItem(atPath: job.directory.file("run.html"))
    let process = try job.start()
    try job.untilDone(500)
    process.send(SIGTERM)
    #expect(process.wait().status == 3)
    let html = String(decoding: try job.directory.read("run.html"), as: UTF8.self)
    #expect(html.contains(": stopped"))
  }

  // MARK: Space

  /// Sizes in the last event, and in the status.
  private func sizes(_ run: BatchProgram.Result, _ job: SharedJob) throws -> [Int64] {
    let last = try #require(try JSONOutput.lines(run.output).last)
    let space = try #require(last["afterwards"] as? [String: Any], "\(last)")
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(try JSONOutput.text(status["afterwards"]) == JSONOutput.text(space))
    #expect(space["by"] as? String == "vacuum" && space["error"] == nil, "\(space)")
    return ["bytesBefore", "bytesAfter"].compactMap { (space[$0] as? Int).map(Int64.init) }
  }

  private static var purge: [String: Any] {
    [
      "source": ["entity": "t", "where": "id > 1000"], "action": ["type": "delete"],
      "afterwards": "vacuum",
    ]
  }

  @Test(arguments: ["table", "partitions", "children"])
  func `a purge vacuums its table, and says the sizes`(kind: String) throws {
    let job = try SharedJob(rows: 20_000, adding: Self.purge)
    switch kind {
    case "partitions":
      try job.database.run(
        """
        ALTER TABLE t RENAME TO old;
        CREATE TABLE t (id bigint PRIMARY KEY, n int) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10001);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10001) TO (30000);
        INSERT INTO t SELECT * FROM old;
        """
      )
    case "children":
      try job.database.run(
        """
        CREATE TABLE "my child" () INHERITS (t);
        WITH gone AS (DELETE FROM t WHERE id > 10000 RETURNING *) INSERT INTO "my child" SELECT * FROM gone;
        """
      )
      try job.database.session().execute("VACUUM t")
      try job.writeJob(
        Self.purge.merging(["source": ["entity": "t", "where": "id > 1000", "key": ["id"]]]) { $1 }
      )
    default: break
    }
    let size = """
      (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
      WHERE relname IN ('t', 't1', 't2', 'my child') AND relkind = 'r')::bigint
      """
    let before = try #require(try number(job, "SELECT \(size)"))
    let plan = try job.batch("plan", "job.json")
    #expect(plan.output.contains("afterwards  vacuum of"), "\(plan.output)\(plan.errors)")
    let others = try (1...2).map { _ in try job.start() }
    let ended = others.map { $0.wait() }
    let run = try #require(ended.first { $0.status == 0 }, "\(ended.map(\.errors))")
    let sizes = try sizes(run, job)
    #expect(sizes.count == 2)
    #expect(sizes[0] >= before && sizes[1] < sizes[0], "\(sizes), \(before)")
    // Another process may vacuum a last time after that.
    #expect(try number(job, "SELECT \(size)") ?? 0 <= sizes[1])
    #expect(
      try number(
        job,
        "SELECT count(*) FROM pg_stat_user_tables WHERE relname IN ('t', 't1', 't2', 'my child')"
          + " AND vacuum_count > 0"
      ) ?? 0 >= (kind == "table" ? 1 : 2)
    )
    #expect(try number(job, "SELECT count(*) FROM t") == 1_000)
  }

  @Test func `a run that was killed while it vacuums does so when it resumes`() throws {
    let job = try SharedJob(rows: 5_000, adding: Self.purge)
    // VACUUM waits for whoever holds the table.
    let holder = try job.database.session()
    let process = try job.start()
    while let line = process.nextLine(), !line.contains("\"done\":4000,") {}
    try holder.execute("BEGIN")
    try holder.execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
    process.send(SIGKILL)
    _ = process.wait()
    try holder.execute("ROLLBACK")
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try number(job, "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 't'") ?? 0 >= 1
    )
    #expect(try number(job, "SELECT count(*) FROM t") == 1_000)
  }

  @Test func `a signal ends a vacuum that waits, and the next run does it`() throws {
    let job = try SharedJob(rows: 2_000, adding: Self.purge)
    let holder = try job.database.session()
    try holder.execute("BEGIN")
    try holder.execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
    let process = try job.start()
    try job.wait(
      until:
        "EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'VACUUM %' AND wait_event_type = 'Lock' AND datname = current_database())"
    )
    #expect(try number(job, "SELECT count(*) FROM t") == 1_000)
    process.send(SIGTERM)
    let stopped = process.wait()
    #expect(stopped.status == 3, "\(stopped.errors)")
    let status = try job.batch("status", "job.json")
    #expect(status.output.contains("not done yet"), "\(status.output)")
    try holder.execute("ROLLBACK")
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try sizes(run, job).count == 2)
  }

  @Test func `a cancellation ends a vacuum that waits, and two processes wait for one`() throws {
    let job = try SharedJob(rows: 2_000, adding: Self.purge)
    let holder = try job.database.session()
    try holder.execute("BEGIN")
    try holder.execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
    let waiting =
      "pg_stat_activity WHERE query LIKE 'VACUUM %' AND wait_event_type = 'Lock' AND datname = current_database()"
    let process = try job.start()
    try job.wait(until: "EXISTS (SELECT FROM \(waiting))")
    let cancel = try job.batch("cancel", "job.json")
    #expect(cancel.status == 0, "\(cancel.errors)")
    let request = ContinuousClock.now
    let cancelled = process.wait()
    #expect(cancelled.status == 3, "\(cancelled.errors)")
    #expect(request.duration(to: .now) < .seconds(5))
    let both = try (1...2).map { _ in try job.start() }
    // Longer than the time to wait for another lock.
    try job.wait(
      until:
        "(SELECT count(*) FROM \(waiting) AND clock_timestamp() - query_start > interval '6 s') = 2"
    )
    try holder.execute("ROLLBACK")
    let runs = both.map { $0.wait() }
    #expect(runs.allSatisfy { $0.status == 0 }, "\(runs.map(\.errors))")
    #expect(runs.allSatisfy { !$0.errors.contains("has failed") }, "\(runs.map(\.errors))")
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    let space = try #require(status["afterwards"] as? [String: Any])
    #expect(space["bytesAfter"] is Int && space["error"] == nil, "\(space)")
  }

  @Test func `old rows that a vacuum cannot remove are told`() throws {
    let job = try SharedJob(rows: 20_000, adding: Self.purge)
    let reader = try job.database.session()
    try reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try reader.execute("SELECT count(*) FROM pg_class")
    let run = try job.start().wait()
    try reader.execute("ROLLBACK")
    #expect(
      run.status == 0
        && (run.output + run.errors).contains("19,000 old rows of"),
      "\(run)"
    )
    let status = try job.batch("status", "job.json")
    #expect(status.output.contains("an older transaction may read them"), "\(status.output)")
  }

  @Test func `what cannot be vacuumed is refused before the first row`() throws {
    let job = try SharedJob(
      rows: 2_000,
      """
      CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA public TO clerk; GRANT SELECT, DELETE ON t TO clerk;
      CREATE VIEW v AS SELECT * FROM t;
      """
    )
    try job.writeJob(Self.purge.merging(["database": ["url": job.url(role: "clerk")]]) { $1 })
    let plan = try job.batch("run", "job.json")
    #expect(plan.status == 2 && plan.errors.contains("may not vacuum public.t"), "\(plan)")
    try job.writeJob(Self.purge.merging(["afterwards": "incremental"]) { $1 })
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2 && refused.errors.contains("SQLite file"), "\(refused)")
    #expect(try number(job, "SELECT count(*) FROM t") == 2_000)
  }
}
#endif
