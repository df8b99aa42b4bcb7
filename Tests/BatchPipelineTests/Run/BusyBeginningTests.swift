import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Dispatch
import Testing

/// Runs that begin beside a writer whose locks come and go between any two of their statements.
@Suite struct BusyBeginningTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  /// Locks the database for reading and writing for milliseconds, again and again until `isOver`; signals
  /// `isIdle` at its end.
  private func lockAgain(until isOver: Lock<Bool>, _ isIdle: DispatchSemaphore) {
    let takesTime = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT max(i) FROM n
      """
    DispatchQueue.global().async { [path] in
      guard let connection = try? Connection(path: path) else { return }
      while !isOver.withLock({ $0 }) {
        // A run leaves the mode in which readers are never locked out.
        try? connection.execute("PRAGMA journal_mode = DELETE")
        try? connection.execute("BEGIN EXCLUSIVE")
        try? connection.execute(takesTime)
        try? connection.execute("COMMIT")
        // Long enough without a lock that a run can begin.
        for _ in 1...3 { try? connection.execute(takesTime) }
      }
      isIdle.signal()
    }
  }

  @Test(.timeLimit(.minutes(2)))
  func `a run begins beside a writer that locks the database repeatedly`() async throws {
    var job = Job.test(in: directory, workers: 1)
    job.database.busyTimeout = .zero
    job.retry = .init(limit: 1000, backoff: .milliseconds(1), maximumBackoff: .milliseconds(2))
    let isOver = Lock(false)
    let isIdle = DispatchSemaphore(value: 0)
    lockAgain(until: isOver, isIdle)
    var runs = 0
    for _ in 1...20 {
      let summary = try await BatchRun(job).run()
      if summary.state == .completed { runs += 1 }
    }
    isOver.withLock { $0 = true }
    isIdle.wait()
    #expect(runs == 20)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["20"])
  }
}
