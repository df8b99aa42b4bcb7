import BatchTestSupport
import Foundation
import Testing

/// Runs that process some rows first.
@Suite(.timeLimit(.minutes(5))) struct CanaryTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(1000, in: directory)
    try TestDatabase.make(
      in: directory,
      "ALTER TABLE numbers ADD COLUMN first INTEGER",
      "UPDATE numbers SET first = n",
      "ALTER TABLE numbers ADD COLUMN seen INTEGER DEFAULT 0"
    )
  }

  private func writeJob(
    _ canary: [String: Any]?,
    _ set: [String: String] = ["n": "n + 1"],
    adding more: [String: Any] = [:]
  ) throws {
    var keys = more
    keys["canary"] = canary
    keys["undo"] = true
    try directory.write(JobText.update(set, where: "id > 0", adding: keys), to: "job.json")
  }

  private func batch(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory).wait()
  }

  private func rows(_ sql: String) throws -> [String] {
    try TestDatabase.texts(directory.file("test.db"), sql)
  }

  private func changed() throws -> [String] {
    try rows("SELECT id FROM numbers WHERE n = first + 1 ORDER BY id")
  }

  private func start() throws -> BatchProgram {
    try BatchProgram(["run", "job.json", "--json"], in: directory)
  }

  @Test func `a run changes its canary, waits for resume, and changes the rest`() throws {
    try writeJob(["rows": 40])
    let run = try start()
    let held = try run.wait(forEvent: "throttled")
    #expect(held["done"] as? Int == 40 && held["state"] as? String == "paused")
    let canary = try changed()
    #expect(canary.count == 40 && canary.first == "1" && canary.last == "1000")
    // Each hundredth of the list has some.
    for tenth in 0..<10 {
      let part = canary.compactMap { Int($0) }.filter { ($0 - 1) / 100 == tenth }
      #expect(!part.isEmpty, "\(tenth)")
    }
    let status = try JSONOutput.object(batch("status", "job.json", "--json").output)
    #expect(status["state"] as? String == "paused", "\(status)")
    #expect((status["throttle"] as? String)?.contains("canary of 40 rows") == true, "\(status)")
    let listed = try batch("ids", "job.json", "--part", "canary", "--format", "key")
    #expect(listed.output.split(separator: "\n").map { String($0) } == canary)
    let others = try batch("ids", "job.json", "--part", "rest", "--outcome", "remaining", "--count")
    #expect(others.output == "960\n")
    #expect(try batch("resume", "job.json").status == 0)
    let result = run.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try changed().count == 1000)
    // Of a finished run, the canary can still be undone.
    let undo = try batch("undo", "job.json", "--part", "canary", "--json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows("SELECT id FROM numbers WHERE n = first ORDER BY id") == canary)
  }

  @Test
  func `a killed run waits again after its canary, and a resume before that counts for nothing`()
    throws
  {
    try writeJob(["rows": 40])
    for _ in 0..<2 {
      let killed = try start()
      _ = try killed.wait(forEvent: "throttled")
      killed.send(SIGKILL)
      _ = killed.wait()
      #expect(try changed().count == 40)
    }
    #expect(try batch("resume", "job.json").status == 2)
    let stopped = try start()
    _ = try stopped.wait(forEvent: "throttled")
    stopped.send(SIGTERM)
    let end = stopped.wait()
    #expect(end.status == 3, "\(end.errors)")
    let status = try JSONOutput.object(batch("status", "job.json", "--json").output)
    #expect(status["stopReason"] as? String == nil, "\(status)")
    // Neither another canary nor none ends the wait.
    for other in [nil, ["rows": 41], ["rows": 40, "then": "1s"]] as [[String: Any]?] {
      try writeJob(other)
      let refused = try batch("run", "job.json")
      #expect(
        refused.status == 2 && refused.errors.contains("a canary of 40 rows"),
        "\(refused.errors)"
      )
    }
    try writeJob(["rows": 40])
    let cancelled = try start()
    _ = try cancelled.wait(forEvent: "throttled")
    #expect(try batch("cancel", "job.json").status == 0)
    #expect(cancelled.wait().status == 3)
    #expect(try changed().count == 40)
    let run = try start()
    _ = try run.wait(forEvent: "throttled")
    #expect(try batch("resume", "job.json").status == 0)
    #expect(run.wait().status == 0)
    #expect(try changed().count == 1000)
  }

  @Test func `a run killed after resume does not wait again`() throws {
    try writeJob(
      ["rows": 40],
      adding: ["throttle": ["identifiersPerSecond": 100], "chunk": ["size": 10]]
    )
    let run = try start()
    while try run.wait(forEvent: "throttled")["state"] as? String != "paused" {}
    #expect(try changed().count == 40)
    #expect(try batch("resume", "job.json").status == 0)
    while try run.wait(forEvent: "progress")["done"] as? Int ?? 0 < 60 {}
    run.send(SIGKILL)
    _ = run.wait()
    try writeJob(["rows": 40])
    let last = try batch("run", "job.json")
    #expect(last.status == 0, "\(last.errors)")
    #expect(try changed().count == 1000)
  }

  @Test func `a run goes on by itself when the time after its canary is over`() throws {
    try writeJob(["rows": 10, "then": "3s"])
    let clock = ContinuousClock()
    let began = clock.now
    let killed = try start()
    _ = try killed.wait(forEvent: "throttled")
    killed.send(SIGKILL)
    _ = killed.wait()
    #expect(try changed().count == 10)
    let result = try batch("run", "job.json")
    #expect(result.status == 0, "\(result.errors)")
    #expect(began.duration(to: clock.now) >= .seconds(3))
    #expect(try changed().count == 1000)
  }

  @Test func `an order is obeyed, so the canary has the first rows`() throws {
    let source: [String: Any] = ["entity": "numbers", "where": "id > 0", "orderBy": ["-id"]]
    try writeJob(["rows": 30], adding: ["source": source])
    let run = try start()
    _ = try run.wait(forEvent: "throttled")
    #expect(try changed() == (971...1000).map(String.init))
    run.send(SIGTERM)
    _ = run.wait()
    #expect(try batch("undo", "job.json").status == 0)
    #expect(try changed() == [])
  }

  @Test(arguments: [1, 2, 24, 25, 26, 999, 1000, 1001])
  func `a canary has as many rows as it says, and a list without others has none`(rows: Int) throws
  {
    try writeJob(["rows": rows])
    if rows >= 1000 {
      #expect(try batch("run", "job.json").status == 0)
      return
    }
    let run = try start()
    _ = try run.wait(forEvent: "throttled")
    #expect(try changed().count == rows)
    #expect(try batch("resume", "job.json").status == 0)
    #expect(run.wait().status == 0)
    #expect(try changed().count == 1000)
  }

  @Test func `a run whose canary fails too often stops there, and its undo restores all`() throws {
    // Wrong for a row in fifty.
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER no BEFORE UPDATE ON numbers WHEN new.id % 50 = 0
      BEGIN SELECT raise(ABORT, 'no such price'); END
      """
    )
    let canary: [String: Any] = ["rows": 500, "then": "5m", "stopAfter": "1%"]
    try writeJob(canary, adding: ["skip": ["limit": 1000]])
    let run = try batch("run", "job.json")
    #expect(run.status == 1, "\(run.errors)")
    #expect(run.errors.contains("canary have failed, more than 1 %"), "\(run.errors)")
    #expect(!run.errors.contains("the same command"), "\(run.errors)")
    #expect(try changed().count < 500 && changed().count > 400)
    // The same command says the same, as its status and its plan foretell.
    for command in ["status", "plan"] {
      let told = try batch(command, "job.json").output.split(separator: "\n").last {
        $0.contains("batch run")
      }
      #expect(told?.contains("refuses:") == true, "\(command): \(told ?? "")")
    }
    #expect(try batch("run", "job.json").status == 1)
    #expect(try changed().count < 500)
    let undo = try batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows("SELECT count(*) FROM numbers WHERE n <> first") == ["0"])
  }

  @Test func `a raised limit lets a run go on whose canary has failed`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER no BEFORE UPDATE ON numbers WHEN new.id % 50 = 0
      BEGIN SELECT raise(ABORT, 'no such price'); END
      """
    )
    let skip = ["skip": ["limit": 1000]]
    try writeJob(["rows": 100, "then": "1s", "stopAfter": "0%"], adding: skip)
    #expect(try batch("run", "job.json").status == 1)
    try writeJob(["rows": 100, "then": "1s", "stopAfter": "10%"], adding: skip)
    #expect(try batch("status", "job.json").output.contains("resumes the unfinished run"))
    let run = try batch("run", "job.json")
    #expect(run.status == 4, "\(run.errors)")
    #expect(try changed().count == 980)
    // A retry has no canary.
    try TestDatabase.make(in: directory, "DROP TRIGGER no")
    #expect(try batch("retry-failed", "job.json").status == 0)
    #expect(try changed().count == 1000)
  }

  @Test(arguments: [false, true])
  func `verification goes on only if the rows are as the run left them`(meddles: Bool) throws {
    if meddles {
      try TestDatabase.make(
        in: directory,
        """
        CREATE TRIGGER meddle AFTER UPDATE OF n ON numbers WHEN new.id = 1000
        BEGIN UPDATE numbers SET n = 77 WHERE id = 1; END
        """
      )
    }
    try writeJob(["rows": 100, "then": "verify"])
    let run = try batch("run", "job.json")
    #expect(run.status == (meddles ? 1 : 0), "\(run.errors)")
    #expect(try changed().count == (meddles ? 99 : 1000))
    guard meddles else { return }
    #expect(run.errors.contains("not as the run left them"), "\(run.errors)")
    // Whoever finds them right goes on as the message says.
    #expect(run.errors.contains("set canary.then to \"pause\""), "\(run.errors)")
    try writeJob(["rows": 100, "then": "pause"])
    let again = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = try again.wait(forEvent: "throttled")
    #expect(try batch("resume", "job.json").status == 0)
    #expect(again.wait().status == 0)
    #expect(try changed().count == 999)
  }

  @Test func `a canary that makes no sense is refused`() throws {
    func problem(_ canary: [String: Any], adding more: [String: Any] = [:]) throws -> String {
      var keys = more
      keys["canary"] = canary
      try directory.write(JobText.update(where: "id > 0", adding: keys), to: "job.json")
      let result = try batch("validate", "job.json")
      #expect(result.status == 2)
      return result.errors
    }
    #expect(try problem(["rows": 0]).contains("canary.rows: is 0"))
    #expect(try problem(["then": "pause"]).contains("rows"))
    #expect(try problem(["rows": 5, "then": "soon"]).contains("\"soon\""))
    #expect(try problem(["rows": 5, "then": "verify"]).contains("\"undo\": true"))
    #expect(try problem(["rows": 5, "stopAfter": "1%"]).contains("add skip"))
    #expect(try problem(["rows": 5, "stopAfter": "101%"], adding: ["skip": 5]).contains("100%"))
    #expect(try problem(["rows": 5, "stopAfter": 0.01]).contains("a share such as"))
    let export: [String: Any] = ["type": "export", "file": "out.csv", "format": "csv"]
    let refusal = try problem(["rows": 5], adding: ["action": export])
    #expect(refusal.contains("an export changes no row"))
  }

  @Test func `a rehearsal waits neither for approval nor after a canary, and an undo neither`()
    throws
  {
    try writeJob(["rows": 40], adding: ["approval": ["by": 1]])
    let rehearsal = try batch("rehearse", "job.json")
    #expect(rehearsal.status == 0, "\(rehearsal.errors)")
    try writeJob(["rows": 40])
    let run = try start()
    _ = try run.wait(forEvent: "throttled")
    #expect(try batch("resume", "job.json").status == 0)
    #expect(run.wait().status == 0)
    #expect(try batch("undo", "job.json").status == 0)
    #expect(try changed() == [])
  }

  @Test func `the canary that is undone is that of the last run that has changed rows`() throws {
    try writeJob(
      ["rows": 100, "then": "1ms"],
      adding: ["source": ["entity": "numbers", "where": "n = first"]]
    )
    #expect(try batch("run", "job.json").status == 0)
    #expect(try changed().count == 1000)
    #expect(try batch("run", "job.json").status == 0)
    let undo = try batch("undo", "job.json", "--part", "canary")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try changed().count == 900)
  }

  @Test func `a run without a canary has no parts to select or to undo`() throws {
    try writeJob(nil)
    #expect(try batch("run", "job.json").status == 0)
    for command in [["ids"], ["undo"], ["undo", "--plan"]] {
      for part in ["canary", "rest"] {
        let result = try BatchProgram(
          [command[0], "job.json", "--part", part] + command.dropFirst(),
          in: directory
        ).wait()
        #expect(result.status == 2, "\(result.errors)")
        #expect(result.errors.contains("has no canary"), "\(result.errors)")
      }
    }
    #expect(try changed().count == 1000)
  }

  @Test func `the undos of the parts of a run are added up`() throws {
    try writeJob(["rows": 40, "then": "1ms"], adding: ["skip": ["limit": 100]])
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER bad BEFORE UPDATE ON numbers WHEN old.id IN (1, 1000, 500) AND new.n > old.n"
        + " BEGIN SELECT RAISE(ABORT, 'bad'); END"
    )
    #expect(try batch("run", "job.json").status == 4)
    // Failed rows have nothing to undo, and are no rows of another run.
    let plan = try batch("undo", "job.json", "--part", "canary", "--plan")
    #expect(plan.status == 0 && !plan.errors.contains("not of this run"), "\(plan.errors)")
    let canary = try batch(
      "ids",
      "job.json",
      "--part",
      "canary",
      "--outcome",
      "succeeded",
      "--count"
    )
    let count = try #require(Int(canary.output.dropLast()))
    #expect((37...40).contains(count))
    #expect(try batch("undo", "job.json", "--part", "canary").status == 0)
    #expect(try changed().count == 997 - count)
    let half = try batch("status", "job.json").output
    #expect(half.contains("\(count) of 997 rows undone by"), "\(half)")
    #expect(try batch("history", "job.json").output.contains("partly undone"))
    #expect(try batch("undo", "job.json", "--part", "rest").status == 0)
    #expect(try changed() == [])
    let whole = try batch("status", "job.json").output
    #expect(whole.contains("undone by") && !whole.contains("of 997 rows undone"), "\(whole)")
    #expect(try !batch("history", "job.json").output.contains("partly undone"))
    let status = try JSONOutput.object(batch("status", "job.json", "--json").output)
    let actions = try #require(status["actions"] as? [[String: Any]])
    #expect(actions.filter { $0["kind"] as? String == "undid" }.count == 2, "\(actions)")
  }
}
