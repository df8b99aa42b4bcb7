#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// The commands on a PostgreSQL job, as a user runs them.
@Suite(.timeLimit(.minutes(5))) struct PostgresCommandTests {
  @Test func `validate and plan read, and write nothing`() throws {
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
    #expect(sample["before"] as? [String] == ["0"])
    #expect(sample["after"] as? [String] == ["1"])
    #expect(try job.batch("plan", "job.json").output.contains("* n  \"0\" → \"1\""))
    #expect(try job.counts() == ["0 x 1000"])
    #expect(try job.database.text("SELECT 1 FROM pg_class WHERE relname LIKE '\\_batch%'") == nil)
  }

  @Test func `a run deletes rows with their archive and reports it`() throws {
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

  @Test func `identifiers that fail are passed over and named`() throws {
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
    #expect(failed.errors.contains("identifier 7:"), "\(failed.errors)")
  }

  @Test func `a watcher who comes before the run waits for it`() throws {
    let job = try SharedJob(rows: 2_000)
    let watcher = try BatchProgram(["status", "job.json", "--watch"], in: job.directory)
    #expect(try job.start().wait().status == 0)
    let result = watcher.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("2,000 of 2,000 done"), "\(result.output)")
  }

  @Test func `the work of a run ID is done once`() throws {
    let job = try SharedJob(rows: 500)
    #expect(try job.start("--run-id", "monday").wait().status == 0)
    let again = try job.start("--run-id", "monday").wait()
    #expect(again.status == 0)
    #expect(try again.last["runID"] as? String == "monday")
    #expect(try job.counts() == ["1 x 500"])
    #expect(try job.start("--run-id", "tuesday").wait().status == 0)
    #expect(try job.counts() == ["2 x 500"])
    #expect(try job.batch("run", "job.json", "--join-only").status == 2)
    let cleanup = try job.batch("cleanup", "job.json")
    #expect(cleanup.output == "removed 0 runs from the database\n", "\(cleanup.errors)")
  }

  @Test func `a run is paused, resumed, set and cancelled from anywhere`() throws {
    let job = try SharedJob(rows: 60_000)
    try job.writeJob(["throttle": ["identifiersPerSecond": 2_000]])
    let process = try job.start("--run-id", "steered")
    #expect(try process.event("started") != nil)
    #expect(try job.batch("pause", "job.json").status == 0)
    var held = try process.event("throttled")
    while let event = held, event["state"] as? String != "paused" {
      held = try process.event("throttled")
    }
    #expect(held?["throttle"] as? String == "pause: until batch resume")
    #expect(try job.batch("status", "job.json").output.contains("host "))
    let setting = try job.batch("set", "job.json", "throttle.identifiersPerSecond=none")
    #expect(setting.status == 0, "\(setting.errors)")
    #expect(try job.batch("set", "job.json", "throttle.maximumWAL=1GB").status == 2)
    #expect(try job.batch("resume", "job.json").status == 0)
    try job.untilDone(10_000)
    // It may be done by then.
    let cancel = try job.batch("cancel", "job.json")
    let result = process.wait()
    #expect(cancel.status == 0 ? [0, 3].contains(result.status) : result.status == 0)
    #expect(try job.start("--run-id", "steered").wait().status == 0)
    #expect(try job.counts() == ["1 x 60000"])
    #expect(try job.batch("pause", "job.json").status == 2)
  }

  @Test func `the identifiers of a run come in the order that the job asks for`() throws {
    let job = try SharedJob(rows: 25_000)
    try job.writeJob([
      "source": ["entity": "t", "everything": true, "orderBy": ["-id"]], "chunk": ["size": 5_000],
    ])
    #expect(try job.start().wait().status == 0)
    let identifiers = try job.batch("ids", "job.json").output.split(separator: "\n")
    #expect(identifiers.count == 25_000)
    #expect(identifiers.first == "25000" && identifiers.last == "1")
  }

  @Test func `a run whose spans somebody has removed is not complete`() throws {
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

  @Test func `a run gives way to a session that has the table locked`() throws {
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

  @Test func `a run that is alive is not set aside, and one that is not is`() throws {
    let job = try SharedJob(rows: 60_000)
    try job.writeJob(["throttle": ["identifiersPerSecond": 1_000]])
    let process = try job.start()
    #expect(try process.event("started") != nil)
    let refused = try job.start("--fresh").wait()
    #expect(refused.status == 5, "\(refused.errors)")
    process.send(SIGINT)
    #expect(process.wait().status == 3)
    let done = try #require(Int(job.database.text("SELECT sum(n) FROM t") ?? ""))
    try job.writeJob()
    let result = try job.start("--fresh").wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x \(60_000 - done)", "2 x \(done)"])
  }

  @Test func `hooks run`() throws {
    let job = try SharedJob(rows: 100)
    let script = "echo $BATCH_HOOK $BATCH_STATE $BATCH_DONE >> hooks.txt"
    let command = ["sh", "-c", script]
    try job.writeJob(["hooks": ["onStart": command, "onFinish": command]])
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    let told = try String(decoding: job.directory.read("hooks.txt"), as: UTF8.self)
    #expect(told == "onStart running 0\nonFinish completed 100\n")
  }
}
#endif
