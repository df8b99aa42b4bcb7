#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Tables that somebody changes, empties or replaces during a run.
@Suite struct TamperedRunTests {
  static let edits = [
    "TRUNCATE _batch_ledger", "DELETE FROM _batch_ledger WHERE first = 10",
    "UPDATE _batch_ledger SET next = next - 1 WHERE first = 10", "TRUNCATE _batch_tally",
    "TRUNCATE _batch_ledger, _batch_tally", "DELETE FROM _batch_tally WHERE entered > 0",
    "DROP TABLE _batch_ledger", "DROP TABLE _batch_tally", "DROP TABLE _batch_ledger, _batch_tally",
  ]

  private func expectRefusal(_ body: () throws -> Void) {
    let error = #expect(throws: BatchError.self) { try body() }
    #expect(error?.code == .damagedFile)
    #expect(error?.message.contains("_batch_") == true, "\(String(describing: error))")
  }

  @Test(arguments: edits)
  func `a span is not taken over if its finished work is missing from the ledger`(edit: String)
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    let (a, b) = (try trial.host(), try trial.host())
    let lease = try a.lease().lease
    try a.commit(0..<5, under: lease)
    try a.commit(10..<15, under: lease)
    try trial.database.run(edit)
    try trial.tables.create(in: b.session)
    try a.fallSilent()
    expectRefusal { _ = try b.claim() }
    #expect(try trial.counts() == ["0 x 10", "1 x 10"])
  }

  @Test(arguments: edits)
  func `a process at work is refused when it closes a span whose ledger was edited`(edit: String)
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    let a = try trial.host()
    let lease = try a.lease().lease
    try a.commit(0..<5, under: lease)
    try a.commit(10..<15, under: lease)
    try trial.database.run(edit)
    try trial.tables.create(in: trial.trial.session)
    try a.commit(5..<10, under: lease)
    try a.commit(15..<20, under: lease)
    expectRefusal { try a.claims.close(lease, in: a.session) }
    expectRefusal { _ = try a.claim() }
    #expect(try trial.counts() == ["1 x 20"])
  }

  @Test(arguments: [
    "TRUNCATE _batch_ledger", "DELETE FROM _batch_ledger WHERE first = 5",
    "TRUNCATE _batch_ledger, _batch_tally",
  ])
  func `a retried chunk is refused if the ledger has lost it`(
    edit: String
  ) async throws {
    for method in [WritingMethod.counting, .listing] {
      let trial = try await RunTrial(20, spansOf: 20)
      let a = try trial.host()
      let lease = try a.lease().lease
      try a.commit(0..<5, under: lease)
      try a.commit(5..<10, under: lease)
      try trial.database.run(edit)
      // The process retries the same chunk under the same lease, on a new connection.
      let again = try trial.host()
      again.method = method
      expectRefusal { try again.commit(5..<10, under: lease) }
      #expect(try trial.counts() == ["0 x 10", "1 x 10"])
    }
  }

  @Test func `a run that somebody marks as done by hand does not count as done`() async throws {
    let trial = try await RunTrial(20, spansOf: 10)
    let a = try trial.host()
    try a.commit(0..<5, under: a.lease().lease)
    try trial.database.run("UPDATE _batch_span SET done = true")
    expectRefusal { _ = try trial.tables.finish(trial.run, by: a.heartbeat.host, in: a.session) }
    try trial.database.run("UPDATE _batch_span SET succeeded = 10")
    #expect(try trial.tables.finish(trial.run, by: a.heartbeat.host, in: a.session))
    // With the ledger's row, more than all are done.
    expectRefusal { _ = try trial.tables.snapshot(ofRun: trial.run, in: a.session) }
    try trial.database.run(
      "UPDATE _batch_span SET done = false; UPDATE _batch_run SET state = 'finished'"
    )
    expectRefusal { _ = try trial.tables.snapshot(ofRun: trial.run, in: a.session) }
  }

  @Test func `the tally of a span equals its ledger entries and disappears with the span`()
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    let (a, b) = (try trial.host(), try trial.host())
    let lease = try a.lease().lease
    try a.commit(0..<5, under: lease)
    try b.commit(5..<8, under: lease)
    try a.commit(8..<20, under: lease)
    // The ledger answers, and nothing is counted again.
    try b.commit(0..<5, under: lease)
    let counts = "SELECT string_agg(entered::text, ',' ORDER BY entered) FROM _batch_tally"
    #expect(try trial.database.text(counts) == "0,3,17")
    try a.claims.close(lease, in: a.session)
    #expect(try trial.database.text(counts) == nil)
  }

  @Test func `run tables that are only partly there are reported as damaged and not created again`()
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    try trial.database.run("DROP TABLE _batch_run")
    let error = #expect(throws: BatchError.self) {
      try trial.tables.create(in: trial.trial.session)
    }
    #expect(error?.code == .damagedFile)
    #expect(error?.message.contains("_batch_run is gone") == true)
    #expect(try trial.database.text("SELECT to_regclass('_batch_run')") == nil)
  }

  @Test(arguments: [
    "ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old INCLUDING ALL)",
    "CREATE TABLE new (LIKE t INCLUDING ALL); DROP TABLE t; ALTER TABLE new RENAME TO t",
    "CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; CREATE TABLE t (id bigint PRIMARY KEY, n int)",
  ])
  func `a table that has replaced the run's is not written`(script: String) async throws {
    for method in [WritingMethod.counting, .listing] {
      let trial = try await RunTrial(20, spansOf: 20)
      let a = try trial.host()
      let lease = try a.lease().lease
      try a.commit(0..<5, under: lease)
      try trial.database.run(
        "\(script); INSERT INTO t SELECT generate_series(1, 20), 0 ON CONFLICT DO NOTHING"
      )
      a.method = method
      let error = #expect(throws: BatchError.self) { try a.commit(5..<10, under: lease) }
      #expect(error?.code == .otherRun, "\(String(describing: error))")
      #expect(error?.message.contains("\"t\" is another table now") == true)
      #expect(try trial.counts() == ["0 x 20"])
      #expect(try trial.tables.done(ofRun: trial.run, in: a.session).count == 5)
    }
  }

  @Test func `an archive that has replaced the run's gets no rows`() async throws {
    let trial = try await RunTrial(20, spansOf: 20, "CREATE TABLE gone (id bigint, n int)")
    let a = try trial.host()
    let lease = try a.lease().lease
    let chunks = trial.transaction(
      try trial.trial.expecting(trial.trial.delete(archive: "gone"))
    )
    func run(_ positions: Range<Int>) throws {
      var method = WritingMethod.counting
      let keys = try trial.trial.keys(positions)
      _ = try chunks.run(keys, at: positions, under: lease, by: &method, in: a.session)
    }
    try run(0..<5)
    try trial.database.run("ALTER TABLE gone RENAME TO old; CREATE TABLE gone (id bigint, n int)")
    let error = #expect(throws: BatchError.self) { try run(5..<10) }
    #expect(error?.code == .otherRun)
    #expect(try trial.database.text("SELECT count(*) FROM t") == "15")
    #expect(try trial.database.text("SELECT count(*) FROM gone") == "0")
  }
}
#endif
