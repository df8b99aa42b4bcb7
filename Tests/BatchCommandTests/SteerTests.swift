import BatchStore
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
    #expect(result.status == 0 && result.errors == "" && result.output == "", "\(result.errors)")
  }

  /// Waits until the run is held by what was asked for, and not by its rests.
  private func untilHeld(_ program: BatchProgram) throws -> [String: Any] {
    while true {
      let event = try program.wait(forEvent: "throttled")
      if (event["throttle"] as? String)?.hasPrefix("sleepRatio") == false { return event }
    }
  }

  @Test func `a paused run does nothing until it is resumed`() throws {
    let program = try start()
    try program.wait(forEvent: "throttled")
    try ask("pause", "job.json")
    let event = try untilHeld(program)
    #expect(event["state"] as? String == "paused")
    #expect(event["throttle"] as? String == "pause: until batch resume")
    // Chunks at the writer when it was paused are finished; then nothing changes any more.
    var changed = try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
    var unchanged = 0
    while unchanged < 3 {
      let status = try JSONOutput.object(
        BatchProgram.run("status", "job.json", "--json", in: directory).output
      )
      #expect(status["state"] as? String == "paused")
      let now = try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
      unchanged = now == changed ? unchanged + 1 : 0
      changed = now
    }
    #expect(try #require(Int(changed[0])) < 2000)
    let settings = ["chunk.size=2000", "chunk.target=none", "throttle.sleepRatio=none"]
    #expect(try BatchProgram(["set", "job.json"] + settings, in: directory).wait().status == 0)
    try ask("resume", "job.json")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    // The rest was done in one chunk, beside those that were in flight.
    #expect(try #require(last["chunks"] as? Int) < 100)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
    #expect(try directory.names() == ["job.batch", "job.json", "test.db"])
  }

  @Test(arguments: [false, true])
  func `a cancelled run can be resumed, and is not paused forever`(paused: Bool) throws {
    let program = try start()
    if paused {
      try ask("pause", "job.json")
      _ = try untilHeld(program)
    }
    try ask("cancel", "job.json")
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(
      last["stopReason"] as? String == "batch cancel" && last["state"] as? String == "stopped"
    )
    let done = try #require(last["done"] as? Int)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(Int64(done)))
    #expect(try directory.names() == ["job.batch", "job.json", "test.db"])
    try writeJob([:])
    let resumed = try BatchProgram.run("run", "job.json", "--chunk-size", "1000", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a rate that is set holds from then on`() throws {
    let program = try start()
    try ask("set", "job.json", "throttle.identifiersPerSecond=0.001")
    let event = try untilHeld(program)
    #expect(event["throttle"] as? String == "identifiersPerSecond: at most 0.001 a second")
    try ask("set", "job.json", "throttle.identifiersPerSecond=none")
    program.send(SIGINT)
    #expect(program.wait().status == 3)
  }

  @Test(arguments: ["cancel", "pause", "set"])
  func `a run that its pace holds for an hour hears what is asked`(command: String) throws {
    let program = try start()
    try ask("set", "job.json", "throttle.identifiersPerSecond=0.001", "throttle.sleepRatio=none")
    _ = try untilHeld(program)
    switch command {
    case "cancel": try ask("cancel", "job.json")
    case "pause":
      try ask("pause", "job.json")
      #expect(try untilHeld(program)["state"] as? String == "paused")
      program.send(SIGINT)
    default:
      // Neither does what the old rate had let through count against the new one.
      try ask("set", "job.json", "throttle.identifiersPerSecond=1000000")
    }
    let result = program.wait()
    #expect(result.status == (command == "set" ? 0 : 3), "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    let done = try #require(last["done"] as? Int)
    #expect(command == "set" ? done == 2000 : done < 2000)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(Int64(done)))
  }

  @Test func `without a live run there is nothing to steer`() throws {
    for arguments in [["pause"], ["resume"], ["cancel"], ["set"]] {
      let more = arguments == ["set"] ? ["chunk.size=5"] : []
      let result = try BatchProgram(arguments + ["job.json"] + more, in: directory).wait()
      #expect(result.status == 2)
      #expect(result.errors.contains("no run of job \"job\" is alive"))
    }
    #expect(try directory.names() == ["job.json", "test.db"])
  }

  @Test(arguments: [
    ("chunk.size=many", "chunk.size: \"many\" is not a number"),
    ("chunk.size=0", "chunk.size: is 0; choose a size from 1 to 1000000"),
    ("chunk.size=none", "chunk.size: \"none\" is not a number"),
    ("chunk.target=5", "chunk.target: \"5\" is not a duration: the unit is missing"),
    ("throttle.sleepRatio=-1", "throttle.sleepRatio: is -1.0"),
    ("throttle.maximumWAL=1B", "throttle.maximumWAL: is 1 bytes"),
    ("chunk.sise=5", "chunk.sise: cannot be changed in a live run; did you mean \"chunk.size\"?"),
    ("source.where=1", "source.where: cannot be changed in a live run"),
  ])
  func `settings that make no sense are refused`(setting: String, message: String) throws {
    let program = try start()
    let result = try BatchProgram.run("set", "job.json", setting, in: directory)
    #expect(result.status == 2)
    #expect(result.errors.contains(message), "\(result.errors)")
    #expect(try BatchProgram.run("set", "job.json", "chunk.size", in: directory).status == 64)
    program.send(SIGKILL)
    _ = program.wait()
  }
}
