import Testing

/// Random schedules against a naive model; `Scripts/simulate` runs a million.
///
/// `BATCH_SCHEDULES` says how many, `BATCH_SEED` which is the first.
@Suite struct SimulatorTests {
  @Test func `each identifier is done once and the run ends, whatever happens`() async {
    guard let failed = await Sweep<Simulation>.run("simulate", schedules: 2000) else { return }
    for line in failed.report { print(line) }
    Issue.record("the schedule of seed \(failed.seed) fails")
  }

  @Test func `a schedule is the same each time`() async {
    for seed in UInt64(1)...200 {
      let (first, second) = (Simulation(Choices(seed: seed)), Simulation(Choices(seed: seed)))
      await first.run()
      await second.run()
      #expect(first.choices.made == second.choices.made)
      #expect(first.steps == second.steps)
    }
  }

  @Test func `schedules have everything in them that may happen to a run`() async {
    var missing = Set(Simulation.Occurrence.allCases)
    for seed in UInt64(1)...20_000 where !missing.isEmpty {
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
    let sweep = await Sweep<Simulation>(stride(from: 1, to: 20_000, by: 1), flaw: flaw)
    let seed = try #require(sweep.failed)
    let sound = Simulation(Choices(seed: seed))
    await sound.run()
    #expect(sound.violation == nil)
    let report = await Sweep<Simulation>.report(seed, flaw: flaw)
    #expect(report.last?.contains("VIOLATION") == true)
    #expect(report.count < 60)
  }
}
