#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation

@testable import BatchPostgres

/// A run over the rows of a test's own table, and the processes that take part in it.
struct RunTrial {
  let trial: ChangeTrial
  let tables: RunTables
  let run = UUID().uuidString.lowercased()

  var database: TestPostgres { trial.database }

  /// Begins a run that adds one to `n` in `count` rows, in spans of a given length.
  init(_ count: Int, spansOf length: Int, _ script: String = "") async throws {
    trial = try await ChangeTrial(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0);
      INSERT INTO t SELECT generate_series(1, \(count));
      \(script)
      """
    )
    let session = trial.session
    let tables = try RunTables(of: session)
    self.tables = tables
    let (run, list) = (run, trial.list)
    try session.transaction { () throws(BatchError) in
      try tables.lock(job: "job", in: session)
      try tables.create(in: session)
      try tables.begin(
        run,
        .init(job: "job", fingerprint: "f", metadata: [0, 255]),
        over: list.packed,
        spansOf: length,
        in: session
      )
    }
  }

  /// What the run does to rows.
  func change() throws -> PostgresChange { try trial.expecting(trial.update(["n": "n + 1"])) }

  /// The transactions of chunks.
  func transaction(
    _ change: PostgresChange,
    statement: Duration = .seconds(120),
    onFailure policy: FailurePolicy = .failChunk
  ) -> ChunkTransaction<PostgresChange> {
    ChunkTransaction(
      change,
      .entered(SpanFence(tables, run: run)),
      limits: .init(lock: .seconds(120), statement: statement, silence: .seconds(120)),
      onFailure: policy
    )
  }

  /// A process that has joined the run.
  func host(role: String = "postgres") throws -> RunTrialHost {
    try RunTrialHost(self, session: database.session(role: role))
  }

  /// The value of n in all rows, and the number of rows.
  func counts() throws -> [String] {
    let rows = try database.session().execute(
      "SELECT n || ' x ' || count(*) FROM t GROUP BY n ORDER BY n"
    )
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}

/// A process on its own host, as far as the server can tell.
final class RunTrialHost {
  let trial: RunTrial
  let session: PostgresSession
  let heartbeat: HostHeartbeat
  let claims: SpanClaims
  let chunks: ChunkTransaction<PostgresChange>
  var method = WritingMethod.counting

  init(_ trial: RunTrial, session: PostgresSession) throws {
    self.trial = trial
    self.session = session
    heartbeat = HostHeartbeat(trial.tables, run: trial.run, host: UUID().uuidString.lowercased())
    claims = SpanClaims(heartbeat, lease: .seconds(60))
    chunks = trial.transaction(try trial.change())
    try heartbeat.join(name: "host", process: 1, in: session)
  }

  func claim(knowing known: [Int] = []) throws -> SpanClaims.Answer {
    try claims.claim(knowing: known, in: session)
  }

  /// Claims a span, which must exist.
  func lease(knowing known: [Int] = []) throws -> (lease: SpanLease, remaining: [Range<Int>]) {
    guard case .granted(let lease, let remaining) = try claim(knowing: known) else {
      throw TestCluster.Failure(description: "there is no free span")
    }
    return (lease, remaining)
  }

  /// Does a chunk.
  @discardableResult
  func commit(_ positions: Range<Int>, under lease: SpanLease) throws -> Outcomes {
    let keys = try trial.trial.keys(positions)
    return try chunks.run(keys, at: positions, under: lease, by: &method, in: session).outcomes
  }

  /// Makes the server believe that the process has been silent for some time.
  func fallSilent(for time: String = "61 seconds") throws {
    try trial.database.run(
      "UPDATE _batch_host SET seen_at = seen_at - interval '\(time)' WHERE host = '\(heartbeat.host)'"
    )
  }
}
#endif
