#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Transforms in the transactions of a run's chunks.
@Suite struct TransformRunTests {
  /// Adds one to `n`, after calling `before`.
  private static func addOne(
    _ before: @escaping @Sendable (ReadRows<RowKeys>) -> Void = { _ in }
  ) -> RowComputation {
    { rows throws(BatchError) in
      before(rows)
      var changes = RowChanges(ofRows: rows.count, columns: 1)
      for row in 0..<rows.count {
        changes.values.set(row, 0, integer: rows.values.word(row, 0) + 1)
      }
      return changes
    }
  }

  private static func transaction(
    _ trial: RunTrial,
    _ transform: PostgresTransform,
    onFailure policy: FailurePolicy = .failChunk
  ) -> ChunkTransaction<PostgresTransform> {
    ChunkTransaction(
      transform,
      .entered(SpanFence(trial.tables, run: trial.run)),
      limits: .init(lock: .seconds(120), statement: .seconds(120), silence: .seconds(120)),
      onFailure: policy
    )
  }

  @Test func `rows that other sessions change meanwhile are computed again, and no change is lost`()
    async throws
  {
    let trial = try await RunTrial(40, spansOf: 40)
    let host = try trial.host()
    let lease = try host.lease().lease
    let transform = try trial.trial.transform(["n"], ["n"])
    let database = trial.database
    let calls = Lock<[Int]>([])
    let compute = Self.addOne { rows in
      let call = calls.withLock { calls in
        calls.append(rows.count)
        return calls.count
      }
      // After the rows were read, twice.
      if call < 3 { try? database.run("UPDATE t SET n = n + 10 WHERE id IN (5, 6, \(30 + call))") }
    }
    let keys = try trial.trial.keys()
    let chunk = try transform.prepare(keys, in: host.session, compute)
    let outcomes = try Self.transaction(trial, transform).run(
      chunk,
      at: 0..<40,
      under: lease,
      by: &host.method,
      in: host.session,
      computing: compute
    ).outcomes
    #expect(outcomes.succeeded == 40)
    #expect(calls.withLock { $0 } == [40, 3, 3])
    #expect(try trial.counts() == ["1 x 36", "11 x 2", "21 x 2"])
    #expect(try database.text("SELECT succeeded FROM _batch_ledger") == "40")
    // The second time, the ledger answers.
    let again = try Self.transaction(trial, transform).run(
      chunk,
      at: 0..<40,
      under: lease,
      by: &host.method,
      in: host.session,
      computing: compute
    ).outcomes
    #expect(again == outcomes)
    #expect(try trial.counts() == ["1 x 36", "11 x 2", "21 x 2"])
  }

  @Test func `rows that change faster than the transform computes are locked in the end`()
    async throws
  {
    let trial = try await RunTrial(10, spansOf: 10)
    let host = try trial.host()
    let lease = try host.lease().lease
    let transform = try trial.trial.transform(["n"], ["n"])
    let database = trial.database
    let changes = Lock(0)
    let compute = Self.addOne { rows in
      // Not under the lock, for which it does not wait.
      guard (try? database.run("SET lock_timeout = 1; UPDATE t SET n = n + 10 WHERE id = 4")) != nil
      else { return }
      changes.withLock { $0 += 1 }
    }
    let chunk = try transform.prepare(trial.trial.keys(), in: host.session, compute)
    let outcomes = try Self.transaction(trial, transform).run(
      chunk,
      at: 0..<10,
      under: lease,
      by: &host.method,
      in: host.session,
      computing: compute
    ).outcomes
    #expect(outcomes.succeeded == 10)
    #expect(changes.withLock { $0 } == 6)
    #expect(try trial.counts() == ["1 x 9", "61 x 1"])
  }

  @Test
  func `a transformed row that a trigger leaves unchanged fails, and the error names the trigger`()
    async throws
  {
    let trial = try await RunTrial(
      10,
      spansOf: 10,
      """
      CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.id = 4 THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER keep BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION keep()
      """
    )
    let host = try trial.host()
    let lease = try host.lease().lease
    let transform = try trial.trial.transform(["n"], ["n"])
    let chunk = try transform.prepare(trial.trial.keys(), in: host.session, Self.addOne())
    let outcomes = try Self.transaction(trial, transform, onFailure: .skip(upTo: 1)).run(
      chunk,
      at: 0..<10,
      under: lease,
      by: &host.method,
      in: host.session,
      computing: Self.addOne()
    ).outcomes
    #expect(outcomes.succeeded == 9)
    #expect(outcomes.failed == 1)
    let reason = try trial.database.text("SELECT message FROM _batch_failure")
    #expect(reason?.contains("the trigger \"keep\" keeps the row") == true)
    #expect(try trial.counts() == ["0 x 1", "1 x 9"])
  }

  @Test func `the ledger records each transformed row's outcome, and failures count across chunks`()
    async throws
  {
    let trial = try await RunTrial(40, spansOf: 20, "ALTER TABLE t ADD CHECK (n <> 8)")
    let host = try trial.host()
    let lease = try host.lease().lease
    let transform = try trial.trial.transform(["n"], ["n"], if: "n < 10")
    try trial.database.run(
      """
      DELETE FROM t WHERE id IN (2, 3); UPDATE t SET n = 10 WHERE id = 5; UPDATE t SET n = 7 WHERE id IN (9, 30);
      UPDATE t SET n = 5 WHERE id = 11
      """
    )
    let compute: RowComputation = { rows throws(BatchError) in
      var computed = RowChanges(ofRows: rows.count, columns: 1)
      for row in 0..<rows.count {
        switch rows.key(of: row) {
        case .integer(7), .integer(31):
          computed.failures.append((row, BatchError(.handlerFailed, "no \(row)")))
        // It finds nothing to do.
        case .integer(11): break
        default: computed.values.set(row, 0, integer: rows.values.word(row, 0) + 1)
        }
      }
      return computed
    }
    func run(_ positions: Range<Int>, _ lease: SpanLease) throws -> Outcomes {
      let chunk = try transform.prepare(trial.trial.keys(positions), in: host.session, compute)
      return try Self.transaction(trial, transform, onFailure: .skip(upTo: 3)).run(
        chunk,
        at: positions,
        under: lease,
        by: &host.method,
        in: host.session,
        computing: compute
      ).outcomes
    }
    let first = try run(0..<20, lease)
    #expect(first.succeeded == 14)
    #expect(first.vanished == 2)
    #expect(first.noLongerMatching == 1)
    #expect(first.unchanged == 1)
    #expect(first.failed == 2)
    let second = try host.lease(knowing: [0]).lease
    let refused = #expect(throws: BatchError.self) { try run(20..<40, second) }
    #expect(refused?.remedy?.contains("skip") == true)
    #expect(try run(20..<30, second).failed == 1)
    let outcomes = try trial.tables.rowOutcomes(ofRun: trial.run, in: host.session)
    #expect(outcomes.failed.map(\.position) == [6, 8, 29])
    #expect(outcomes.failed.map(\.code) == ["handlerFailed", "constraint", "constraint"])
    #expect(outcomes.passedOver.vanished.count == 2)
    #expect(try trial.database.text("SELECT sum(n) FROM t WHERE id <= 30") == "52")
  }

  @Test func `a transformed chunk takes one round trip to read and two to write`() async throws {
    let trial = try await RunTrial(40, spansOf: 40)
    let proxy = try CountingProxy(
      to: "\(trial.database.cluster.folder)/.s.PGSQL.\(trial.database.cluster.port)"
    )
    let session = try PostgresSession(
      ServerAddress(
        url: "postgres://postgres@/\(trial.database.name)?host=\(proxy.folder)&port=5432"
      ),
      applicationName: "counted",
      interrupter: PostgresInterrupter()
    )
    let host = try RunTrialHost(trial, session: session)
    let lease = try host.lease().lease
    func journeys(_ body: () throws -> Void) rethrows -> Int {
      let before = proxy.journeys
      try body()
      return proxy.journeys - before
    }
    // The first chunk of a session also reads the columns of the table.
    #expect(try journeys { try host.commit(0..<5, under: lease) } == 3)
    #expect(try journeys { try host.commit(5..<10, under: lease) } == 2)
    let transform = try trial.trial.transform(["n"], ["n"])
    let transaction = Self.transaction(trial, transform)
    var chunk: TransformedRows<RowKeys>?
    #expect(
      try journeys {
        chunk = try transform.prepare(trial.trial.keys(10..<20), in: session, Self.addOne())
      } == 1
    )
    let computed = try #require(chunk)
    #expect(
      try journeys {
        _ = try transaction.run(computed, at: 10..<20, under: lease, by: &host.method, in: session)
      } == 2
    )
    #expect(try trial.counts() == ["0 x 20", "1 x 20"])
    // Two more round trips, one of which reports what was passed over.
    try trial.database.run("DELETE FROM t WHERE id = 25")
    let gone = try transform.prepare(trial.trial.keys(20..<30), in: session, Self.addOne())
    #expect(
      try journeys {
        _ = try transaction.run(gone, at: 20..<30, under: lease, by: &host.method, in: session)
      } == 3
    )
  }

  @Test func `a transform run works through PgBouncer`() async throws {
    let trial = try await RunTrial(40, spansOf: 20)
    let pooled = try PostgresSession(
      trial.database.pooledAddress,
      applicationName: "pooled",
      interrupter: PostgresInterrupter()
    )
    let host = try RunTrialHost(trial, session: pooled)
    let transform = try trial.trial.transform(["n"], ["n"])
    var known: [Int] = []
    while case .granted(let lease, _) = try host.claim(knowing: known) {
      known.append(lease.positions.lowerBound)
      for first in stride(from: lease.positions.lowerBound, to: lease.positions.upperBound, by: 5) {
        let keys = try trial.trial.keys(first..<first + 5)
        let chunk = try transform.prepare(keys, in: pooled, Self.addOne())
        _ = try Self.transaction(trial, transform).run(
          chunk,
          at: first..<first + 5,
          under: lease,
          by: &host.method,
          in: pooled
        )
      }
      try host.claims.close(lease, in: pooled)
    }
    #expect(try trial.counts() == ["1 x 40"])
  }
}
#endif
