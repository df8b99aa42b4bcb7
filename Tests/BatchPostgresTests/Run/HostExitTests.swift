#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

/// How processes ended stays with the run, for whoever asks later.
@Suite struct HostExitTests {
  private func exits(_ trial: RunTrial) throws -> [HostExit] {
    try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session).compactMap(\.exit)
  }

  private func fail(_ host: RunTrialHost, _ reason: String) throws {
    try host.heartbeat.enter(HostExit(.failed, because: reason), in: host.session)
    try host.heartbeat.leave(in: host.session)
  }

  @Test func `hosts that stopped or failed are listed after those that work`() async throws {
    let trial = try await RunTrial(10, spansOf: 10)
    let (failing, stopping) = (try trial.host(), try trial.host())
    let working = try trial.host()
    try fail(failing, "the disk is full")
    try stopping.heartbeat.enter(HostExit(.stopped, because: nil), in: stopping.session)
    try stopping.heartbeat.leave(in: stopping.session)
    let hosts = try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session)
    #expect(
      hosts.map(\.host) == [working, stopping, failing].map(\.heartbeat.host)
    )
    #expect(
      hosts.map(\.exit)
        == [nil, HostExit(.stopped, because: nil), HostExit(.failed, because: "the disk is full")]
    )
    #expect(hosts.map { $0.isAlive(within: .seconds(60)) } == [true, false, false])
    #expect(hosts.allSatisfy { $0.silence < .seconds(30) && $0.seenAt.hasSuffix("Z") })
  }

  @Test func `a process that joins on a machine clears the earlier failures of that machine`()
    async throws
  {
    let trial = try await RunTrial(10, spansOf: 10)
    try fail(try trial.host(), "first")
    try fail(try trial.host(), "second")
    // Both failed before this process joined.
    let next = try trial.host()
    #expect(try exits(trial) == [])
    try fail(next, "third")
    #expect(try exits(trial).map(\.reason) == ["third", "second", "first"])
  }

  @Test func `equal exit reasons are listed once, and a run keeps at most a hundred exits`()
    async throws
  {
    let trial = try await RunTrial(10, spansOf: 10)
    for _ in 0..<RunTables.exitLimit + 5 { try fail(try trial.host(), "again") }
    try fail(try trial.host(), "at last")
    #expect(try exits(trial).map(\.reason) == ["at last", "again"])
    #expect(
      try trial.database.text("SELECT count(*) FROM _batch_exit") == "\(RunTables.exitLimit)"
    )
    try trial.tables.remove(trial.run, in: trial.trial.session)
    #expect(try trial.database.text("SELECT count(*) FROM _batch_exit") == "0")
  }

  @Test func `an exit reason of any length and any characters is stored, cut to the limit`()
    async throws
  {
    let trial = try await RunTrial(10, spansOf: 10)
    try fail(try trial.host(), String(repeating: "ü'\\", count: 10_000))
    #expect(try exits(trial).first?.reason?.count == 4_000)
  }

  @Test func `a process that joins turns the silent ones of its machine into exits`() async throws {
    let trial = try await RunTrial(30, spansOf: 10)
    for count in 1...3 {
      let host = try trial.host()
      _ = try host.lease()
      var report = HostHeartbeat.Report()
      report.done = count
      _ = try host.heartbeat.beat(report, in: host.session)
      try host.fallSilent()
    }
    let next = try trial.host()
    let hosts = try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session)
    // While the run is running, the new process stands for the machine.
    #expect(hosts.map(\.host) == [next.heartbeat.host])
    let exits = "SELECT string_agg(done || state, ' ' ORDER BY done) FROM _batch_exit"
    #expect(try trial.database.text(exits) == "1silent 2silent 3silent")
    // Their spans are free.
    for _ in 1...3 { _ = try next.lease() }
    try trial.database.run("UPDATE _batch_run SET state = 'setAside'")
    let all = try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session)
    #expect(all.map(\.done) == [0, 6])
    #expect(all.map(\.exit?.state) == [nil, .silent])
  }

  @Test func `the time of a run is the union of the times of its processes`() async throws {
    let trial = try await RunTrial(10, spansOf: 10)
    let hosts = try (0..<3).map { _ in try trial.host() }
    try trial.database.run(
      "UPDATE _batch_run SET counted_at = clock_timestamp() - interval '1 hour';"
        + "UPDATE _batch_host SET counted_at = clock_timestamp() - interval '1 minute'"
    )
    for _ in 0..<5 { for host in hosts { _ = try host.heartbeat.beat(in: host.session) } }
    func elapsed() throws -> String? {
      try trial.database.text("SELECT elapsed::int FROM _batch_run")
    }
    #expect(try elapsed() == "60")
    // A heartbeat waits for nobody; what it leaves out, the next one adds.
    let session = try trial.database.session()
    try session.execute("BEGIN")
    try session.execute("SELECT FROM _batch_run FOR SHARE")
    try trial.database.run(
      "UPDATE _batch_host SET counted_at = counted_at - interval '1 minute'"
    )
    _ = try hosts[0].heartbeat.beat(in: hosts[0].session)
    #expect(try elapsed() == "60")
    try session.execute("UPDATE _batch_run SET counted_at = counted_at - interval '30 seconds'")
    try session.execute("COMMIT")
    _ = try hosts[0].heartbeat.beat(in: hosts[0].session)
    #expect(try elapsed() == "90")
  }
}
#endif
