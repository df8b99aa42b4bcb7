import BatchTestSupport
import Foundation
import Testing

/// Runs a job as a child process that is killed at random moments; the same command is given again
/// until it ends well, and that again and again.
///
/// Only the rows count: a command that is killed and repeated is one job, whatever it printed, and
/// it must have done every row once.
struct KillLoop {
  /// How many kills are wanted.
  static let kills = ProcessInfo.processInfo.environment["BATCH_KILLS"].flatMap(Int.init) ?? 12

  /// How many rows a job of a kind has, a small part unless many kills are wanted: a run then takes longer
  /// than to start it, and not much longer.
  static func rows(_ many: Int, part: Int = 25) -> Int { kills >= 100 ? many : many / part }

  private let name: String
  /// How a run ends that is not killed.
  private let status: Int32
  private let directory: TemporaryDirectory
  private let seed: UInt64
  private var generator: SeededGenerator
  private var secondsUndisturbed = 0.0
  /// How many commands have ended well.
  private var jobCount = 0
  private var killCount = 0
  private var resumeCount = 0

  /// A loop over the job in `job.json`.
  init(_ name: String, in directory: TemporaryDirectory, failing: Bool = false) {
    status = failing ? 4 : 0
    self.name = name
    self.directory = directory
    let environment = ProcessInfo.processInfo.environment
    seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    generator = SeededGenerator(seed: seed)
  }

  /// Runs jobs until there were enough kills.
  ///
  /// - Parameters:
  ///   - rows: How many rows a job has, for the report.
  ///   - check: Called after each job with the number of jobs so far; whether every row is as it
  ///     should be.
  /// - Throws: What `check` throws.
  mutating func run(rows: Int, check: (Int) throws -> Bool) throws {
    let clock = ContinuousClock()
    let start = clock.now
    let first = try BatchProgram.run("run", "job.json", "--workers", "4", in: directory)
    secondsUndisturbed = start.duration(to: clock.now) / .seconds(1)
    try #require(first.status == status, "\(name), seed \(seed): \(first.errors)")
    jobCount = 1
    var wrongJobs = try check(jobCount) ? 0 : 1
    // Where chance would have it that each kill came before anything was done, there are some more.
    while killCount < Self.kills || resumeCount == 0 && killCount < 10 * Self.kills {
      try completeJob()
      if try !check(jobCount) { wrongJobs += 1 }
    }
    #expect(wrongJobs == 0, "\(name), seed \(seed)")
    #expect(resumeCount > 0, "\(name), seed \(seed): no run was resumed with work done")
    print(
      "kill-loop \(name): \(killCount) kills, \(jobCount) jobs of \(rows) rows,"
        + " \(resumeCount) resumed half-way, seed \(seed): "
        + (wrongJobs == 0 ? "every row exactly once" : "FAILED in \(wrongJobs) jobs")
    )
  }

  /// Gives the command, and kills it, until it ends well.
  private mutating func completeJob() throws {
    var run: String?
    var hadSaidAll = false
    // On a machine that has become slower, each run would be killed before it has done anything:
    // each kill of a job comes a little later than the one before.
    var limit = secondsUndisturbed
    for _ in 1...200 {
      let program = try BatchProgram(
        ["run", "job.json", "--workers", "4", "--json"],
        in: directory
      )
      let start = ContinuousClock.now
      let share = generator.next().isMultiple(of: 2) ? 0.0...1.0 : 0.4...0.9
      let moment = Double.random(in: share, using: &generator) * limit
      limit *= 1.05
      let wasKilled = program.send(SIGKILL, afterSeconds: moment)
      let result = program.wait()
      let hasStarted = result.says("started")
      // Killed at the very end, with its summary printed, a run may be over; then a new one is
      // another job. `CrashTests` knows when that moment is, and allows it nowhere else. A run may
      // have begun without having reported it, so runs are distinguished by their UUIDs.
      if let name = result.run, name != run {
        if hadSaidAll { jobCount += 1 }
        (run, hadSaidAll) = (name, false)
      }
      if result.says("finished") { hadSaidAll = true }
      if result.says("resumed"), !result.output.contains("\"done\":0,") { resumeCount += 1 }
      if wasKilled, result.status == -SIGKILL {
        killCount += 1
        continue
      }
      // Other work on the machine slowed down the first run.
      let seconds = start.duration(to: .now) / .seconds(1)
      if hasStarted { secondsUndisturbed = min(secondsUndisturbed, seconds) }
      try #require(result.status == status, "\(name), seed \(seed): \(result.errors)")
      jobCount += 1
      return
    }
    Issue.record("\(name), seed \(seed): the job never completes")
  }
}

extension BatchProgram.Result {
  /// The run that the first event is of; nil if there is none.
  fileprivate var run: String? {
    let line = output.split(separator: "\n").first
    return line.flatMap { try? JSONOutput.object(String($0)) }?["run"] as? String
  }

  /// Whether there is an event of that name.
  fileprivate func says(_ event: String) -> Bool {
    output.contains("\"event\":\"\(event)\"")
  }
}
