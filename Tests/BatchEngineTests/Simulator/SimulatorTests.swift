@testable import BatchEngine
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Schedules that nobody has thought of, against a naive model; `Scripts/simulate` runs a million.
///
/// `BATCH_SCHEDULES` says how many, `BATCH_SEED` which is the first.
@Suite struct SimulatorTests {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap(Int.init)
  }

  /// What came of some schedules.
  private struct Tally {
    var schedules = 0
    var steps = 0
    var processes = 0
    /// The seed of the first that failed.
    var failed: UInt64?
  }

  private static func run(_ seeds: StrideTo<UInt64>, flaw: Simulation.Flaw? = nil) async -> Tally {
    var tally = Tally()
    for seed in seeds {
      let simulation = Simulation(Choices(seed: seed), flaw: flaw)
      await simulation.run()
      tally.schedules += 1
      tally.steps += simulation.steps
      tally.processes += simulation.processes.count
      if simulation.violation != nil {
        tally.failed = seed
        break
      }
    }
    return tally
  }

  /// The smallest schedule like that of a seed which fails, in words.
  private static func report(_ seed: UInt64, flaw: Simulation.Flaw? = nil) async -> [String] {
    let first = Simulation(Choices(seed: seed), flaw: flaw)
    await first.run()
    let shrinking = await Shrinking(first)
    let smallest = Simulation(Choices(shrinking.smallest), flaw: flaw, isTraced: true)
    await smallest.run()
    return [
      "BATCH_SEED=\(seed) fails: \(first.violation ?? "")",
      "the smallest schedule like it, choices \(shrinking.smallest):",
    ] + smallest.trace
  }

  @Test func `whatever happens, each identifier is done once and the run ends`() async {
    let count = UInt64(Self.number("BATCH_SCHEDULES") ?? 2000)
    let first = Self.number("BATCH_SEED").map { UInt64($0) } ?? .random(in: 0..<1 << 40)
    let tasks = UInt64(ProcessInfo.processInfo.activeProcessorCount)
    let start = ContinuousClock.now
    let tallies = await withTaskGroup(of: Tally.self) { group in
      for task in 0..<tasks {
        group.addTask {
          await Self.run(stride(from: first + task, to: first + count, by: Int(tasks)))
        }
      }
      var tallies: [Tally] = []
      for await tally in group { tallies.append(tally) }
      return tallies
    }
    let seconds = start.duration(to: .now) / .seconds(1)
    let schedules = tallies.reduce(0) { $0 + $1.schedules }
    print(
      "simulate: BATCH_SEED=\(first), \(schedules) schedules,",
      "\(tallies.reduce(0) { $0 + $1.processes }) processes,",
      "\(tallies.reduce(0) { $0 + $1.steps }) steps, \(Int(Double(schedules) / seconds)) a second"
    )
    if let failed = tallies.compactMap(\.failed).min() {
      for line in await Self.report(failed) { print(line) }
      Issue.record("the schedule of seed \(failed) fails")
    }
  }

  @Test func `schedules have everything in them that may happen to a run`() async {
    var missing = Set(Simulation.Occurrence.allCases)
    for seed in UInt64(1)...5000 where !missing.isEmpty {
      let simulation = Simulation(Choices(seed: seed))
      await simulation.run()
      missing = missing.filter { simulation.occurrences & 1 << $0.rawValue == 0 }
    }
    #expect(missing.isEmpty)
  }

  @Test(arguments: Simulation.Flaw.allCases)
  func `a store or a process that is broken is caught, and its schedule made small`(
    flaw: Simulation.Flaw
  ) async throws {
    let seed = try #require(await Self.run(stride(from: 1, to: 20_000, by: 1), flaw: flaw).failed)
    let sound = Simulation(Choices(seed: seed))
    await sound.run()
    #expect(sound.violation == nil)
    let report = await Self.report(seed, flaw: flaw)
    #expect(report.last?.contains("VIOLATION") == true)
    #expect(report.count < 60)
  }
}
