import BatchTestSupport
import Foundation
import Testing

/// What comes after the last row.
extension RunLifeTests {
  @Test(arguments: World.all { $0.hasHooks })
  func `a run that is killed during its hook is concluded by the next`(world: World) throws {
    let life = try world.make()
    // Opening a pipe waits for the other end.
    #expect(mkfifo(life.directory.file("begun"), 0o600) == 0)
    let hold = try NamedPipe("hold", in: life.directory)
    let tell = "echo $BATCH_HOOK $BATCH_STATE $BATCH_DONE >> told"
    let wait = "\(tell); [ -e quick ] || { : > begun; read end < hold; }"
    try life.write(["hooks": ["onStart": ["sh", "-c", tell], "onFinish": ["sh", "-c", wait]]])
    let process = try life.start()
    let begun = FileHandle(forReadingAtPath: life.directory.file("begun"))
    _ = try #require(begun).readToEnd()
    process.send(SIGKILL)
    let killed = hold.release(andWaitFor: process)
    #expect(killed.status == -SIGKILL)
    #expect(try life.object("status")["next"] as? String == "acknowledge")

    try life.directory.write("", to: "quick")
    let again = try life.run()
    #expect(again.names == ["finished"] && again.done == life.rows)
    try life.expectDone()
    let told = String(decoding: try life.directory.read("told"), as: UTF8.self)
    let finished = "onFinish completed \(life.rows)\n"
    #expect(told == "onStart running 0\n\(finished)\(finished)")
    // That run was acknowledged.
    #expect(try life.run().names == ["started", "finished"])
    try life.expectDone(runs: 2)
  }

  @Test(arguments: World.allCases)
  func `an unprinted summary has its own exit status and is printed by the job's next run`(
    world: World
  ) throws {
    let life = try world.make()
    for json in [false, true] { try life.runUntold(">/dev/full", json: json) }
    let status = try life.object("status")
    #expect(status["next"] as? String == "acknowledge")
    let told = try life.run()
    #expect(told.names == ["finished"] && told.run == status["run"] as? String)
    try life.expectDone()

    // Another job does not get that of this one, but may have it set aside.
    // What was undone is undone again only if that is asked for.
    try life.runUntold(">&-", fresh: world.isUndo)
    try life.write(changed: true)
    if world.hasJobFile {
      #expect(try life.object("status")["next"] as? String == "refuse")
      #expect(try life.object("plan")["next"] as? String == "refuse")
    }
    try life.expectRefusal(says: world.hasJobFile ? ["the job has changed"] : [])
    #expect(try life.run("--fresh").names.suffix(2) == ["started", "finished"])
    try life.expectDone(runs: world == .objects ? 3 : 4)
  }

  @Test(arguments: World.all { $0.hasHooks })
  func `a failing hook is reported and changes nothing`(world: World) throws {
    let life = try world.make()
    let hooks = ["onStart": ["false"], "onFinish": ["sh", "-c", "kill -9 $$"]]
    try life.write(["hooks": hooks])
    let ended = try life.run()
    let messages = ended.messages
    for words in [
      "hooks.onStart: the program exited with status 1; the run continues",
      "hooks.onFinish: the program was ended by signal 9",
    ] { #expect(messages.contains(words), "\(world): \(messages)") }
    try life.expectDone()
  }

  // MARK: Failures

  @Test(arguments: World.all { $0.retries && $0.hasJobFile })
  func `a failing run reports why, and resumes once its cause is removed`(world: World) throws {
    let life = try world.make()
    try life.poison([41])
    let failed = try life.run(expecting: 1)
    #expect(failed.names == ["started", "failed"] && failed.last["state"] as? String == "failed")
    #expect((failed.last["error"] as? String)?.contains("identifier 41: ") == true)
    let status = try life.object("status")
    #expect(status["state"] as? String == "failed" && status["endedAt"] is String)
    #expect(status["error"] as? String == failed.last["error"] as? String)
    #expect(status["next"] as? String == "resume")
    try life.poison([])
    let second = try life.run()
    #expect(second.names == ["resumed", "finished"] && second.run == failed.run)
    #expect(second.last["error"] is NSNull)
    try life.expectDone()
  }

  @Test(arguments: World.all { $0.retries })
  func `only failed rows are retried, until they succeed`(world: World) throws {
    let life = try world.make()
    try life.write(["skip": ["limit": 3]])
    try life.poison([5, 17, 41])
    let none = try life.retry(expecting: 2)
    #expect(none.events.isEmpty, "\(none.errors)")
    let first = try life.run("--run-id", "mon", expecting: 4)
    #expect(first.last["state"] as? String == "completedWithFailures")
    #expect(try life.failed() == "5 17 41 ")
    // The work of the ID is done, and ends as it did.
    #expect(try life.run("--run-id", "mon", expecting: 4).names == ["finished"])
    #expect(try life.counts() == ["0 x 3", "1 x 57"])

    try life.poison([17, 41])
    let second = try life.retry(expecting: 4)
    #expect(second.names == ["retryingFailures", "finished"] && second.run == first.run)
    #expect(
      second.events.first?["outcomes"] as? [String: Int] == first.last["outcomes"] as? [String: Int]
    )
    let outcomes = second.last["outcomes"] as? [String: Int]
    #expect(outcomes?["succeeded"] == 58 && outcomes?["failed"] == 2 && second.done == 60)
    #expect(try life.failed() == "17 41 " && life.attempts() == [2, 2])
    // All fail again: only their number of attempts changes.
    #expect(try life.retry(expecting: 4).last["outcomes"] as? [String: Int] == outcomes)
    #expect(try life.failed() == "17 41 " && life.attempts() == [3, 3])

    try life.poison([])
    #expect(try life.retry().last["state"] as? String == "completed")
    #expect(try life.failed() == "" && life.attempts() == [])
    try life.expectDone()
    let last = try life.retry()
    #expect(last.messages.contains("nothing has failed; nothing to retry"), "\(last.messages)")
    try life.expectDone()
    #expect(try life.object("status")["next"] as? String == "begin")
  }

  @Test(arguments: World.all { $0.retries })
  func `a killed retry continues and does each row once`(world: World) throws {
    let life = try world.make()
    try life.write(["skip": ["limit": 30]])
    try life.poison(Array(1...30))
    let first = try life.run(expecting: 4)
    try life.poison([])
    try life.end(life.hold(retrying: true).process, by: SIGKILL)
    let second = try life.retry()
    #expect(second.run == first.run && second.last["state"] as? String == "completed")
    try life.expectDone()
  }

  @Test(arguments: World.all { $0.retries })
  func `a retry that could not report its end is concluded by the next and not repeated`(
    world: World
  ) throws {
    let life = try world.make()
    try life.write(["skip": ["limit": 2]])
    try life.poison([5, 17])
    try life.run(expecting: 4)
    try life.poison([17])
    try life.runUntold(">/dev/full", "retry-failed")
    #expect(try life.attempts() == [2])
    #expect(try life.retry(expecting: 4).names == ["finished"])
    #expect(try life.attempts() == [2])
    try life.poison([])
    try life.runUntold(">/dev/full", "retry-failed")
    try life.expectDone()
    #expect(try life.retry().names == ["finished"])
    try life.expectDone()
    #expect(try life.run().names == ["started", "finished"])
    try life.expectDone(runs: 2)
  }

  @Test(arguments: World.all { $0.hasJobFile && !$0.retries })
  func `rows that an export has left out are not retried`(world: World) throws {
    let life = try world.make()
    try life.run()
    let refused = try life.retry(expecting: 2)
    #expect(
      refused.errors.contains("no failed identifiers that can be retried"),
      "\(refused.errors)"
    )
  }

  // MARK: Changed jobs

  @Test(arguments: World.allCases)
  func `a changed job does not resume the run, which waits for its own job`(world: World) throws {
    let life = try world.make()
    let (process, held) = try life.hold()
    try life.end(process, by: SIGTERM)
    try life.write(changed: true)
    try life.expectRefusal(says: world.hasJobFile ? ["the job has changed"] : [])
    if world.hasJobFile {
      #expect(try life.object("status")["next"] as? String == "refuse")
      let plan = try life.object("plan")
      #expect(plan["next"] as? String == "refuse")
      #expect((plan["nextWords"] as? String)?.contains("the job has changed") == true)
    }
    if world.retries {
      let files = try life.directory.contents()
      let refused = try life.retry(expecting: 2)
      #expect(refused.events.isEmpty, "\(refused.errors)")
      #expect(try life.directory.changes(since: files) == [])
    }
    try life.write()
    #expect(try life.run().run == held["run"] as? String)
    try life.expectDone()
  }
}
