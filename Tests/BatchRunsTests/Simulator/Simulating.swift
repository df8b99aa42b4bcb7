#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Something that happens as the choices of a schedule have it, beside a naive model.
protocol Simulating: AnyObject, SendableMetatype {
  /// What may be broken on purpose, so that a test can see it caught.
  associatedtype Flaw: CaseIterable & Sendable

  init(_ choices: Choices, flaw: Flaw?, isTraced: Bool)

  /// Runs all events.
  func run() async

  var choices: Choices { get }
  var flaw: Flaw? { get }
  var steps: Int { get }
  /// How many processes there were.
  var processCount: Int { get }
  /// What contradicts the naive model, in words.
  var violation: String? { get }
  /// What has happened, in words, if it is traced.
  var trace: [String] { get }
}

/// Schedules of many seeds.
struct Sweep<Simulated: Simulating> {
  private(set) var schedules = 0
  private(set) var steps = 0
  private(set) var processes = 0
  /// The seed of the first that failed.
  private(set) var failed: UInt64?

  init(_ seeds: StrideTo<UInt64>, flaw: Simulated.Flaw? = nil) async {
    for seed in seeds {
      let simulation = Simulated(Choices(seed: seed), flaw: flaw, isTraced: false)
      await simulation.run()
      schedules += 1
      steps += simulation.steps
      processes += simulation.processCount
      if simulation.violation != nil {
        failed = seed
        break
      }
    }
  }

  /// The smallest schedule that fails like that of a seed, in words.
  static func report(_ seed: UInt64, flaw: Simulated.Flaw? = nil) async -> [String] {
    let first = Simulated(Choices(seed: seed), flaw: flaw, isTraced: false)
    await first.run()
    let shrinking = await Shrinking(first)
    let smallest = Simulated(Choices(shrinking.smallest), flaw: flaw, isTraced: true)
    await smallest.run()
    return [
      "BATCH_SEED=\(seed) fails: \(first.violation ?? "")",
      "the smallest schedule like it, choices \(shrinking.smallest):",
    ] + smallest.trace
  }

  /// Runs as many schedules as `BATCH_SCHEDULES` says, from the seed `BATCH_SEED` on, on all processors, and
  /// prints what it took.
  ///
  /// - Returns: The first seed that fails, if one does, and its smallest schedule.
  static func run(_ name: String, schedules count: Int) async -> (seed: UInt64, report: [String])? {
    let count = UInt64(number("BATCH_SCHEDULES") ?? count)
    let first = number("BATCH_SEED").map { UInt64($0) } ?? .random(in: 0..<1 << 40)
    let tasks = UInt64(ProcessInfo.processInfo.activeProcessorCount)
    let start = ContinuousClock.now
    let sweeps = await withTaskGroup(of: Self.self) { group in
      for task in 0..<tasks {
        group.addTask {
          await Self(stride(from: first + task, to: first + count, by: Int(tasks)))
        }
      }
      var sweeps: [Self] = []
      for await sweep in group { sweeps.append(sweep) }
      return sweeps
    }
    let seconds = start.duration(to: .now) / .seconds(1)
    let schedules = sweeps.reduce(0) { $0 + $1.schedules }
    print(
      "\(name): BATCH_SEED=\(first), \(schedules) schedules,",
      "\(sweeps.reduce(0) { $0 + $1.processes }) processes,",
      "\(sweeps.reduce(0) { $0 + $1.steps }) steps, \(Int(Double(schedules) / seconds)) a second"
    )
    guard let failed = sweeps.compactMap(\.failed).min() else { return nil }
    return (failed, await report(failed))
  }

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap(Int.init)
  }
}
