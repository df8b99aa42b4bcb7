import BatchTestSupport
import Foundation
import Testing

/// The life of a run, as whoever gives the commands sees it: the same in every world.
///
/// What only one world has is in the tests of that world.
@Suite(.timeLimit(.minutes(10))) struct RunLifeTests {
  // MARK: Beginning and resuming

  @Test(arguments: World.all { !$0.isUndo })
  func `a run over no rows completes, and the next run finds new rows`(
    world: World
  ) throws {
    let life = try world.make(rows: 0)
    let empty = try life.run()
    #expect(empty.names == ["started", "finished"])
    #expect(empty.last["total"] as? Int == 0 && empty.last["state"] as? String == "completed")
    try life.insertRow()
    #expect(try life.run().names == ["started", "finished"])
    try life.expectDone()
  }

  @Test func `the readers of a selection stop when one of them has failed`() throws {
    let life = try World.sqlite.make()
    // Far apart, so that several readers share them; only statements without others in them are shared.
    try life.execute("UPDATE numbers SET id = id * 2000")
    let heavy = "length(replace(hex(zeroblob(2000000 + id)), '00', 'x')) > 0"
    let failing = "CASE WHEN id = 2000 THEN abs(-9223372036854775807 - 1) ELSE \(heavy) END"
    let whole = try secondsOfSelection(heavy, in: life, expecting: 0)
    let stopped = try secondsOfSelection(failing, in: life, expecting: 2)
    #expect(stopped < whole / 2, "\(stopped) s of \(whole)")
  }

  /// The processor time of a run that selects rows by a condition with two readers.
  private func secondsOfSelection(
    _ condition: String,
    in life: any RunWorld,
    expecting status: Int
  ) throws -> Double {
    try life.write(["source": ["entity": "numbers", "where": condition], "workers": 2])
    let command = "'\(BatchProgram.path)' run job.json; echo $?; times"
    let said = try BatchProgram(["-c", command], of: "/bin/sh", in: life.directory).wait().output
    #expect(said.contains("\(status)\n"), "\(said)")
    // The times of the shell, then those of its program.
    let times = try #require(said.split(separator: "\n").last).matches(of: /0m([0-9.]+)s/)
    return times.reduce(0) { $0 + (Double($1.1) ?? .nan) }
  }

  #if PostgreSQL
  @Test func `the readers of a selection on a server stop when one of them has failed`() throws {
    let life = try World.postgres.make()
    try life.execute("UPDATE t SET id = id * 2000")
    // Whoever reads the last row does not come back.
    let condition = """
      CASE WHEN id = 2000 THEN 1 / (id - id) WHEN id = 120000 THEN
        (WITH RECURSIVE c(i) AS (SELECT id UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c)
      ELSE (SELECT count(*) FROM generate_series(id, id + 200000)) END > 0
      """
    try life.write(["source": ["entity": "t", "where": condition], "workers": 2])
    let process = try life.start()
    let ends = process.ends(withinSeconds: 60)
    if !ends { process.send(SIGKILL) }
    #expect(process.wait().status == 2 && ends)
  }
  #endif

  @Test(arguments: World.allCases)
  func `a killed run resumes at its progress and does each row once`(world: World) throws {
    let life = try world.make()
    let (first, held) = try life.hold()
    try life.end(first, by: SIGKILL)
    #expect(try life.directory.names().contains { $0.hasSuffix(".lock") } == !world.isShared)
    let status = try life.object("status")
    #expect(status["next"] as? String == "resume")
    #expect(status["endedAt"] is NSNull)
    #expect(status["lastSeenAt"] is String)
    // Those who share a run see a death when the lease is over.
    if !world.isShared {
      #expect(status["wasKilled"] as? Bool == true && status["state"] as? String == "stopped")
    }
    let second = try life.run()
    #expect(second.names == ["resumed", "finished"])
    #expect(second.run == held["run"] as? String && second.done == life.rows)
    if world.adds {
      #expect(second.events[0]["done"] as? Int == held["done"] as? Int)
    }
    try life.expectDone()
  }

  // MARK: Stopping

  @Test(arguments: World.allCases)
  func `a run resumes after a stop by a signal, an operator or its time limit`(
    world: World
  ) throws {
    let life = try world.make()
    var (process, held) = try life.hold()
    let run = held["run"] as? String
    for signal in [SIGINT, SIGTERM] {
      let stopped = try life.end(process, by: signal)
      #expect(stopped.names.last == "stopped" && stopped.last["state"] as? String == "stopped")
      #expect(stopped.last["stopReason"] is NSNull && stopped.done == held["done"] as? Int)
      (process, held) = try life.hold()
    }
    try life.ask("cancel")
    let cancelled = try life.end(of: process, expecting: 3)
    #expect(cancelled.last["stopReason"] as? String == "batch cancel")
    let status = try life.object("status")
    #expect(status["stopReason"] as? String == "batch cancel")
    #expect(status["state"] as? String == "stopped" && status["done"] as? Int == cancelled.done)

    // However short the time, the chunk in flight is committed.
    try life.write(["limits": ["runtime": "1ms"], "chunk": ["size": 20]])
    var done = try #require(cancelled.done)
    while true {
      let process = try life.start()
      let result = process.wait()
      let ended = Ended(events: try JSONOutput.lines(result.output), errors: result.errors)
      #expect(ended.run == run && ended.names.first == "resumed", "\(result.errors)")
      let now = try #require(ended.done)
      // A shared run may be stopped between its last chunk and its end.
      try #require(now > done || now == life.rows, "\(result.errors)")
      done = now
      // What is exported is seen in the end.
      if world.adds || world.isUndo { #expect(try life.counts().last == "1 x \(done)") }
      if result.status == 0 { break }
      try #require(result.status == 3, "\(result.errors)")
      #expect(ended.last["stopReason"] as? String == "the time of limits.runtime is over")
    }
    try life.expectDone()
  }

  // MARK: Operators

  @Test(arguments: World.allCases)
  func `a paused run waits for resume but accepts settings and a cancellation`(world: World) throws
  {
    let life = try world.make()
    let (first, _) = try life.hold()
    try life.ask("pause")
    let paused = try first.wait(forEvent: "throttled")
    #expect(paused["state"] as? String == "paused")
    #expect(paused["throttle"] as? String == "pause: until batch resume")
    // It hears all else, and the next process is not paused.
    try life.ask("cancel")
    let cancelled = try life.end(of: first, expecting: 3)
    #expect(cancelled.last["state"] as? String == "stopped")

    let (second, held) = try life.hold()
    #expect(held["state"] as? String != "paused")
    try life.ask("pause")
    let done = try second.wait(forEvent: "throttled")["done"] as? Int
    // The pace alone would let it go on.
    let set = try life.ask("set", "throttle.identifiersPerSecond=none")
    #expect(
      set.output.contains(#/throttle.identifiersPerSecond: +none, set by /#) && set.errors == ""
    )
    let requests = try life.object("status")["requests"] as? [String: Any]
    #expect(requests?["isPaused"] as? Bool == true)
    let settings = requests?["settings"] as? [String: String]
    #expect(settings == ["throttle.identifiersPerSecond": "none"])
    let origins = try #require(requests?["origins"] as? [String: [String: String]])
    #expect(Set(origins.keys) == ["pause", "throttle.identifiersPerSecond"])
    #expect(origins.values.allSatisfy { $0["user"] == NSUserName() && $0["host"] != nil })
    if !world.isSQLite {
      let other = try BatchProgram.run(
        "set",
        life.subject,
        "throttle.maximumWAL=1GB",
        in: life.directory
      )
      #expect(other.status == 2)
    }
    let counts = try life.counts()
    // A shared run says so with its next heartbeat.
    var status = try life.object("status")
    while world.isShared, second.isRunning, status["state"] as? String != "paused" {
      status = try life.object("status")
    }
    #expect(status["state"] as? String == "paused" && status["done"] as? Int == done)
    #expect(try life.counts() == counts)
    try life.ask("resume")
    #expect(try life.end(of: second).done == life.rows)
    try life.expectDone()
    let commands = [["pause"], ["resume"], ["cancel"], ["set", "chunk.size=5"]]
    for command in commands.prefix(world == .sqlite ? 4 : 1) {
      let arguments = [command[0], life.subject] + command.dropFirst()
      let refused = try BatchProgram(arguments, in: life.directory).wait()
      #expect(refused.status == 2 && refused.errors.contains("no run of job"), "\(refused)")
    }
  }

  // MARK: Other processes

  @Test(arguments: World.all { !$0.isShared })
  func `a second process is refused while the first is alive`(world: World) throws {
    let life = try world.make()
    let (first, _) = try life.hold()
    let words = "another run of this job is alive (process \(first.identifier))"
    let counts = try life.counts()
    for more in [[], ["--fresh"]] {
      let refused = try life.end(of: life.start(more), expecting: 5)
      #expect(refused.errors.contains(words) && refused.events.isEmpty, "\(refused.errors)")
    }
    #expect(try life.counts() == counts)
    let status = try life.ask("status")
    let line = status.output.split(separator: "\n").first { $0.hasPrefix("  process:") }
    #expect(line?.hasSuffix(" \(first.identifier)") == true, "\(status.output)")
    #expect(status.output.contains("refuses: \(words)"), "\(status.output)")
    try life.ask("cleanup", expecting: 5)
    try life.ask("set", "throttle.identifiersPerSecond=none")
    #expect(try life.end(of: first).done == life.rows)
    try life.expectDone()
  }

  #if PostgreSQL
  @Test(arguments: World.all { $0.isShared })
  func `a second process joins the run and sets nothing aside`(world: World) throws {
    let life = try world.make()
    let (first, held) = try life.hold()
    #expect(try life.run("--fresh", expecting: 5).events.isEmpty)
    #expect(try life.ask("status").output.contains("host "))
    let second = try life.start(world.isUndo ? [] : ["--join-only"])
    #expect(try second.wait(forEvent: "joined")["run"] as? String == held["run"] as? String)
    try life.ask("set", "throttle.identifiersPerSecond=none")
    let ends = try [first, second].map { try life.end(of: $0) }
    #expect(ends.allSatisfy { $0.run == held["run"] as? String && $0.done == life.rows })
    try life.expectDone()
    if world.isUndo { return }
    try life.expectRefusal("--join-only", says: ["no run of job \"job\" is unfinished"])
  }
  #endif

  @Test(arguments: World.all { $0.hasJobFile && !$0.isShared })
  func `--join-only is refused with a true reason for runs that are not shared`(
    world: World
  ) throws {
    let life = try world.make()
    let refused = try life.run("--join-only", expecting: 2)
    #expect(refused.errors.contains("--join-only is for"), "\(refused.errors)")
  }
}
