#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// How long a run takes to stop while the server does not let it go on.
@Suite(.serialized, .timeLimit(.minutes(60))) struct SharedStopTests {
  private static let cluster = Result {
    try TestCluster(configuration: "max_prepared_transactions = 10")
  }
  /// How many stops are tried at random moments.
  private static var count: UInt64 {
    UInt64(ProcessInfo.processInfo.environment["BATCH_STOPS"] ?? "") ?? 6
  }

  @Test(arguments: Obstacle.all)
  func `a run that is blocked stops within five seconds`(_ obstacle: Obstacle) throws {
    let trial = try StopTrial(in: Self.cluster.get())
    try trial.put(obstacle)
    let program = try trial.job.start()
    #expect(!program.ends(withinSeconds: 2), "\(obstacle)")
    try trial.stop(program, "\(obstacle)")
    try trial.finish(after: "\(obstacle)")
  }

  @Test func `a run stops within five seconds at any moment, and the next run is exact`() throws {
    for seed in 1...Self.count {
      var generator = SeededGenerator(seed: seed)
      let obstacle = Obstacle.all[Int(seed) % Obstacle.all.count]
      let before = Double.random(in: 0...1.2, using: &generator)
      let after = Double.random(in: 0...1, using: &generator)
      let words = "seed \(seed), \(obstacle) after \(before) s, stop \(after) s later"
      let trial = try StopTrial(in: Self.cluster.get())
      let program = try trial.job.start()
      if program.ends(withinSeconds: before) {
        #expect(program.wait().status == 0, "\(words)")
      } else {
        try trial.put(obstacle)
        if program.ends(withinSeconds: after) {
          #expect(program.wait().status == 0, "\(words)")
        } else {
          try trial.stop(program, words)
        }
      }
      try trial.finish(after: words)
    }
  }
}

/// What keeps a run from going on.
enum Obstacle: CustomTestStringConvertible {
  /// A lock of a table that somebody has.
  case lock(String, mode: String)
  /// A lock of a prepared transaction.
  case preparedTransaction
  /// No standby that a commit waits for.
  case missingStandby
  /// The processes of the server stand still.
  case silentServer

  static let all: [Obstacle] = [
    .lock("t", mode: "SHARE"), .missingStandby, .silentServer,
    .lock("_batch_run", mode: "ACCESS EXCLUSIVE"), .preparedTransaction,
    .lock("_batch_host", mode: "ACCESS EXCLUSIVE"),
    .lock("_batch_ledger", mode: "ACCESS EXCLUSIVE"), .lock("t", mode: "ACCESS EXCLUSIVE"),
    .lock("_batch_span", mode: "EXCLUSIVE"),
  ]

  var testDescription: String { "\(self)" }
}

/// A job, somebody who gets in its way, and the next run.
private final class StopTrial {
  let job: SharedJob
  private let other: PostgresSession
  private var obstacle: Obstacle?
  private let server: Int32

  init(in cluster: TestCluster) throws {
    let job = try SharedJob(
      rows: 2_000,
      "CREATE TABLE u (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0)",
      in: cluster
    )
    // Another job makes the tables of runs.
    try job.writeJob(["name": "first"])
    try job.database.run("ALTER TABLE t RENAME TO v; ALTER TABLE u RENAME TO t")
    let first = try job.start().wait()
    #expect(first.status == 0, "\(first.errors)")
    try job.database.run("ALTER TABLE t RENAME TO u; ALTER TABLE v RENAME TO t")
    let database = ["url": job.url(), "lease": SharedJob.lease, "busyTimeout": "60s"]
    try job.writeJob(SharedJob.slowly.merging(["database": database]) { $1 })
    let other = try job.database.session()
    try other.run("SET synchronous_commit = off")
    try other.run("ALTER DATABASE \(job.database.name) SET synchronous_commit = on")
    let file = try String(contentsOfFile: "\(cluster.folder)/data/postmaster.pid", encoding: .utf8)
    let number = file.split(separator: "\n").first.flatMap { Int32($0) }
    server = try #require(number)
    self.job = job
    self.other = other
  }

  deinit { try? remove() }

  /// Puts something in the way of the run.
  func put(_ obstacle: Obstacle) throws {
    self.obstacle = obstacle
    switch obstacle {
    case .lock(let table, let mode): try other.run("BEGIN; LOCK TABLE \(table) IN \(mode) MODE")
    case .preparedTransaction:
      try other.run("BEGIN; LOCK TABLE t IN SHARE MODE; PREPARE TRANSACTION 'of somebody'")
    case .missingStandby: try setStandby("'nobody'")
    case .silentServer: try signal(SIGSTOP)
    }
  }

  /// Removes it.
  private func remove() throws {
    switch obstacle {
    case .lock: try other.run("ROLLBACK")
    case .preparedTransaction: try other.run("ROLLBACK PREPARED 'of somebody'")
    case .missingStandby: try setStandby("''")
    case .silentServer: try signal(SIGCONT)
    case nil: break
    }
    obstacle = nil
  }

  private func setStandby(_ names: String) throws {
    try other.run("ALTER SYSTEM SET synchronous_standby_names = \(names)")
    try other.run("SELECT pg_reload_conf()")
  }

  /// Sends a signal to all processes of the server.
  private func signal(_ signal: Int32) throws {
    kill(server, signal)
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
      guard let process = Int32(name),
        let text = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
        // After the name in parentheses come the state and the parent.
        let parent = text.split(separator: ")").last?.split(separator: " ").dropFirst().first,
        Int32(parent) == server
      else { continue }
      kill(process, signal)
    }
  }

  /// Tells the program to stop, and measures how long it takes.
  func stop(_ program: BatchProgram, _ words: String) throws {
    let clock = ContinuousClock()
    let start = clock.now
    program.send(SIGTERM)
    let hasEnded = program.ends(withinSeconds: 20)
    let time = start.duration(to: clock.now)
    if !hasEnded { program.send(SIGKILL) }
    let result = program.wait()
    #expect(hasEnded && time <= .seconds(5), "\(words): \(time)")
    // A process that had not begun to listen is ended by the signal itself.
    // One that has told its end only has to acknowledge it.
    let isOver = result.status == 0 && result.output.contains(#""event":"finished""#)
    let isStopped =
      result.status == 3 || result.status == -SIGTERM && result.output.isEmpty || isOver
    #expect(isStopped, "\(words): status \(result.status) \(result.output)\(result.errors)")
  }

  /// Makes way, and has another run do what is left.
  func finish(after words: String) throws {
    try remove()
    if try job.database.text("SELECT count(*) FROM t WHERE n = 0") != "0" {
      let result = try job.start().wait()
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
    #expect(try job.counts() == ["1 x 2000"], "\(words)")
  }
}
#endif
