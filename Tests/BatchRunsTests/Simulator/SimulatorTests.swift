import Testing

/// Random schedules against a naive model; `Scripts/simulate` runs a million.
///
/// `BATCH_SCHEDULES` says how many, `BATCH_SEED` which is the first.
@Suite struct SimulatorTests {
  @Test func `a run does each identifier once and ends in every simulated schedule`() async {
    guard let failed = await Sweep<Simulation>.run("simulate", schedules: 2000) else { return }
    for line in failed.report { print(line) }
    Issue.record("the schedule of seed \(failed.seed) fails")
  }

  @Test func `a simulated schedule is reproducible from its seed`() async {
    for seed in UInt64(1)...200 {
      let (first, second) = (Simulation(Choices(seed: seed)), Simulation(Choices(seed: seed)))
      await first.run()
      await second.run()
      #expect(first.choices.made == second.choices.made)
      #expect(first.steps == second.steps)
    }
  }

  @Test func `the run simulator covers every kind of event`() async {
    var missing = Set(Simulation.Occurrence.allCases)
    for seed in UInt64(1)...20_000 where !missing.isEmpty {
      let simulation = Simulation(Choices(seed: seed))
      await simulation.run()
      missing = missing.filter { simulation.occurrences & 1 << $0.rawValue == 0 }
    }
    #expect(missing.isEmpty)
  }

  @Test(arguments: Simulation.Flaw.allCases)
  func `the run simulator detects each known flaw and shortens its schedule`(
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
