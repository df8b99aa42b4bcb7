#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// Canaries of runs that processes share.
@Suite(.timeLimit(.minutes(5))) struct SharedCanaryTests {
  private func job(
    _ canary: [String: Any],
    _ script: String = "",
    adding more: [String: Any] = [:]
  ) throws -> SharedJob {
    var keys = more
    keys["canary"] = canary
    keys["undo"] = true
    return try SharedJob(rows: 5000, script, adding: keys)
  }

  private func changed(_ job: SharedJob) throws -> [Int] {
    let ids = try job.database.text(
      "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t WHERE n = 1"
    )
    return (ids ?? "").split(separator: " ").compactMap { Int($0) }
  }

  private func waitAtCanary(_ process: BatchProgram) throws {
    while try process.wait(forEvent: "throttled")["state"] as? String != "paused" {}
  }

  @Test func `processes change only the canary until somebody continues the run`() throws {
    let job = try job(["rows": 60])
    let processes = try (0..<3).map { _ in try job.start() }
    for process in processes { try waitAtCanary(process) }
    let canary = try changed(job)
    #expect(canary.count == 60 && canary.first == 1 && canary.last == 5000)
    #expect(Set(canary.map { ($0 - 1) / 500 }).count == 10, "\(canary)")
    // One is killed, and another comes; both see the same canary.
    processes[0].send(SIGKILL)
    _ = processes[0].wait()
    let late = try job.start()
    try waitAtCanary(late)
    #expect(try changed(job) == canary)
    let listed = try job.batch("ids", "job.json", "--part", "canary", "--format", "key")
    #expect(listed.output.split(separator: "\n").compactMap { Int($0) } == canary)
    // A process tells its hold with its next heartbeat.
    func state() throws -> String? {
      try JSONOutput.object(job.batch("status", "job.json", "--json").output)["state"] as? String
    }
    while try state() != "paused" {}
    // A host whose job has no canary takes no part.
    try job.writeJob(["undo": true])
    let other = try job.start().wait()
    #expect(other.status == 2 && other.errors.contains("a canary of 60 rows"), "\(other.errors)")
    try job.writeJob(["undo": true, "canary": ["rows": 60]])
    #expect(try changed(job) == canary)
    #expect(try job.batch("resume", "job.json").status == 0)
    for process in [late] + processes.dropFirst() {
      let result = process.wait()
      #expect(result.status == 0, "\(result.errors)")
    }
    #expect(try job.counts() == ["1 x 5000"])
    let undo = try job.batch("undo", "job.json", "--part", "canary")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try job.counts().sorted() == ["0 x 60", "1 x 4940"])
    #expect(try job.batch("status", "job.json").output.contains("60 of 5,000 rows undone by"))
    #expect(try job.batch("undo", "job.json", "--part", "rest").status == 0)
    #expect(try job.counts() == ["0 x 5000"])
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    let actions = try #require(status["actions"] as? [[String: Any]])
    #expect(actions.filter { $0["kind"] as? String == "undid" }.count == 2, "\(actions)")
    #expect(try !job.batch("history", "job.json").output.contains("partly undone"))
  }

  @Test func `a time after the canary passes across kills`() throws {
    let job = try job(["rows": 20, "then": "4s"])
    let clock = ContinuousClock()
    let began = clock.now
    let killed = try job.start()
    _ = try killed.wait(forEvent: "throttled")
    #expect(try changed(job).count == 20)
    killed.send(SIGKILL)
    _ = killed.wait()
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(began.duration(to: clock.now) >= .seconds(4))
    #expect(try job.counts() == ["1 x 5000"])
  }

  @Test func `a shared run whose canary fails too often stops there, and its undo restores all`()
    throws
  {
    let job = try job(
      ["rows": 500, "then": "5m", "stopAfter": "1%"],
      "ALTER TABLE t ADD CHECK (n = 0 OR id % 50 <> 0);",
      adding: ["skip": ["limit": 1000]]
    )
    for _ in 0..<2 {
      let run = try job.start().wait()
      #expect(run.status == 1, "\(run.errors)")
      #expect(run.errors.contains("canary have failed, more than 1 %"), "\(run.errors)")
      let status = try job.batch("status", "job.json").output
      #expect(status.contains("refuses: ") && !status.contains("resumes the"), "\(status)")
      #expect(try (400..<500).contains(changed(job).count))
    }
    let undo = try job.batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try job.counts() == ["0 x 5000"])
  }

  @Test func `a canary that failed is tried again once its cause is mended`() throws {
    let job = try job(
      ["rows": 500, "then": "1s", "stopAfter": "1%"],
      "ALTER TABLE t ADD CONSTRAINT c CHECK (n = 0 OR id % 50 <> 0);",
      adding: ["skip": ["limit": 1000]]
    )
    let run = try job.start().wait()
    #expect(run.status == 1, "\(run.errors)")
    #expect(run.errors.contains("batch retry-failed"), "\(run.errors)")
    let canary = try changed(job)
    // While the cause is there, it fails again, and nothing else is changed.
    let vain = try job.batch("retry-failed", "job.json")
    #expect(vain.status == 1, "\(vain.errors)")
    #expect(try changed(job) == canary)
    try job.database.run("ALTER TABLE t DROP CONSTRAINT c")
    let retry = try job.batch("retry-failed", "job.json")
    #expect(retry.status == 0, "\(retry.errors)")
    #expect(try job.counts() == ["1 x 5000"])
  }

  @Test
  func `a run begins anew after the undo of a part only if the rest is undone, or it is asked to`()
    throws
  {
    let job = try job(
      ["rows": 50, "then": "1ms"],
      "ALTER TABLE t ADD CONSTRAINT c CHECK (n = 0 OR id <> 4321);"
    )
    #expect(try job.start("--run-id", "first").wait().status == 1)
    let undo = try job.batch("undo", "job.json", "--part", "canary")
    #expect(undo.status == 0, "\(undo.errors)")
    try job.database.run("ALTER TABLE t DROP CONSTRAINT c")
    let before = try job.counts()
    #expect(before.count == 2)
    for arguments in [[], ["--run-id", "first"]] {
      let run = try BatchProgram(["run", "job.json"] + arguments, in: job.directory).wait()
      #expect(run.status == 2, "\(run.errors)")
      #expect(run.errors.contains("not all of its rows were undone"), "\(run.errors)")
      #expect(try job.counts() == before)
    }
    let status = try job.batch("status", "job.json").output
    #expect(status.contains("refuses"), "\(status)")
    let rest = try job.batch("undo", "job.json", "--part", "rest")
    #expect(rest.status == 0, "\(rest.errors)")
    #expect(try job.counts() == ["0 x 5000"])
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try job.counts() == ["1 x 5000"])
  }

  @Test func `failures of a run that was undone are not retried`() throws {
    let job = try job(
      ["rows": 50, "then": "1ms"],
      "ALTER TABLE t ADD CONSTRAINT c CHECK (n = 0 OR id % 1000 <> 0);",
      adding: ["skip": ["limit": 10]]
    )
    #expect(try job.start().wait().status == 4)
    #expect(try job.batch("undo", "job.json").status == 0)
    try job.database.run("ALTER TABLE t DROP CONSTRAINT c")
    let retry = try job.batch("retry-failed", "job.json")
    #expect(retry.status == 2 && retry.errors.contains("was undone"), "\(retry.errors)")
    #expect(try job.counts() == ["0 x 5000"])
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try job.counts() == ["1 x 5000"])
  }

  @Test func `an unfinished undo of a part says how to finish it`() throws {
    let job = try job(["rows": 50, "then": "1ms"])
    #expect(try job.start().wait().status == 0)
    let command = ["undo", "job.json", "--part", "rest", "--json"]
    let undo = try BatchProgram(command, in: job.directory)
    _ = try undo.wait(forEvent: "started")
    undo.send(SIGKILL)
    _ = undo.wait()
    let other = try job.batch("undo", "job.json")
    #expect(other.status == 2, "\(other.errors)")
    #expect(other.errors.contains("undo job.json --part rest"), "\(other.errors)")
    let all = try job.batch("ids", "job.undo", "--count")
    #expect(all.output == "4950\n", "\(all.errors)")
    let rest = try job.batch("undo", "job.json", "--part", "rest")
    #expect(rest.status == 0, "\(rest.errors)")
    #expect(try job.counts().sorted() == ["0 x 4950", "1 x 50"])
  }

  @Test(arguments: [false, true])
  func `verification goes on only if the shared rows are as the run left them`(meddles: Bool) throws
  {
    let trigger = """
      CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE t SET n = 7 WHERE id = 5000; RETURN NULL; END $$;
      CREATE TRIGGER meddle AFTER UPDATE ON t FOR EACH ROW WHEN (new.id = 5000 AND new.n = 1)
        EXECUTE FUNCTION meddle();
      """
    let job = try job(["rows": 100, "then": "verify"], meddles ? trigger : "")
    let run = try job.start().wait()
    #expect(run.status == (meddles ? 1 : 0), "\(run.errors)")
    #expect(try changed(job).count == (meddles ? 99 : 5000))
    if meddles { #expect(run.errors.contains("not as the run left them"), "\(run.errors)") }
  }
}
#endif
