import BatchTestSupport
import Foundation
import Testing

/// What is known of runs, and what is left of them.
extension RunLifeTests {
  // MARK: IDs

  @Test(arguments: World.all { $0 != .undo })
  func `the work of an ID is done once, and other work waits for what is unfinished`(
    world: World
  ) throws {
    let life = try world.make()
    let first = try life.run("--run-id", "mon")
    try life.expectDone()
    let (process, held) = try life.hold("--run-id", "tue")
    try life.end(process, by: SIGTERM)
    let words = ["run \"tue\" of this job is unfinished", "--run-id tue"]
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
  func `--fresh sets an unfinished run aside, and cleanup removes what is left of it`(
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
  func `a run whose record is lost does not do its rows again`(world: World) throws {
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
    default:
      // Nobody else knows of it.
      #expect(try life.run().names == ["started", "finished"])
      let isDoneAgain = world.adds && done > 0
      let counts = isDoneAgain ? ["1 x \(life.rows - done)", "2 x \(done)"] : ["1 x \(life.rows)"]
      #expect(try life.counts() == counts)
    }
  }

  // MARK: JSON

  /// The keys of a summary.
  private static let summary: Set = [
    "job", "run", "runID", "state", "total", "done", "resumedAt", "outcomes", "chunks", "startedAt",
    "endedAt", "lastSeenAt", "wasKilled", "elapsedSeconds", "processSeconds",
    "identifiersPerSecond",
    "etaSeconds", "peakResidentBytes", "peakWALBytes", "checkpoint", "output", "invalidTexts",
    "throttle", "throttledSeconds", "waiting", "stopReason", "error",
  ]

  @Test(arguments: World.allCases)
  func `plan, status and history have the same keys and kinds of values in every world`(
    world: World
  ) throws {
    let life = try world.make()
    if world.hasJobFile {
      let plan = try life.object("plan")
      let keys: Set = [
        "matches", "chunks", "queryPlan", "warnings", "next", "nextWords", "sql", "sample",
        "recheck",
      ]
      #expect(keys.isSubset(of: plan.keys), "\(world): \(keys.subtracting(plan.keys))")
      let sql = try #require(plan["sql"] as? [String: Any])
      #expect(sql["fetch"] is String && sql["apply"] is String)
      let sample = try #require((plan["sample"] as? [[String: Any]])?.first)
      #expect(sample["identifier"] is String)
      #expect(plan["recheck"] is [String: Any])
      #expect(sample["before"] is [String: Any])
    }
    if world.hasJobFile, world.adds {
      try life.write(["action": ["type": "delete", "archive": ["entity": "kept", "create": true]]])
      let sql = try #require(try life.object("plan")["sql"] as? [String: Any])
      #expect(sql["create"] is String)
      try life.write()
    }
    let event = try life.run().last
    #expect(Set(event.keys) == Self.summary.union(["event"]))
    let status = Set(try life.object("status").keys)
    let ofStatus = Self.summary.union(["undoneBy", "warnings", "next", "nextWords"])
    let shared: Set = ["hosts", "spans", "spansDone"]
    #expect(status == ofStatus.union(world.isShared ? shared : []))
    let history = try life.object("history")
    let run = try #require((history["runs"] as? [[String: Any]])?.first)
    let ofRun: Set = [
      "action", "entity", "where", "parameters", "invocation", "undone", "undoneBy",
    ]
    #expect(Set(run.keys) == Self.summary.union(ofRun))
    #expect(history["folder"] is String && history["bytes"] is Int)
  }
}
