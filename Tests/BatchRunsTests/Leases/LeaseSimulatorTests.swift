import Testing

/// Runs that several hosts share, against a naive model; `Scripts/simulate` runs a million.
///
/// `BATCH_SCHEDULES` says how many, `BATCH_SEED` which is the first.
@Suite struct LeaseSimulatorTests {
  @Test func `a shared run does each identifier once despite failing hosts and a failing server`()
    async
  {
    guard let failed = await Sweep<LeaseSimulation>.run("leases", schedules: 500) else { return }
    for line in failed.report { print(line) }
    Issue.record("the schedule of seed \(failed.seed) fails")
  }

  @Test func `the lease simulator covers every kind of event`() async {
    var missing = Set(LeaseSimulation.Occurrence.allCases)
    for seed in UInt64(1)...5000 where !missing.isEmpty {
      let simulation = LeaseSimulation(Choices(seed: seed))
      await simulation.run()
      missing = missing.filter { simulation.occurrences & 1 << $0.rawValue == 0 }
    }
    #expect(missing.isEmpty)
  }

  @Test(arguments: LeaseSimulation.Flaw.allCases)
  func `the lease simulator detects each known flaw and shortens its schedule`(
    flaw: LeaseSimulation.Flaw
  ) async throws {
    let sweep = await Sweep<LeaseSimulation>(stride(from: 1, to: 20_000, by: 1), flaw: flaw)
    let seed = try #require(sweep.failed)
    let sound = LeaseSimulation(Choices(seed: seed))
    await sound.run()
    #expect(sound.violation == nil)
    let report = await Sweep<LeaseSimulation>.report(seed, flaw: flaw)
    #expect(report.last?.contains("VIOLATION") == true)
  }
}
