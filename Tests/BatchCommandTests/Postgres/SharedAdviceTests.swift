#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// What commands foretell of a shared run, and what the next command then does.
@Suite(.timeLimit(.minutes(5))) struct SharedAdviceTests {
  /// Begins a run that stops before its end.
  private static func begin(_ job: SharedJob, adding more: [String: Any] = [:]) throws {
    let slowly: [String: Any] = ["throttle": ["identifiersPerSecond": 500]]
    try job.writeJob(more.merging(slowly) { $1 })
    let program = try job.start()
    _ = try program.event("started")
    try job.untilDone(200)
    program.send(SIGTERM)
    #expect(program.wait().status == 3)
    try job.writeJob(more)
  }

  @Test(arguments: [
    "ALTER TABLE t RENAME n TO m", "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "ALTER TABLE t DROP n; ALTER TABLE t ADD n int NOT NULL DEFAULT 0",
  ])
  func `status and plan foretell that a run over a changed schema is refused`(
    change: String
  ) throws {
    let job = try SharedJob(rows: 2_000)
    try Self.begin(job)
    #expect(try job.batch("status", "job.json").output.contains("resumes the unfinished run"))
    try job.database.run(change)
    let status = try job.batch("status", "job.json").output
    #expect(status.contains("batch run:") && status.contains("refuses: "), "\(status)")
    #expect(!status.contains("resumes the unfinished run"), "\(status)")
    let plan = try job.batch("plan", "job.json")
    let told = plan.output + plan.errors
    #expect(plan.status == 2 || told.contains("batch run refuses: "), "\(told)")
    #expect(try job.start().wait().status == 2)
  }

  @Test
  func `an undo of a delete says what has not come back, and its statement removes just that`()
    throws
  {
    let job = try SharedJob(
      rows: 300,
      """
      CREATE TABLE items (id bigint PRIMARY KEY, t_id bigint CONSTRAINT item REFERENCES t ON DELETE CASCADE);
      INSERT INTO items SELECT id, id FROM t; CREATE TABLE archive (LIKE t INCLUDING ALL)
      """
    )
    try job.writeJob([
      "action": ["type": "delete", "archive": ["entity": "archive"]],
      "source": ["entity": "t", "where": "id <= 100"], "undo": true,
    ])
    #expect(try job.start().wait().status == 0)
    #expect(try job.database.text("SELECT count(*)::text FROM items") == "200")
    // A copy with other data is the only place that has them.
    try job.database.run("UPDATE archive SET n = 7 WHERE id = 5")
    let undone = try job.batch("undo", "job.json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(undone.errors.contains("in items by the foreign key \"item\""), "\(undone.errors)")
    let said = try #require(
      undone.errors.firstMatch(
        of: /not undone: 99 copies in archive; this removes them: (DELETE .*)\n/
      )
    )
    try job.database.run(String(said.1))
    #expect(try job.database.text("SELECT string_agg(id::text, ' ') FROM archive") == "5")
    #expect(try job.counts() == ["0 x 300"])
  }

  @Test func `a plan of an undo finds changed rows in tables without statistics`() throws {
    let job = try SharedJob(rows: 60_000)
    try job.database.run("ALTER TABLE t SET (autovacuum_enabled = off)")
    try job.writeJob(["undo": true, "chunk": ["size": 5_000]])
    #expect(try job.start().wait().status == 0)
    try job.database.run(
      "UPDATE t SET n = 5 WHERE id = 59_000; DELETE FROM t WHERE id = 7".replacing("_", with: "")
    )
    let plan = try job.batch("undo", "job.json", "--plan").output
    #expect(plan.contains("undone    59,998 rows"), "\(plan)")
    #expect(plan.contains("identifier 59000: somebody has changed the row since"), "\(plan)")
    #expect(try job.batch("undo", "job.json").status == 4)
    let status = try job.batch("status", "job.json").output
    #expect(status.contains("59,998 of 60,000 rows undone by"), "\(status)")
    #expect(status.contains("; 1 are gone"), "\(status)")
    #expect(try job.counts() == ["0 x 59998", "5 x 1"])
  }

  @Test func `whoever approves names the job of the run, and is told apart by their role`() throws {
    let job = try SharedJob(
      rows: 100,
      "GRANT ALL ON t TO PUBLIC; GRANT ALL ON SCHEMA public TO PUBLIC"
    )
    let role = "approver_\(UUID().uuidString.prefix(8).lowercased())"
    try job.writeJob(["approval": ["by": 1]])
    #expect(try job.start().wait().status == 7)
    try job.database.run(
      "CREATE ROLE \(role) LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO \(role)"
    )
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    let plan = try #require(status["plan"] as? String)
    let database = ["url": job.url(role: role), "lease": SharedJob.lease]
    try job.writeJob([
      "approval": ["by": 1], "database": database,
      "action": ["type": "update", "set": ["n": "99"]],
    ])
    let other = try job.batch("approve", "job.json", "--plan", plan)
    #expect(other.status == 2, "\(other.output)\(other.errors)")
    try job.writeJob(["approval": ["by": 1], "database": database])
    #expect(try job.batch("approve", "job.json", "--plan", plan).output.contains("1 of 1"))
    try job.writeJob(["approval": ["by": 1]])
    for command in ["status", "history"] {
      let told = try job.batch(command, "job.json").output
      #expect(told.contains(" as \(role)"), "\(command): \(told)")
    }
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 100"])
    try job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test func `a plan names only the triggers that fire`() throws {
    let job = try SharedJob(
      rows: 100,
      """
      ALTER TABLE t ADD other int; CREATE TABLE audit (id bigint);
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO audit VALUES (new.id); RETURN new; END $$;
      CREATE TRIGGER never AFTER UPDATE OF other ON t FOR EACH ROW EXECUTE FUNCTION note();
      """
    )
    let plan = try job.batch("plan", "job.json").output
    #expect(!plan.contains("never") && plan.contains("\ntime"), "\(plan)")
    #expect(try job.start().wait().status == 0)
    #expect(try job.database.text("SELECT count(*)::text FROM audit") == "0")
    try job.database.run(
      "CREATE TRIGGER always AFTER UPDATE OF n ON t FOR EACH ROW EXECUTE FUNCTION note()"
    )
    #expect(try job.batch("plan", "job.json").output.contains("always, each row, calls note"))
  }

  @Test func `a row that takes too long is named`() throws {
    let job = try SharedJob(
      rows: 300,
      """
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF new.id = 150 THEN PERFORM pg_sleep(60); END IF; RETURN new; END $$;
      CREATE TRIGGER slow BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION wait();
      """
    )
    try job.database.run("ALTER DATABASE \(job.database.name) SET statement_timeout = '300ms'")
    let run = try job.start().wait()
    #expect(run.status == 1, "\(run.errors)")
    #expect(run.errors.contains("identifier 150: "), "\(run.errors)")
  }

  @Test func `nobody is asked to go on where the process was killed`() throws {
    let job = try SharedJob(rows: 1_000)
    try job.writeJob([
      "canary": ["rows": 100, "then": "pause"], "database": ["url": job.url(), "lease": "60s"],
    ])
    let program = try job.start()
    _ = try program.event("throttled")
    program.send(SIGKILL)
    #expect(program.wait().status == -SIGKILL)
    let resumed = try job.batch("resume", "job.json")
    #expect(resumed.status == 2 && resumed.errors.contains("no run of job"), "\(resumed.errors)")
    #expect(try job.counts() == ["0 x 900", "1 x 100"])
  }
}
#endif
