import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Runs that are held, as an operator sees them.
@Suite struct ThrottleTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
  }

  private func write(_ throttle: [String: Any], _ more: [String: Any] = [:]) throws {
    let adding = ["throttle": throttle].merging(more) { $1 }
    try directory.write(JobText.update(adding: adding), to: "job.json")
  }

  /// Starts the job and waits until it is held.
  ///
  /// - Returns: The program, and the event that says so.
  private func startHeld(
    _ environment: [String: String] = [:]
  ) throws -> (BatchProgram, [String: Any]) {
    let program = try BatchProgram(
      ["run", "job.json", "--json"],
      in: directory,
      environment: environment
    )
    while let line = program.nextLine() {
      let event = try JSONOutput.object(line)
      if event["event"] as? String == "throttled" { return (program, event) }
    }
    throw CocoaError(.fileReadUnknown, userInfo: ["errors": program.wait().errors])
  }

  @Test func `status follows a paced export, and a kill loses no more than an interval of it`()
    throws
  {
    let export = try JobText.export(
      to: "rows.ndjson",
      adding: [
        "throttle": ["identifiersPerSecond": 150], "checkpoint": ["interval": "500ms"],
        "workers": 1,
      ]
    )
    try directory.write(export, to: "job.json")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    var done = 0
    // Progress is told every five seconds.
    while done < 500, let line = program.nextLine() {
      done = try JSONOutput.object(line)["done"] as? Int ?? done
    }
    // Two intervals at most, since a record and the progress are not of the same moment.
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    #expect(try JSONOutput.object(status)["done"] as? Int ?? 0 > done - 150, "\(done): \(status)")
    program.send(SIGKILL)
    _ = program.wait()
    try directory.write(
      JobText.export(to: "rows.ndjson", adding: ["workers": 1]),
      to: "job.json"
    )
    let second = try BatchProgram(["run", "job.json", "--json"], in: directory).wait()
    let resumed = try #require(JSONOutput.lines(second.output).first)
    #expect(resumed["done"] as? Int ?? 0 > done - 150, "\(done): \(resumed)")
    let text = String(decoding: try directory.read("rows.ndjson"), as: UTF8.self)
    #expect(Set(text.split(separator: "\n")).count == 2_000)
  }

  @Test func `a plan says that a run would be held now, and by what`() throws {
    try directory.write("", to: "stop")
    func words(_ throttle: [String: Any]) throws -> String {
      try write(throttle)
      return try BatchProgram.run("plan", "job.json", in: directory).errors
    }
    #expect(try !words([:]).contains("a run that begins now"))
    let held = try words(["flagFile": "stop"])
    #expect(held.contains("a run that begins now waits (flagFile: "), "\(held)")
    let full = try words(["minimumFreeDisk": "900TB"])
    #expect(full.contains("a run that begins now waits (minimumFreeDisk: "), "\(full)")
  }

  private func changed() throws -> [String] {
    try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
  }

  @Test func `a flag file holds the run until it is removed`() throws {
    try write(["flagFile": "hold"])
    try directory.write("", to: "hold")
    let (program, event) = try startHeld()
    #expect(event["throttle"] as? String == "flagFile: hold exists")
    #expect(event["state"] as? String == "throttled" && event["done"] as? Int == 0)
    let status = try JSONOutput.object(
      BatchProgram.run("status", "job.json", "--json", in: directory).output
    )
    #expect(status["state"] as? String == "throttled")
    #expect(status["throttle"] as? String == event["throttle"] as? String)
    let text = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(text.contains("held back") && text.contains("held: flagFile: hold exists"))
    #expect(try changed() == ["0"])
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["throttle"] is NSNull && last["state"] as? String == "completed")
    #expect(try #require(last["throttledSeconds"] as? Double) > 0)
    #expect(try changed() == ["2000"])
  }

  @Test func `a held run can be stopped and resumes at its progress`() throws {
    try write(["flagFile": "hold"])
    try directory.write("", to: "hold")
    for signal in [SIGINT, SIGTERM] {
      let (program, _) = try startHeld()
      program.send(signal)
      let result = program.wait()
      #expect(result.status == 3, "\(result.errors)")
      let last = try #require(JSONOutput.lines(result.output).last)
      #expect(last["event"] as? String == "stopped" && last["throttle"] is NSNull)
      #expect(try changed() == ["0"])
    }
    // A killed one is not held any more.
    let (program, _) = try startHeld()
    program.send(SIGKILL)
    _ = program.wait()
    let status = try JSONOutput.object(
      BatchProgram.run("status", "job.json", "--json", in: directory).output
    )
    #expect(status["state"] as? String == "stopped" && status["throttle"] is NSNull)
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try changed() == ["2000"])
  }

  @Test func `the runtime limit includes the time of a hold`() throws {
    try write(["flagFile": "hold"], ["limits": ["runtime": "1ms"]])
    try directory.write("", to: "hold")
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 3, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["stopReason"] as? String == "the time of limits.runtime is over")
    #expect(last["done"] as? Int == 0)
  }

  @Test func `status of a running job shows the remaining time`() throws {
    try write(["identifiersPerSecond": 10], ["chunk": ["size": 1]])
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    // Of a paced run this says that its first chunk is committed.
    try program.wait(forEvent: "throttled")
    let text = try BatchProgram.run("status", "job.json", in: directory).output
    let status = try JSONOutput.object(
      BatchProgram.run("status", "job.json", "--json", in: directory).output
    )
    #expect(text.contains(#/job  0%  [0-9]+ of 2,000  .*/s  ETA /#), "\(text)")
    #expect(status["etaSeconds"] as? Double ?? 0 > 1, "\(status)")
    program.send(SIGKILL)
    _ = program.wait()
    let killed = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(!killed.contains("ETA"), "\(killed)")
  }

  @Test func `a run is held while there is too little free space`() throws {
    try write(["minimumFreeDisk": "8000TB"])
    let (program, event) = try startHeld()
    let reason = try #require(event["throttle"] as? String)
    #expect(
      reason.hasPrefix("minimumFreeDisk: ") && reason.hasSuffix("B are free, less than 8000 TB")
    )
    program.send(SIGINT)
    #expect(program.wait().status == 3)
    try write(["minimumFreeDisk": "1B"])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test func `a run is held outside its daily window`() throws {
    // A zone in which it is now some minutes past the wanted hour.
    let hour = Calendar(identifier: .gregorian).dateComponents(in: .gmt, from: .now).hour ?? 0
    func zone(_ local: Int) -> [String: String] { ["TZ": "XXX\(hour - local)"] }
    try write(["window": "22:00-06:00"])
    let (program, event) = try startHeld(zone(12))
    #expect(event["throttle"] as? String == "window: it is not 22:00-06:00")
    program.send(SIGINT)
    #expect(program.wait().status == 3)
    let open = try BatchProgram.run("run", "job.json", in: directory, environment: zone(2))
    #expect(open.status == 0, "\(open.errors)")
    #expect(try changed() == ["2000"])
  }

  @Test func `a reader of another program holds the run once the log is too long`() throws {
    let connection = try Connection(path: path)
    #expect(try connection.useWriteAheadLog())
    try connection.execute("BEGIN")
    #expect(try connection.value("SELECT sum(n) FROM numbers") == .integer(0))
    // Where there is a pace chunks share no transaction, so that it is sure how long the log gets.
    let pace = 1_000_000_000
    try write(["maximumWAL": "1MB", "identifiersPerSecond": pace], ["chunk": ["size": 5]])
    let (program, event) = try startHeld()
    let reason =
      "maximumWAL: the write-ahead log is longer than 1 MB; another connection reads from it, so it"
      + " cannot be emptied: look for a long SELECT, an open transaction or a backup, as with"
      + " fuser -v \(path)"
    #expect(event["throttle"] as? String == reason)
    // It still sees what it saw first.
    #expect(try connection.value("SELECT sum(n) FROM numbers") == .integer(0))
    try connection.execute("COMMIT")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    let peak = try #require(last["peakWALBytes"] as? Int)
    #expect((1_000_001...1_500_000).contains(peak))
    #expect(try changed() == ["2000"])
  }

  @Test(.timeLimit(.minutes(20)))
  func `the log of a database that Litestream replicates is left to Litestream`() throws {
    let litestream = try Connection(path: path)
    #expect(try litestream.useWriteAheadLog())
    try litestream.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
    try litestream.execute("INSERT INTO _litestream_seq VALUES (1, 0)")
    try litestream.execute("BEGIN")
    #expect(try litestream.value("SELECT seq FROM _litestream_seq") == .integer(0))
    try write(["maximumWAL": "1MB", "identifiersPerSecond": 1_000_000_000], ["chunk": ["size": 5]])
    let plan = try BatchProgram.run("plan", "job.json", "--json", in: directory)
    #expect(plan.output.contains("Litestream replicates the database"), "\(plan.output)")
    let (program, event) = try startHeld()
    #expect(
      (event["throttle"] as? String)?.contains("; Litestream holds a read lock on it") == true
    )
    // As Litestream does: it lets go, checkpoints, writes to start the log anew, and reads again.
    try litestream.execute("COMMIT")
    #expect(try litestream.restartLog())
    try litestream.execute("UPDATE _litestream_seq SET seq = seq + 1")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try changed() == ["2000"])
  }

  @Test(.timeLimit(.minutes(20)))
  func `a table left behind by Litestream holds no run`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq)"
    )
    try write(["maximumWAL": "1MB", "identifiersPerSecond": 1_000_000_000], ["chunk": ["size": 5]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try changed() == ["2000"])
  }

  @Test(arguments: ["update", "export"])
  func `a rate limit is kept and reported once`(action: String) throws {
    let more: [String: Any] = ["throttle": ["identifiersPerSecond": 10_000]]
    let job =
      try action == "update"
      ? JobText.update(adding: more) : JobText.export(to: "out.csv", format: "csv", adding: more)
    try directory.write(job, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let events = try JSONOutput.lines(result.output)
    let throttled = events.filter { $0["event"] as? String == "throttled" }
    #expect(
      throttled.map { $0["throttle"] as? String } == [
        "identifiersPerSecond: at most 10,000 a second"
      ]
    )
    let last = try #require(events.last)
    // A second chunk of a thousand may not come before the first was worth its tenth of a second,
    // of which what was lost before the first may be made up for.
    #expect(try #require(last["throttledSeconds"] as? Double) > 0)
    #expect(last["done"] as? Int == 2000)
  }

  @Test func `a plan's time with a rest after each chunk is that of the run`() throws {
    try write(["sleepRatio": 20], ["chunk": ["size": 100]])
    let plan = try JSONOutput.object(
      BatchProgram.run("plan", "job.json", "--json", in: directory).output
    )
    #expect(plan["pace"] as? String == "throttle.sleepRatio")
    let least = try #require(plan["leastSeconds"] as? Double)
    let most = try #require(plan["mostSeconds"] as? Double)
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    let seconds = try #require(JSONOutput.lines(result.output).last?["elapsedSeconds"] as? Double)
    // The machine may be busy with other tests.
    #expect(least < seconds * 1.5 && seconds < most * 3, "\(least) to \(most): \(seconds)")
  }

  @Test func `sleeps between chunks count as held time`() throws {
    try write(["sleepRatio": 50], ["chunk": ["size": 100]])
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let events = try JSONOutput.lines(result.output)
    let throttled = try #require(events.first { $0["event"] as? String == "throttled" })
    #expect(throttled["throttle"] as? String == "sleepRatio: 50.0 of the time of a chunk")
    let held = try #require(events.last?["throttledSeconds"] as? Double)
    let elapsed = try #require(events.last?["elapsedSeconds"] as? Double)
    #expect(held > 0 && held < elapsed)
    let text = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(text.contains("held back: "))
  }
}
