#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

/// Several processes working on one run while their connections are ended and their spans taken over at any moment.
@Suite struct SharedRunModelTests {
  @Test(arguments: [1, 2, 3])
  func `each row is changed once despite broken connections and lost leases`(
    seed: UInt64
  ) async throws {
    let trial = try await RunTrial(500, spansOf: 40)
    let count = 4
    let end = Lock(false)
    let address = try trial.database.address
    let killer = Task { try await Self.endConnections(at: address, until: end) }
    let hosts = try (0..<count).map {
      try TestHost(trial, name: "batch.host.\($0)", seed: seed * 100 + UInt64($0))
    }
    await withTaskGroup(of: Void.self) { group in
      for host in hosts {
        group.addTask {
          do {
            try await host.work()
          } catch {
            Issue.record("seed \(seed): \(error)")
          }
        }
      }
    }
    end.withLock { $0 = true }
    let ended = try await killer.value
    #expect(try trial.counts() == ["1 x 500"], "seed \(seed), \(ended) connections were ended")
    #expect(try trial.tables.done(ofRun: trial.run, in: trial.trial.session).count == 500)
    #expect(ended > 0)
  }

  /// Ends connections of the hosts repeatedly.
  private static func endConnections(
    at address: ServerAddress,
    until end: Lock<Bool>
  ) async throws -> Int {
    let connection = PostgresConnection(label: "batch.killer", address: address)
    var count = 0
    while !end.withLock({ $0 }) {
      count += try await connection.perform { session throws(BatchError) in
        let ended = try session.text(
          """
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name LIKE 'batch.host.%' AND datname = current_database() AND random() < 0.1
            AND state <> 'idle' LIMIT 1
          """
        )
        // Tests of other databases must make progress too.
        try session.execute("SELECT pg_sleep(0.01)")
        return ended == "t" ? 1 : 0
      }
    }
    await connection.close()
    return count
  }
}

/// A process that takes part until everything is done.
private struct TestHost: Sendable {
  let list: IdentifierList
  let key: PostgresKey
  let chunks: ChunkTransaction<PostgresChange>
  let connection: PostgresConnection
  let claims: SpanClaims
  let heartbeat: HostHeartbeat
  let seed: UInt64

  init(_ trial: RunTrial, name: String, seed: UInt64) throws {
    self.seed = seed
    list = trial.trial.list
    key = trial.trial.key
    chunks = trial.transaction(try trial.change())
    connection = PostgresConnection(label: name, address: try trial.database.address)
    heartbeat = HostHeartbeat(
      trial.tables,
      run: trial.run,
      host: UUID().uuidString.lowercased()
    )
    // A lease of zero: a process that finds no free span takes over another's.
    claims = SpanClaims(heartbeat, lease: .zero)
  }

  /// Retries until the connection holds.
  private func insisting<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    while true {
      do {
        return try await connection.perform(body)
      } catch {
        guard error.isTransient else { throw error }
      }
    }
  }

  func work() async throws {
    var generator = SeededGenerator(seed: seed)
    let (heartbeat, claims) = (heartbeat, claims)
    try await insisting { session throws(BatchError) in
      try heartbeat.join(name: "h", process: 1, in: session)
    }
    while true {
      let answer = try await insisting { session throws(BatchError) in
        try claims.claim(knowing: [], in: session)
      }
      switch answer {
      case .exhausted: return await connection.close()
      case .noneFree: continue
      case .granted(let lease, let remaining):
        do throws(BatchError) {
          for part in remaining {
            var first = part.lowerBound
            while first < part.upperBound {
              let next = min(part.upperBound, first + Int.random(in: 1...12, using: &generator))
              try await commit(first..<next, under: lease)
              first = next
            }
          }
          try await insisting { session throws(BatchError) in
            try claims.close(lease, in: session)
          }
        } catch {
          guard error.code == .leaseLost else { throw error }
        }
      }
    }
  }

  private func commit(
    _ positions: Range<Int>,
    under lease: SpanLease
  ) async throws(BatchError) {
    let keys = try RowKeys(list.packed, positions, key: key)
    let chunks = chunks
    try await insisting { session throws(BatchError) in
      var method = WritingMethod.counting
      _ = try chunks.run(keys, at: positions, under: lease, by: &method, in: session)
    }
  }
}
#endif
