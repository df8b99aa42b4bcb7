import BatchTestSupport
import Foundation
import Testing

/// Runs a job as a child process that is killed at random moments and run again until it is done,
/// again and again.
struct KillLoop {
  /// How many kills are wanted.
  static let kills = ProcessInfo.processInfo.environment["BATCH_KILLS"].flatMap(Int.init) ?? 12

  /// How many rows a job of a kind has, small unless many kills are wanted.
  static func rows(_ many: Int) -> Int { kills >= 100 ? many : many / 10 }

  private let name: String
  /// How a run ends that is not killed.
  private let ending: (status: Int32, state: String)
  private let directory: TemporaryDirectory
  private let seed: UInt64
  private var generator: SeededGenerator
  private var secondsUndisturbed = 0.0
  private var completed: Set<String> = []
  private var killCount = 0
  private var resumeCount = 0

  /// A loop over the job in `job.json`.
  init(_ name: String, in directory: TemporaryDirectory, failing: Bool = false) {
    ending = failing ? (4, "completedWithFailures") : (0, "completed")
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
  ///   - check: Called after each completed job with the number of jobs so far; whether every row
  ///     is as it should be.
  /// - Throws: What `check` throws.
  mutating func run(rows: Int, check: (Int) throws -> Bool) throws {
    let clock = ContinuousClock()
    let start = clock.now
    let first = try BatchProgram.run("run", "job.json", "--workers", "4", in: directory)
    secondsUndisturbed = start.duration(to: clock.now) / .seconds(1)
    try #require(first.status == ending.status, "\(name), seed \(seed): \(first.errors)")
    let isComplete = try noteCompletion()
    try #require(isComplete, "\(name), seed \(seed): the first run is not complete")
    var wrongJobs = try check(completed.count) ? 0 : 1
    while killCount < Self.kills {
      try completeJob()
      if try !check(completed.count) { wrongJobs += 1 }
    }
    #expect(wrongJobs == 0, "\(name), seed \(seed)")
    #expect(resumeCount > 0, "\(name), seed \(seed): no run was resumed with work done")
    print(
      "kill-loop \(name): \(killCount) kills, \(completed.count) jobs of \(rows) rows,"
        + " \(resumeCount) resumed half-way, seed \(seed): "
        + (wrongJobs == 0 ? "every row exactly once" : "FAILED in \(wrongJobs) jobs")
    )
  }

  /// Runs the job, and kills it, until it is complete.
  private mutating func completeJob() throws {
    for _ in 1...1000 {
      let program = try BatchProgram(
        ["run", "job.json", "--workers", "4", "--json"],
        in: directory
      )
      let start = ContinuousClock.now
      let share = generator.next().isMultiple(of: 2) ? 0.0...1.0 : 0.4...0.9
      let moment = Double.random(in: share, using: &generator) * secondsUndisturbed
      let wasKilled = program.send(SIGKILL, afterSeconds: moment)
      let result = program.wait()
      if result.output.contains("\"event\":\"resumed\""), !result.output.contains("\"done\":0,") {
        resumeCount += 1
      }
      guard wasKilled, result.status == -SIGKILL else {
        // The first run was slowed down by whatever ran beside it.
        let seconds = start.duration(to: .now) / .seconds(1)
        if result.output.contains("\"event\":\"started\"") {
          secondsUndisturbed = min(secondsUndisturbed, seconds)
        }
        try #require(result.status == ending.status, "\(name), seed \(seed): \(result.errors)")
        let isComplete = try noteCompletion()
        try #require(isComplete, "\(name), seed \(seed): \(result.output)")
        return
      }
      killCount += 1
      // It may have been killed after its last step.
      if try noteCompletion() { return }
    }
    Issue.record("\(name), seed \(seed): the job never completes")
  }

  /// Whether the checkpoint is that of a complete run that was not noted before.
  private mutating func noteCompletion() throws -> Bool {
    let result = try BatchProgram.run("status", "job.json", "--json", in: directory)
    guard result.status == 0 else { return false }  // Killed before the first checkpoint.
    let status = try JSONOutput.object(result.output)
    guard status["state"] as? String == ending.state, let run = status["run"] as? String else {
      return false
    }
    #expect(status["done"] as? Int == status["total"] as? Int)
    return completed.insert(run).inserted
  }
}
