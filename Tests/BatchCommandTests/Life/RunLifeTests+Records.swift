import BatchTestSupport
import Foundation
import Testing

/// What is known of runs, and what is left of them.
extension RunLifeTests {
  // MARK: IDs

  @Test(arguments: World.all { !$0.isUndo })
  func `the work of a run ID is done once, and other work waits for an unfinished run`(
    world: World
  ) throws {
    let life = try world.make()
    let first = try life.run("--run-id", "mon")
    try life.expectDone()
    let (process, held) = try life.hold("--run-id", "tue")
    try life.end(process, by: SIGTERM)
    let end = world.hasJobFile ? "--run-id tue (--finish-first does)" : "with the run ID \"tue\""
    let words = ["run \"tue\" of this job is unfinished; finish it first", end]
    try life.expectRefusal("--run-id", "wed", says: words)
    if world.hasJobFile {
      #expect(try life.object("plan", "--run-id", "wed")["next"] as? String == "refuse")
    }
    #expect(try life.object("status", "--run-id", "mon")["run"] as? String == first.run)
    let text = try life.ask("status", "--run-id", "tue").output
    #expect(text.contains(/\n  run ID: +tue\n/), "\(text)")
    let unknown = try life.ask("status", "--run-id", "wed", expecting: 2)
    #expect(unknown.errors.contains("there is no record of a run with the run ID \"wed\""))
    // The other ID is done all the same.
    let again = try life.run("--run-id", "mon")
    #expect(again.names == ["finished"] && again.run == first.run)
    #expect(again.last["runID"] as? String == "mon" && again.done == life.rows)
    #expect(try life.run("--run-id", "tue").run == held["run"] as? String)
    try life.expectDone(runs: 2)
    // Work without an ID is new each time, and it forgets none; neither does cleanup.
    #expect(try life.run().names == ["started", "finished"])
    try life.ask("cleanup")
    #expect(try life.run("--run-id", "tue").run == held["run"] as? String)
    try life.expectDone(runs: 3)
  }

  // MARK: Fresh

  @Test(arguments: World.allCases)
  func `--fresh sets an unfinished run aside, and cleanup removes its remains`(
    world: World
  ) throws {
    let life = try world.make()
    if world.hasJobFile {
      #expect(try life.ask("cleanup").output.hasPrefix("removed 0 runs from "))
    }
    let (first, held) = try life.hold()
    let done = try #require(try life.end(first, by: SIGTERM).done)
    if world.hasJobFile {
      let dry = try BatchProgram.run(
        "run",
        "job.json",
        "--dry-run",
        "--fresh",
        "--json",
        in: life.directory
      )
      let next = try JSONOutput.object(dry.output)["next"] as? String
      #expect(next == "begin")
    }
    let (second, fresh) = try life.hold("--fresh")
    try life.end(second, by: SIGTERM)
    #expect(fresh["run"] as? String != held["run"] as? String)
    let aside = try life.directory.names().filter { $0.contains(".1.") }
    let partial = try life.directory.names().filter { $0.hasSuffix(".partial") }
    #expect(aside.isEmpty == world.isShared, "\(world): \(aside)")
    try life.directory.write("mine", to: "job.7.batch")
    let cleanup = try life.ask("cleanup").output
    for name in aside { #expect(cleanup.contains("removed \(name)\n"), "\(cleanup)") }
    let left = try life.directory.names()
    #expect(left.filter { $0.contains(".1.") } == [] && left.contains("job.7.batch"))
    // That of the unfinished run stays with it, and no other.
    #expect(left.count { $0.hasSuffix(".partial") } == min(1, partial.count))

    let resumed = try life.run()
    #expect(resumed.run == fresh["run"] as? String && resumed.done == life.rows)
    let counts =
      world.adds ? ["1 x \(life.rows - done)", "2 x \(done)"] : ["1 x \(life.rows)"]
    #expect(try life.counts() == counts)
    // There is nothing to set aside any more.
    #expect(try life.run("--fresh").names == ["started", "finished"])
    #expect(try life.directory.names().filter { $0.contains(".1.") } == [])
  }

  // MARK: Lost records

  @Test(arguments: World.allCases)
  func `a run that has lost its record does none of its rows twice`(world: World) throws {
    let life = try world.make()
    let (process, _) = try life.hold()
    let done = try #require(try life.end(process, by: SIGTERM).done)
    try life.loseRecord()
    switch world {
    case .sqlite, .objects, .undo:
      // The store knows the run, and not its rows.
      try life.expectRefusal(says: ["unfinished run", "the checkpoint of that run is missing"])
      let name = world == .undo ? "job.undo" : "job.batch"
      try FileManager.default.moveItem(
        atPath: life.directory.file("\(name).lost"),
        toPath: life.directory.file(name)
      )
      #expect(try life.run().names == ["resumed", "finished"])
      try life.expectDone()
    #if PostgreSQL
    case .postgresUndo:
      // The run that it undoes is gone, too.
      try life.expectRefusal(says: ["there is no run of the job that can be undone"])
    #endif
    default:
      // Nobody else knows of it.
      #expect(try life.run().names == ["started", "finished"])
      let isDoneAgain = world.adds && done > 0
      let counts = isDoneAgain ? ["1 x \(life.rows - done)", "2 x \(done)"] : ["1 x \(life.rows)"]
      #expect(try life.counts() == counts)
    }
  }

  // MARK: JSON

  @Test(arguments: World.allCases)
  func `plan, events, status and history have one schema for all kinds of runs`(
    world: World
  ) throws {
    let life = try world.make()
    var schema = try OutputSchema()
    func expectSchema(_ name: String) throws {
      #expect(try schema.check(life.ask(name, "--json").output, as: name) == [], "\(world)")
    }
    if world.hasJobFile { try expectSchema("plan") }
    if world.hasJobFile, world.adds {
      try life.write(["action": ["type": "delete", "archive": ["entity": "kept", "create": true]]])
      try expectSchema("plan")
      #expect(schema.seen.contains("#/$defs/plan/properties/sql/properties/create"))
      try life.write()
    }
    for event in try life.start().wait().output.split(separator: "\n") {
      #expect(try schema.check(String(event), as: "event") == [], "\(world)")
    }
    try expectSchema("status")
    #expect(schema.seen.contains("#/$defs/status/properties/hosts") == world.isShared)
    try expectSchema("history")
  }
}
