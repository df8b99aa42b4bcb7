import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `batch pause`, `resume`, `cancel` and `set`, while a run is alive.
@Suite struct SteerTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
    try writeJob(["throttle": ["sleepRatio": 100]])
  }

  /// A job in small chunks, which takes long where it rests after each of them.
  private func writeJob(_ more: [String: Any]) throws {
    let tuning: [String: Any] = ["chunk": ["size": 5], "checkpoint": ["interval": "10ms"]]
    try directory.write(JobText.update(adding: tuning.merging(more) { $1 }), to: "job.json")
  }

  private func start() throws -> BatchProgram {
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    #expect(try JSONOutput.object(program.nextLine() ?? "{}")["event"] as? String == "started")
    return program
  }

  private func ask(_ arguments: String...) throws {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 0 && result.output == "", "\(result.errors)")
    let says = ["pause": "pauses", "resume": "goes on", "cancel": "stops"][arguments[0]] ?? ""
    #expect(result.errors.hasPrefix("the run of job \"job\" \(says)"), "\(result.errors)")
  }

  /// Changes settings, and expects the answer to be what is in force.
  private func set(_ settings: String...) throws {
    let result = try BatchProgram(["set", "job.json"] + settings, in: directory).wait()
    #expect(result.status == 0 && result.errors == "", "\(result.errors)")
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == RunPolicy.liveSettings.count, "\(result.output)")
    for setting in settings {
      let parts = setting.split(separator: "=")
      let line = try #require(lines.first { $0.hasPrefix("\(parts[0]):") })
      #expect(line.contains(" \(parts[1]), set by "), "\(line)")
    }
    #expect(lines[0].hasSuffix(" 5, by the job"), "\(result.output)")
  }

  /// Waits until the run is held by what was asked for, and not by its rests.
  private func untilHeld(_ program: BatchProgram) throws -> [String: Any] {
    while true {
      let event = try program.wait(forEvent: "throttled")
      if (event["throttle"] as? String)?.hasPrefix("sleepRatio") == false { return event }
    }
  }

  @Test func `a new rate applies from then on`() throws {
    let program = try start()
    try set("throttle.identifiersPerSecond=0.001")
    let event = try untilHeld(program)
    #expect(event["throttle"] as? String == "identifiersPerSecond: at most 0.001 a second")
    try set("throttle.identifiersPerSecond=none")
    program.send(SIGINT)
    #expect(program.wait().status == 3)
  }

  @Test func `a new rate ends the wait of the old one`() throws {
    let program = try start()
    try set("throttle.identifiersPerSecond=0.001", "throttle.sleepRatio=none")
    _ = try untilHeld(program)
    // Neither does what the old rate had let through count against the new one.
    try set("throttle.identifiersPerSecond=1000000")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try JSONOutput.lines(result.output).last?["done"] as? Int == 2000)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(2000))
  }

  /// What people have done to the last run.
  private func actions() throws -> [[String: Any]] {
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    return try JSONOutput.object(status.output)["actions"] as? [[String: Any]] ?? []
  }

  private func kinds() throws -> [String] { try actions().compactMap { $0["kind"] as? String } }

  @Test func `the record tells who did what to a run, once each, also of requests at one moment`()
    throws
  {
    let program = try start()
    let pause = try BatchProgram(["pause", "job.json"], in: directory)
    #expect(pause.wait().status == 0)
    _ = try untilHeld(program)
    // This changes nothing, and that is refused.
    try ask("pause", "job.json")
    #expect(try BatchProgram.run("set", "job.json", "chunk.size=0", in: directory).status == 2)
    let setting = try (1...6).map { number in
      let rate = "throttle.identifiersPerSecond=\(number * 1000)"
      return try BatchProgram(["set", "job.json", rate], in: directory)
    }
    for program in setting { #expect(program.wait().status == 0) }
    try ask("resume", "job.json")
    try ask("cancel", "job.json")
    #expect(program.wait().status == 3)
    let actions = try actions()
    let sets = Array(repeating: "set", count: 6)
    #expect(try kinds() == ["began", "paused"] + sets + ["continued", "cancelled"])
    #expect(actions[0]["pid"] as? Int == Int(program.identifier))
    #expect(actions[1]["pid"] as? Int == Int(pause.identifier))
    #expect(
      actions.allSatisfy { $0["user"] is String && $0["host"] is String && $0["at"] is String }
    )
    let changes = actions.filter { $0["kind"] as? String == "set" }
    #expect(
      Set(changes.compactMap { $0["pid"] as? Int }) == Set(setting.map { Int($0.identifier) })
    )
    let values = changes.compactMap { $0["to"] as? String }
    #expect(Set(values) == Set((1...6).map { "\($0 * 1000)" }))
    #expect(changes.compactMap { $0["from"] as? String } == ["none"] + values.dropLast())
    let text = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(text.contains(#/cancelled: +by .* on .*, process [0-9]+, at /#), "\(text)")
    #expect(!text.contains("paused:"), "\(text)")
    let history = try BatchProgram.run("history", "job.json", in: directory).output
    #expect(history.contains("cancelled by "), "\(history)")
  }

  @Test func `a killed run has a record of what was done to it, and of who resumed it`() throws {
    let program = try start()
    try ask("pause", "job.json")
    _ = try untilHeld(program)
    program.send(SIGKILL)
    _ = program.wait()
    #expect(try kinds() == ["began", "paused"])
    try writeJob(["throttle": ["identifiersPerSecond": 0.001]])
    let next = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try next.wait(forEvent: "throttled")
    next.send(SIGKILL)
    _ = next.wait()
    #expect(try kinds() == ["began", "paused", "resumed"])
    #expect(try actions().last?["pid"] as? Int == Int(next.identifier))
    try writeJob([:])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try kinds() == ["began", "paused", "resumed", "resumed"])
  }

  @Test func `invalid settings are refused`() throws {
    let program = try start()
    for (setting, message) in [
      ("chunk.size=many", "chunk.size: \"many\" is not a number"),
      ("chunk.size=0", "chunk.size: is 0; choose a size from 1 to 1000000"),
      ("chunk.size=none", "chunk.size: \"none\" is not a number"),
      ("chunk.target=5", "chunk.target: \"5\" is not a duration: the unit is missing"),
      ("throttle.sleepRatio=-1", "throttle.sleepRatio: is -1.0"),
      ("throttle.maximumWAL=1B", "throttle.maximumWAL: is 1 bytes"),
      ("chunk.sise=5", "chunk.sise: cannot be changed in a live run; did you mean \"chunk.size\"?"),
      ("source.where=1", "source.where: cannot be changed in a live run"),
    ] {
      let result = try BatchProgram.run("set", "job.json", setting, in: directory)
      #expect(result.status == 2)
      #expect(result.errors.contains(message), "\(result.errors)")
    }
    #expect(try BatchProgram.run("set", "job.json", "chunk.size", in: directory).status == 64)
    program.send(SIGKILL)
    _ = program.wait()
    // Also where no run is alive.
    let typo = try BatchProgram.run("set", "job.json", "chunk.sise=5", in: directory)
    #expect(typo.status == 2 && typo.errors.contains("did you mean"), "\(typo.errors)")
  }
}
