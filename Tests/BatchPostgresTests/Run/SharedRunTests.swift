#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

@Suite struct SharedRunTests {
  @Test func `a run is stored with its spans and their identifiers`() async throws {
    let trial = try await RunTrial(1_050, spansOf: 100)
    let session = trial.trial.session
    let runs = try trial.tables.runs(ofJob: "job", in: session)
    #expect(runs.count == 1)
    #expect(runs[0].run == trial.run)
    #expect(runs[0].state == .running)
    #expect(runs[0].total == 1_050)
    #expect(runs[0].metadata == [0, 255])
    #expect(try trial.tables.runs(ofJob: "another", in: session) == [])
    for first in stride(from: 0, to: 1_050, by: 100) {
      let span = first..<min(first + 100, 1_050)
      let list = try trial.tables.list(of: span, ofRun: trial.run, in: session)
      #expect(list.elementsEqual(trial.trial.list[span]))
    }
  }

  @Test func `a stored list of composite keys is restored from spans of bounded length`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (a text, b uuid, PRIMARY KEY (a, b));
      INSERT INTO t SELECT repeat('long ', 20) || g, md5(g::text)::uuid FROM generate_series(1, 25000) AS g
      """
    )
    let session = trial.session
    let tables = try RunTables(of: session)
    let run = UUID().uuidString.lowercased()
    #expect(SpanList.length(for: trial.list.packed) == 10_000)
    try session.transaction { () throws(BatchError) in
      try tables.create(in: session)
      try tables.begin(run, .init(job: "j", fingerprint: ""), over: trial.list.packed, in: session)
    }
    #expect(
      try session.text("SELECT string_agg(next - first || '', ',' ORDER BY first) FROM _batch_span")
        == "10000,10000,5000"
    )
    let last = try tables.list(of: 20_000..<25_000, ofRun: run, in: session)
    #expect(last.elementsEqual(trial.list[20_000..<25_000]))
  }

  @Test func `an empty run grants no span and is finished by a single process`() async throws {
    let trial = try await RunTrial(0, spansOf: 10)
    let session = trial.trial.session
    let host = try trial.host()
    #expect(try host.claim() == .exhausted)
    #expect(try trial.tables.finish(trial.run, by: host.heartbeat.host, in: session))
    #expect(try !trial.tables.finish(trial.run, by: host.heartbeat.host, in: session))
    #expect(try trial.tables.runs(ofJob: "job", in: session)[0].state == .finished)
  }

  @Test(arguments: [
    "DELETE FROM _batch_list", "UPDATE _batch_list SET bytes = substr(bytes, 1, 90)",
    "UPDATE _batch_list SET bytes = set_byte(bytes, 90, get_byte(bytes, 90) # 4)",
    "UPDATE _batch_list AS l SET bytes = o.bytes FROM _batch_list AS o WHERE l.first = 0 AND o.first = 100",
  ])
  func `a stored list that was edited by hand is refused`(edit: String) async throws {
    let trial = try await RunTrial(150, spansOf: 100)
    try trial.database.run(edit)
    let error = #expect(throws: BatchError.self) {
      try trial.tables.list(of: 0..<100, ofRun: trial.run, in: trial.trial.session)
    }
    #expect(error?.code == .damagedFile)
    #expect(error?.message.contains("positions 0 to 99") == true)
  }

  @Test func `simultaneous processes create the run tables once`() async throws {
    let database = try TestPostgres()
    let address = try database.address
    let errors = await withTaskGroup(of: BatchError?.self) { group in
      for index in 0..<4 {
        group.addTask {
          let connection = PostgresConnection(label: "batch.\(index)", address: address)
          var answer: BatchError?
          do throws(BatchError) {
            try await connection.perform { session throws(BatchError) in
              let tables = try RunTables(of: session)
              try session.transaction { () throws(BatchError) in try tables.create(in: session) }
            }
          } catch {
            answer = error
          }
          await connection.close()
          return answer
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(errors.allSatisfy { $0 == nil }, "\(errors)")
    let alone = try TestPostgres()
    let session = try alone.session()
    try RunTables(of: session).create(in: session)
    let names = """
      SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relname LIKE '\\_batch%'
      """
    #expect(try database.text(names) == alone.text(names))
    #expect(try alone.text(names)?.contains("_batch_run ") == true)
  }

  @Test func `the error for a role that may not create tables names the necessary grant`()
    async throws
  {
    let role = "maker_\(UInt32.random(in: 0 ... .max))"
    let database = try TestPostgres(
      "CREATE ROLE \(role) LOGIN; CREATE SCHEMA closed; GRANT USAGE ON SCHEMA closed TO \(role)"
    )
    defer { try? database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    let session = try database.session(role: role)
    let error = #expect(throws: BatchError.self) {
      try session.transaction { () throws(BatchError) in
        try RunTables(schema: "closed").create(in: session)
      }
    }
    #expect(error?.code == .accessDenied)
    #expect(error?.remedy?.contains("CREATE") == true)
  }

  @Test func `a run of a newer version is refused`() async throws {
    let trial = try await RunTrial(10, spansOf: 10)
    try trial.database.run("UPDATE _batch_run SET version = 2")
    let error = #expect(throws: BatchError.self) {
      try trial.tables.runs(ofJob: "job", in: trial.trial.session)
    }
    #expect(error?.code == .unsupportedVersion)
  }

  @Test func `a heartbeat returns the operator's requests`() async throws {
    let trial = try await RunTrial(10, spansOf: 10)
    let host = try trial.host()
    #expect(try host.heartbeat.beat(in: host.session) == .init(state: .running, control: nil))
    try trial.tables.request("{\"pause\": true}", of: trial.run, in: trial.trial.session)
    var report = HostHeartbeat.Report()
    (report.rate, report.hold, report.done) = (12.5, "paused", 7)
    (report.waiting, report.heldSeconds, report.peakBytes) = ("a lock", 3_600, 5 << 20)
    let answer = try host.heartbeat.beat(report, in: host.session)
    #expect(answer?.control == "{\"pause\": true}")
    #expect(answer?.request == answer?.control)
    // Nobody can resume a run that has ended during a pause.
    #expect(HostHeartbeat.Answer(state: .acknowledged, control: "{\"pause\": true}").request == nil)
    let hosts = try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session)
    #expect(hosts.map(\.name) == ["host"])
    #expect(hosts[0].rate == 12.5)
    #expect(hosts[0].hold == "paused")
    #expect(hosts[0].waiting == "a lock")
    let snapshot = try trial.tables.snapshot(ofRun: trial.run, in: trial.trial.session)
    #expect(snapshot?.peakBytes == 5 << 20)
    // No run is held for longer than it takes.
    #expect(snapshot.map { $0.heldSeconds > 0 && $0.heldSeconds <= $0.elapsedSeconds } == true)
    #expect(hosts[0].done == 7)
    #expect(hosts[0].silence < .seconds(5))
    _ = try host.lease()
    #expect(try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session)[0].spanCount == 1)
    try host.heartbeat.leave(in: host.session)
    #expect(try host.heartbeat.beat(in: host.session) == nil)
    #expect(try trial.tables.hosts(ofRun: trial.run, in: trial.trial.session) == [])
    // Its spans are free immediately.
    #expect(try trial.host().lease().lease.positions == 0..<10)
  }
}
#endif
