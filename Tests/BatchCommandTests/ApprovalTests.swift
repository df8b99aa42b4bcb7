import BatchTestSupport
import Foundation
import Testing

/// Plans that must be approved, and plans that a program names.
@Suite(.timeLimit(.minutes(5))) struct ApprovalTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(100, in: directory)
    try TestDatabase.make(
      in: directory,
      "ALTER TABLE numbers ADD COLUMN first INTEGER",
      "UPDATE numbers SET first = n"
    )
  }

  private func writeJob(
    _ set: [String: String] = ["n": "n + 1"],
    where condition: String = "id > 10",
    adding more: [String: Any] = [:]
  ) throws {
    let base: [String: Any] = ["approval": ["by": 1]]
    try directory.write(
      JobText.update(set, where: condition, adding: base.merging(more) { $1 }),
      to: "job.json"
    )
  }

  private func batch(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory).wait()
  }

  private func changed() throws -> String {
    try TestDatabase.texts(directory.file("test.db"), "SELECT sum(n) - sum(first) FROM numbers")[0]
  }

  /// Approves the plan as another user, which only root can do.
  private func approve(as user: UInt32 = 65_534) throws {
    let plan = try plan()
    let own = try batch("approve", "job.json", "--plan", plan)
    #expect(own.status == 2 && own.errors.contains("whoever began the run"), "\(own.errors)")
    // What `batch approve` of that user would have written.
    let approval = """
      {"digest":"\(plan)","user":"other","host":"here","at":"2026-11-28T00:00:00Z"}
      """
    try directory.write(approval, to: "job.batch.approval.\(user)")
    try #require(chown(directory.file("job.batch.approval.\(user)"), user, user) == 0)
  }

  private func actions(ofRun number: Int = 0) throws -> [String] {
    let history = try JSONOutput.object(batch("history", "job.json", "--json").output)
    let runs = try #require(history["runs"] as? [[String: Any]])
    return (runs[number]["actions"] as? [[String: Any]] ?? []).compactMap { $0["kind"] as? String }
  }

  private func plan() throws -> String {
    try #require(JSONOutput.object(batch("status", "job.json", "--json").output)["plan"] as? String)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be another user"))
  func `a run changes no row before another user has approved its plan`() throws {
    try writeJob()
    let planned = try JSONOutput.object(batch("plan", "job.json", "--json").output)
    let digest = try #require(planned["digest"] as? String)
    #expect(digest.count == 64)
    let first = try batch("run", "job.json", "--json")
    #expect(first.status == 7, "\(first.errors)")
    let last = try #require(JSONOutput.lines(first.output).last)
    #expect(last["plan"] as? String == digest && last["done"] as? Int == 0)
    #expect(try changed() == "0")
    let status = try JSONOutput.object(batch("status", "job.json", "--json").output)
    #expect(status["next"] as? String == "awaitApproval")
    #expect(
      (status["nextWords"] as? String)?.hasSuffix(
        "batch approve job.json --plan \(digest.prefix(12))"
      ) == true
    )
    // It waits again, and an approval of something else is none.
    #expect(try batch("run", "job.json").status == 7)
    let other = try batch("approve", "job.json", "--plan", String(repeating: "a", count: 12))
    #expect(other.status == 2 && other.errors.contains("the run's plan is not"), "\(other.errors)")
    try approve()
    let approved = try JSONOutput.object(batch("status", "job.json", "--json").output)
    #expect(approved["next"] as? String == "resume", "\(approved)")
    #expect(approved["stopReason"] as? String == nil, "\(approved)")
    // Who was refused has not done anything, and neither has a run that was not approved.
    #expect(try actions() == ["began", "approved"])
    let second = try batch("run", "job.json", "--json")
    #expect(second.status == 0, "\(second.errors)")
    #expect(try changed() == "90")
    let late = try batch("approve", "job.json", "--plan", digest)
    #expect(late.status == 2 && late.errors.contains("awaits approval"), "\(late.errors)")
    // The next run has a plan of its own.
    #expect(try batch("run", "job.json").status == 7)
    #expect(try changed() == "90")
    #expect(try actions(ofRun: 1) == ["began", "approved", "resumed"])
    try approve(as: 65_533)
    #expect(try batch("run", "job.json", "--fresh").status == 7)
    #expect(try actions(ofRun: 1) == ["began", "approved", "setAside"])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be another user"))
  func `a run told to wait goes on as soon as it is approved, or stops when told to`() throws {
    try writeJob()
    let stopped = try BatchProgram(["run", "job.json", "--wait", "--json"], in: directory)
    let event = try stopped.wait(forEvent: "throttled")
    #expect((event["throttle"] as? String)?.contains("awaits approval") == true)
    stopped.send(SIGTERM)
    #expect(stopped.wait().status == 7)
    let waiting = try BatchProgram(["run", "job.json", "--wait", "--json"], in: directory)
    _ = try waiting.wait(forEvent: "throttled")
    try approve()
    let result = waiting.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try changed() == "90")
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be another user"), arguments: 0..<8)
  func `what was approved is what runs`(change: Int) throws {
    try writeJob()
    #expect(try batch("run", "job.json").status == 7)
    try approve()
    switch change {
    case 0: try writeJob(["n": "n + 2"])
    case 1: try writeJob(where: "id > 11")
    case 2: try writeJob(adding: ["chunk": ["size": 7]])
    case 3: try writeJob(adding: ["skip": ["limit": 5]])
    case 4: try writeJob(adding: ["approval": ["by": 2]])
    case 5:
      try TestDatabase.make(
        in: directory,
        "CREATE TRIGGER late AFTER UPDATE ON numbers BEGIN DELETE FROM numbers WHERE id = 3; END"
      )
    case 6: try writeJob(adding: ["hooks": ["onFinish": ["/bin/true"]]])
    default: try TestDatabase.make(in: directory, "ALTER TABLE numbers RENAME COLUMN n TO m")
    }
    // What status says is what the run does.
    let told = try JSONOutput.object(batch("status", "job.json", "--json").output)
    #expect(told["next"] as? String == "refuse", "\(told)")
    let refused = try batch("run", "job.json")
    #expect(refused.status == 2 || refused.status == 1, "\(refused.errors)")
    if change < 7 { #expect(try changed() == "0") }
    if change == 7 { return }
    // Another plan needs another approval.
    #expect(try batch("run", "job.json", "--fresh").status == 7)
    #expect(try changed() == "0")
  }

  @Test func `an approval is of the job that is named`() throws {
    try writeJob()
    #expect(try batch("run", "job.json").status == 7)
    let plan = try plan()
    try writeJob(["n": "99"])
    let other = try batch("approve", "job.json", "--plan", plan)
    #expect(other.status == 2 && !other.errors.contains("whoever began"), "\(other.errors)")
    try writeJob()
    #expect(
      try batch("approve", "job.json", "--plan", plan).errors.contains("whoever began the run")
    )
    #expect(try changed() == "0")
  }

  @Test func `a program's run executes only the plan that it names`() throws {
    try directory.write(
      JobText.update(where: "id > 10", adding: ["chunk": ["size": 10]]),
      to: "job.json"
    )
    let before = try JSONOutput.object(batch("plan", "job.json", "--json").output)
    #expect(before["digest"] == nil)
    func digest() throws -> String {
      let plan = try batch("plan", "job.json", "--digest", "--json")
      return try #require(JSONOutput.object(plan.output)["digest"] as? String, "\(plan.errors)")
    }
    let first = try digest()
    #expect(try digest() == first)
    let wrong = try batch("run", "job.json", "--plan", String(first.reversed()))
    #expect(wrong.status == 2 && wrong.errors.contains(first), "\(wrong.errors)")
    // A row more, a row fewer, another value: only the rows that are selected are part of the plan.
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = n WHERE id = 50")
    #expect(try digest() == first)
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id = 50")
    #expect(try digest() != first)
    let late = try batch("run", "job.json", "--plan", first)
    #expect(late.status == 2 && late.errors.contains("for 89 rows"), "\(late.errors)")
    #expect(try batch("status", "job.json").status != 0)
    let second = try digest()
    #expect(try batch("run", "job.json", "--plan", String(second.prefix(11))).status == 2)
    let run = try batch("run", "job.json", "--plan", String(second.prefix(12)))
    #expect(run.status == 0, "\(run.errors)")
  }

  #if PostgreSQL
  @Test func `a shared run changes no row before another role has approved its plan`() throws {
    let job = try SharedJob(rows: 500)
    try job.database.run(
      """
      DO $$ BEGIN CREATE ROLE approver SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$
      """
    )
    try job.writeJob(["approval": ["by": 1], "undo": true])
    let planned = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    let digest = try #require(planned["digest"] as? String)
    let first = try job.start().wait()
    #expect(first.status == 7, "\(first.errors)")
    #expect(try first.last["plan"] as? String == digest)
    #expect(try job.counts() == ["0 x 500"])
    let own = try job.batch("approve", "job.json", "--plan", digest)
    #expect(own.status == 2 && own.errors.contains("whoever began the run"), "\(own.errors)")
    let waiting = try job.start("--wait")
    _ = try waiting.event("throttled")
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(status["next"] as? String == "awaitApproval", "\(status)")
    // The same job, as another role.
    try job.writeJob([
      "approval": ["by": 1], "undo": true,
      "database": ["url": job.url(role: "approver"), "lease": SharedJob.lease],
    ])
    let approved = try job.batch("approve", "job.json", "--plan", String(digest.prefix(12)))
    #expect(approved.status == 0, "\(approved.errors)")
    #expect(waiting.wait().status == 0)
    #expect(try job.counts() == ["1 x 500"])
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    let actions = (history["runs"] as? [[String: Any]])?.first?["actions"] as? [[String: Any]] ?? []
    let kinds = actions.compactMap { $0["kind"] as? String }
    #expect(kinds.sorted() == ["approved", "began", "resumed"], "\(kinds)")
    try job.writeJob(["approval": ["by": 1], "undo": true, "chunk": ["size": 7]])
    #expect(try job.start().wait().status == 7)
    try job.writeJob(["approval": ["by": 1], "undo": true, "chunk": ["size": 8]])
    let refused = try job.start().wait()
    #expect(
      refused.status == 2 && refused.errors.contains("no longer the plan"),
      "\(refused.errors)"
    )
    // An undo needs none.
    try job.writeJob(["approval": ["by": 1], "undo": true])
    let undone = try job.batch("undo", "job.json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try job.counts() == ["0 x 500"])
  }
  #endif
}
