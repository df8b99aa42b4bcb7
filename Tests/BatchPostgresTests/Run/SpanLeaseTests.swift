#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

@Suite struct SpanLeaseTests {
  @Test func `each span is leased to one host, in order, until none is free`() async throws {
    let trial = try await RunTrial(30, spansOf: 10)
    let (a, b) = (try trial.host(), try trial.host())
    let first = try a.lease()
    #expect(first.lease.positions == 0..<10)
    #expect(first.remaining == [0..<10])
    #expect(try b.lease().lease.positions == 10..<20)
    let last = try a.lease(knowing: [0])
    #expect(last.lease.positions == 20..<30)
    #expect(try a.claim(knowing: [0, 20]) == .noneFree)
    #expect(try b.claim(knowing: [10]) == .noneFree)
    // A lost answer: the server records the span as its own, and it does not know.
    let again = try a.lease(knowing: [0])
    #expect(again.lease.positions == 20..<30)
    #expect(again.lease.token == last.lease.token + 1)
    let lost = #expect(throws: BatchError.self) { try a.commit(20..<25, under: last.lease) }
    #expect(lost?.code == .leaseLost)
    #expect(try a.commit(20..<25, under: again.lease).succeeded == 5)
  }

  @Test func `hosts that claim simultaneously never share a span`() async throws {
    let trial = try await RunTrial(2_000, spansOf: 5)
    let address = try trial.database.address
    let (tables, run) = (trial.tables, trial.run)
    let claimed = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<4 {
        group.addTask {
          let connection = PostgresConnection(label: "batch.claim.\(number)", address: address)
          let count = try await connection.perform { session throws(BatchError) in
            let heartbeat = HostHeartbeat(tables, run: run, host: UUID().uuidString.lowercased())
            try heartbeat.join(name: "host", process: 1, in: session)
            let claims = SpanClaims(heartbeat, lease: .seconds(600))
            var known: [Int] = []
            while case .granted(let lease, _) = try claims.claim(knowing: known, in: session) {
              known.append(lease.positions.lowerBound)
            }
            return known.count
          }
          await connection.close()
          return count
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(claimed == 400)
    #expect(try trial.database.text("SELECT max(token) FROM _batch_span") == "1")
  }

  @Test func `a span is done when its chunks are, and the run when its spans are`() async throws {
    let trial = try await RunTrial(20, spansOf: 10)
    let (a, b) = (try trial.host(), try trial.host())
    let (first, second) = (try a.lease().lease, try b.lease().lease)
    #expect(try a.commit(0..<4, under: first).succeeded == 4)
    let early = #expect(throws: BatchError.self) { try a.claims.close(first, in: a.session) }
    #expect(early?.code == .leaseLost)
    #expect(try a.commit(4..<10, under: first).succeeded == 6)
    try a.claims.close(first, in: a.session)
    // The answer was lost, and it asks again.
    let twice = #expect(throws: BatchError.self) { try a.claims.close(first, in: a.session) }
    #expect(twice?.code == .leaseLost)
    let late = #expect(throws: BatchError.self) { try a.commit(0..<4, under: first) }
    #expect(late?.code == .leaseLost)
    #expect(try a.claim() == .noneFree)
    #expect(try !trial.tables.finish(trial.run, by: a.heartbeat.host, in: a.session))
    try b.commit(10..<20, under: second)
    try b.claims.close(second, in: b.session)
    #expect(try a.claim() == .exhausted)
    #expect(try b.claim() == .exhausted)
    // Only one of them reports the end.
    #expect(try trial.tables.finish(trial.run, by: b.heartbeat.host, in: b.session))
    #expect(try !trial.tables.finish(trial.run, by: a.heartbeat.host, in: a.session))
    try trial.tables.acknowledge(trial.run, in: a.session)
    #expect(try trial.tables.runs(ofJob: "job", in: a.session)[0].state == .acknowledged)
    let done = try trial.tables.done(ofRun: trial.run, in: a.session)
    #expect(done.count == 20)
    #expect(done.chunks == 3)
    #expect(done.rows.count == 1)
    #expect(try trial.database.text("SELECT count(*) FROM _batch_ledger") == "0")
    #expect(try trial.counts() == ["1 x 20"])
  }

  // MARK: Takeovers

  @Test
  func `the span of a host that is silent for a lease is taken over with its finished chunks`()
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    let (a, b) = (try trial.host(), try trial.host())
    let lease = try a.lease().lease
    try a.commit(0..<5, under: lease)
    try a.commit(10..<15, under: lease)
    try a.fallSilent(for: "59 seconds")
    #expect(try b.claim() == .noneFree)
    try a.fallSilent(for: "2 seconds")
    let taken = try b.lease()
    #expect(taken.lease.positions == 0..<20)
    #expect(taken.remaining == [5..<10, 15..<20])
    // It was only slow, and continues.
    let fenced = #expect(throws: BatchError.self) { try a.commit(5..<10, under: lease) }
    #expect(fenced?.code == .leaseLost)
    #expect(fenced?.isTransient == false)
    let close = #expect(throws: BatchError.self) { try a.claims.close(lease, in: a.session) }
    #expect(close?.code == .leaseLost)
    for chunk in taken.remaining { try b.commit(chunk, under: taken.lease) }
    try b.claims.close(taken.lease, in: b.session)
    #expect(try a.claim(knowing: [0]) == .exhausted)
    #expect(try trial.counts() == ["1 x 20"])
  }

  @Test func `a silent host keeps its span if it claims or sends a heartbeat before a takeover`()
    async throws
  {
    let trial = try await RunTrial(20, spansOf: 10)
    let (a, b) = (try trial.host(), try trial.host())
    _ = try a.lease()
    _ = try b.lease()
    try a.fallSilent()
    _ = try a.heartbeat.beat(in: a.session)
    #expect(try b.claim(knowing: [10]) == .noneFree)
    try a.fallSilent()
    #expect(try a.claim(knowing: [0]) == .noneFree)
    #expect(try b.claim(knowing: [10]) == .noneFree)
  }

  @Test func `a span is not taken over while one of its chunks is uncommitted`() async throws {
    for commits in [true, false] {
      let trial = try await RunTrial(20, spansOf: 20)
      let (a, b) = (try trial.host(), try trial.host())
      let lease = try a.lease().lease
      let fence = SpanFence(trial.tables, run: trial.run)
      let keys = try trial.trial.keys(0..<8)
      let change = try trial.change()
      try a.session.begin(TransactionOptions())
      #expect(try fence.enter(0..<8, under: lease, in: a.session) == .entered)
      _ = try change.write(to: keys, .counting, onFailure: .failChunk, in: a.session)
      try a.fallSilent()
      // It waits for nobody: another host would have got another span.
      #expect(try b.claim() == .noneFree)
      if commits { try a.session.commit() } else { a.session.rollBack() }
      let taken = try b.lease()
      #expect(taken.remaining == [commits ? 8..<20 : 0..<20])
      for chunk in taken.remaining { try b.commit(chunk, under: taken.lease) }
      #expect(try trial.counts() == ["1 x 20"])
    }
  }

  @Test func `two chunks of a span block neither each other nor heartbeats`() async throws {
    let trial = try await RunTrial(20, spansOf: 20)
    let (a, b) = (try trial.host(), try trial.database.session())
    let lease = try a.lease().lease
    let fence = SpanFence(trial.tables, run: trial.run)
    try a.session.begin(TransactionOptions(lockTimeout: .milliseconds(1)))
    #expect(try fence.enter(0..<8, under: lease, in: a.session) == .entered)
    try b.begin(TransactionOptions(lockTimeout: .milliseconds(1)))
    #expect(try fence.enter(8..<16, under: lease, in: b) == .entered)
    let c = try trial.database.session()
    #expect(try a.heartbeat.beat(in: c) != nil)
    try b.commit()
    try a.session.commit()
    #expect(try trial.tables.done(ofRun: trial.run, in: c).count == 16)
  }

  @Test func `the locks of a vanished host end with its lease`() async throws {
    let trial = try await RunTrial(20, spansOf: 20)
    let (a, b) = (try trial.host(), try trial.host())
    let lease = try a.lease().lease
    try a.session.begin(TransactionOptions(idleTimeout: .milliseconds(50)))
    _ = try SpanFence(trial.tables, run: trial.run).enter(0..<8, under: lease, in: a.session)
    try a.fallSilent()
    // It sends nothing, and holds its lock until the server ends it.
    try await trial.database.wait(
      until:
        "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_locks WHERE relation = '_batch_ledger'::regclass AND mode = 'RowExclusiveLock')"
    )
    #expect(try b.lease().remaining == [0..<20])
    let ended = #expect(throws: BatchError.self) { try a.session.commit() }
    #expect(ended?.isTransient == true)
  }

  // MARK: The outcome of a commit

  @Test func `a chunk that is retried waits for the first attempt and finds it done`() async throws
  {
    let trial = try await RunTrial(20, spansOf: 20)
    let a = try trial.host()
    let lease = try a.lease().lease
    let fence = SpanFence(trial.tables, run: trial.run)
    let change = try trial.change()
    let keys = try trial.trial.keys(0..<8)
    // The host has lost the connection, and the server does not know yet.
    try a.session.begin(TransactionOptions())
    _ = try fence.enter(0..<8, under: lease, in: a.session)
    _ = try change.write(to: keys, .counting, onFailure: .failChunk, in: a.session)
    let other = PostgresConnection(label: "batch.again", address: try trial.database.address)
    let chunks = trial.transaction(change)
    let again = Task {
      try await other.perform { session throws(BatchError) in
        var method = WritingMethod.counting
        return try chunks.run(keys, at: 0..<8, under: lease, by: &method, in: session).outcomes
      }
    }
    try await trial.database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'batch.again' AND wait_event_type = 'Lock'"
    )
    try a.session.commit()
    #expect(try await again.value.succeeded == 8)
    await other.close()
    #expect(try trial.counts() == ["0 x 12", "1 x 8"])
  }

  @Test func `a chunk is done once if its COMMIT reached the server but the answer was lost`()
    async throws
  {
    let trial = try await RunTrial(
      20,
      spansOf: 20,
      """
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_xact_lock_shared(5); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()
      """
    )
    let (a, gate) = (try trial.host(), try trial.database.session())
    let lease = try a.lease().lease
    let chunks = trial.transaction(try trial.change())
    let keys = try trial.trial.keys(0..<8)
    let connection = PostgresConnection(label: "batch.lost", address: try trial.database.address)
    let socket = Lock<Int32>(-1)
    @Sendable func commit() async throws -> Outcomes {
      try await connection.perform { session throws(BatchError) in
        socket.withLock { $0 = session.socket }
        var method = WritingMethod.counting
        return try chunks.run(keys, at: 0..<8, under: lease, by: &method, in: session).outcomes
      }
    }
    func wait(for event: String) async throws {
      try await trial.database.wait(
        until: """
          SELECT 1 FROM pg_stat_activity WHERE application_name = 'batch.lost'
            AND datname = current_database() AND wait_event = '\(event)'
          """
      )
    }
    // The connection breaks while the server is at the COMMIT, and the server does not notice.
    try gate.execute("SELECT pg_advisory_lock(5)")
    let first = Task { try await commit() }
    try await wait(for: "advisory")
    shutdown(socket.withLock { $0 }, Int32(SHUT_RDWR))
    let lost = await #expect(throws: BatchError.self) { try await first.value }
    #expect(lost?.code == .connectionLost)
    #expect(lost?.postgres?.state == .transactionResolutionUnknown)
    #expect(lost?.isTransient == true)
    // The same chunk waits for the server's decision.
    let second = Task { try await commit() }
    try await wait(for: "transactionid")
    try gate.execute("SELECT pg_advisory_unlock(5)")
    #expect(try await second.value.succeeded == 8)
    await connection.close()
    #expect(try trial.counts() == ["0 x 12", "1 x 8"])
  }

  @Test func `a chunk is done by the next attempt if its COMMIT never reached the server`()
    async throws
  {
    let trial = try await RunTrial(
      20,
      spansOf: 20,
      """
      CREATE TABLE once (a int); INSERT INTO once VALUES (1);
      CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM once) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER die AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION die()
      """
    )
    let a = try trial.host()
    let lease = try a.lease().lease
    let lost = #expect(throws: BatchError.self) { try a.commit(0..<8, under: lease) }
    #expect(lost?.postgres?.state == .transactionResolutionUnknown)
    #expect(try trial.counts() == ["0 x 20"])
    try trial.database.run("DELETE FROM once")
    let b = try RunTrialHost(trial, session: trial.database.session())
    #expect(try b.commit(0..<8, under: lease).succeeded == 8)
    #expect(try trial.counts() == ["0 x 12", "1 x 8"])
  }

  @Test func `a chunk that overlaps one in the ledger is refused`() async throws {
    let trial = try await RunTrial(20, spansOf: 20)
    let a = try trial.host()
    let lease = try a.lease().lease
    try a.commit(0..<8, under: lease)
    let error = #expect(throws: BatchError.self) { try a.commit(0..<10, under: lease) }
    #expect(error?.code == .leaseLost)
    #expect(try trial.counts() == ["0 x 12", "1 x 8"])
  }

  // MARK: Outcomes

  @Test func `the ledger records each identifier's outcome, and failures count across chunks`()
    async throws
  {
    let trial = try await RunTrial(40, spansOf: 20, "ALTER TABLE t ADD CHECK (n < 5)")
    try trial.database.run(
      "DELETE FROM t WHERE id IN (3, 4); UPDATE t SET n = 4 WHERE id IN (7, 30, 31)"
    )
    let a = try trial.host()
    let lease = try a.lease().lease
    let chunks = trial.transaction(try trial.change(), onFailure: .skip(upTo: 2))
    var method = WritingMethod.counting
    func run(_ positions: Range<Int>, _ lease: SpanLease) throws -> Outcomes {
      let keys = try trial.trial.keys(positions)
      return try chunks.run(keys, at: positions, under: lease, by: &method, in: a.session).outcomes
    }
    let first = try run(0..<10, lease)
    #expect(first.succeeded == 7)
    #expect(first.vanished == 2)
    #expect(first.failed == 1)
    #expect(method == .listing)
    #expect(try run(10..<20, lease).succeeded == 10)
    #expect(method == .counting)
    // The second time, the ledger answers.
    #expect(try run(0..<10, lease) == first)
    let second = try a.lease(knowing: [0]).lease
    let refused = #expect(throws: BatchError.self) { try run(20..<40, second) }
    #expect(refused?.message.contains("identifier 31:") == true)
    #expect(refused?.remedy?.contains("skip") == true)
    #expect(try run(20..<30, second).failed == 1)
    let outcomes = try trial.tables.rowOutcomes(ofRun: trial.run, in: a.session)
    #expect(outcomes.failed.map(\.position) == [6, 29])
    #expect(outcomes.failed[0].code == "constraint")
    #expect(outcomes.passedOver.vanished.count == 2)
    #expect(outcomes.done.count == 30)
    #expect(try outcomes.succeeded.count == 26)
    #expect(try trial.database.text("SELECT sum(n) FROM t WHERE id <= 30") == "34")
  }

  @Test func `a chunk that times out is done in halves, and so are the following ones`()
    async throws
  {
    let trial = try await RunTrial(32, spansOf: 32, ChangeTrial.slowTrigger)
    let a = try trial.host()
    let lease = try a.lease().lease
    let chunks = trial.transaction(try trial.change(), statement: .milliseconds(250))
    var method = WritingMethod.counting
    for positions in [0..<16, 16..<32] {
      let keys = try trial.trial.keys(positions)
      let outcomes = try chunks.run(keys, at: positions, under: lease, by: &method, in: a.session)
        .outcomes
      #expect(outcomes.succeeded == 16)
      #expect(method == .halving)
    }
    #expect(try trial.counts() == ["1 x 32"])
  }

  // MARK: Settings of the server

  @Test func `leases work where transactions are serializable by default`() async throws {
    let role = "serial_\(UInt32.random(in: 0 ... .max))"
    let trial = try await RunTrial(
      20,
      spansOf: 10,
      """
      CREATE ROLE \(role) LOGIN SUPERUSER;
      ALTER ROLE \(role) SET default_transaction_isolation = serializable
      """
    )
    defer { try? trial.database.run("DROP ROLE \(role)") }
    let (a, b) = (try trial.host(role: role), try trial.host(role: role))
    let lease = try a.lease().lease
    try a.commit(0..<5, under: lease)
    try a.fallSilent()
    let taken = try b.lease()
    #expect(taken.remaining == [5..<10])
    #expect(throws: BatchError.self) { try a.commit(5..<10, under: lease) }
    try b.commit(5..<10, under: taken.lease)
    try b.claims.close(taken.lease, in: b.session)
    #expect(try trial.counts() == ["0 x 10", "1 x 10"])
  }

  @Test func `leases work through PgBouncer in transaction mode`() async throws {
    let trial = try await RunTrial(40, spansOf: 20)
    let pooled = try PostgresSession(
      trial.database.pooledAddress,
      applicationName: "pooled",
      interrupter: PostgresInterrupter()
    )
    let a = try RunTrialHost(trial, session: pooled)
    var known: [Int] = []
    while case .granted(let lease, let remaining) = try a.claim(knowing: known) {
      known.append(lease.positions.lowerBound)
      for part in remaining {
        for first in stride(from: part.lowerBound, to: part.upperBound, by: 7) {
          try a.commit(first..<min(first + 7, part.upperBound), under: lease)
        }
      }
      _ = try a.heartbeat.beat(in: pooled)
      try a.claims.close(lease, in: pooled)
    }
    #expect(try a.claim() == .exhausted)
    #expect(try trial.counts() == ["1 x 40"])
  }
}
#endif
