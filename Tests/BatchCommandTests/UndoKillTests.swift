import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Synchronization
import Testing

/// A run and its undo, killed at random moments, while another connection writes to the same rows.
///
/// Only the rows count. Each records how often the other connection has written to it, and whether
/// that was between the run and the undo: such a row, and no other, stays unchanged.
@Suite struct UndoKillTests {
  private static let added = 1_000_000
  private let directory: TemporaryDirectory
  private let path: String
  private let seed: UInt64

  init() throws {
    directory = try TemporaryDirectory()
    let rows = KillLoop.rows(300_000)
    path = try TestDatabase.make(
      in: directory,
      "PRAGMA journal_mode = WAL",
      """
      CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER NOT NULL,
        written INTEGER NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0)
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows))
      INSERT INTO numbers (id, n) SELECT i, i FROM c
      """
    )
    let environment = ProcessInfo.processInfo.environment
    seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
  }

  @Test func `killed runs and undos leave each row restored or as another connection wrote it`()
    throws
  {
    let job = try JobText.update(
      ["n": "n + \(Self.added)"],
      where: "n < \(Self.added)",
      adding: [
        "undo": true, "checkpoint": ["interval": "1ms"],
        "chunk": ["size": KillLoop.kills >= 100 ? 500 : 50],
      ]
    )
    try directory.write(job, to: "job.json")
    var generator = SeededGenerator(seed: seed)
    let writer = Writer(path, seed: generator.next())
    defer { writer.end() }
    var kills = 0
    var jobs = 0
    var left = 0
    while kills < KillLoop.kills {
      let run = try complete(["run", "job.json"], &kills, &generator)
      try #require(run.status == 0, "seed \(seed): \(run.errors)")
      // A run that was killed in its last moment may be over, and the next one finds nothing to do.
      let name = try #require(run.runs.first)
      let undo = try complete(["undo", "job.json", "--run", name], &kills, &generator)
      try #require([0, 4].contains(undo.status), "seed \(seed): \(undo.errors)")
      jobs += 1

      try writer.whilePaused {
        let wrong = try TestDatabase.texts(
          path,
          "SELECT id FROM numbers WHERE n <> id + written + iif(late > 0, \(Self.added), 0)"
        )
        #expect(wrong == [], "seed \(seed), job \(jobs)")
        let late = try TestDatabase.texts(path, "SELECT id FROM numbers WHERE late ORDER BY id")
        left += late.count
        // A new undo finds that rows that it has undone were written to.
        if undo.runs.count == 1 {
          let failed = try BatchProgram.run(
            "ids",
            "job.undo",
            "--outcome",
            "failed",
            in: directory
          )
          let listed = failed.output.split(separator: "\n").map(String.init)
          #expect(
            listed.count == late.count && Set(listed) == Set(late),
            "seed \(seed), job \(jobs)"
          )
        }
        try TestDatabase.make(
          in: directory,
          "UPDATE numbers SET n = id, written = 0, late = 0 WHERE n <> id"
        )
      }
    }
    #expect(try TestDatabase.integrity(path) == ["ok"])
    #expect(left > 0, "seed \(seed): the writer never came between a run and its undo")
    print(
      "kill-loop run and undo: \(kills) kills, \(jobs) jobs, \(left) rows left to the writer,"
        + " \(writer.count) written, seed \(seed): every row as it was or as the writer made it"
    )
  }

  /// Runs a command, and kills it at random moments, until it ends by itself.
  private func complete(
    _ arguments: [String],
    _ kills: inout Int,
    _ generator: inout SeededGenerator
  ) throws -> (status: Int32, errors: String, runs: [String]) {
    var runs: [String] = []
    var longest = 0.4
    for attempt in 0... {
      let program = try BatchProgram(arguments + ["--json"], in: directory)
      let start = ContinuousClock.now
      // The last attempts are not killed, or a slow machine would never finish.
      let moment = attempt < 12 ? Double.random(in: 0...longest, using: &generator) : 300
      let wasKilled = program.send(SIGKILL, afterSeconds: moment)
      let result = program.wait()
      for run in result.output.matches(of: /"run":"([^"]+)"/).map({ String($0.1) })
      where !runs.contains(run) { runs.append(run) }
      if wasKilled, result.status == -SIGKILL {
        kills += 1
      } else {
        return (result.status, result.errors, runs)
      }
      longest = max(longest, start.duration(to: .now) / .seconds(1))
    }
    fatalError("the loop has no end")
  }
}

/// Another connection, which writes to every tenth row, one at a time, at random.
private final class Writer: Sendable {
  /// How many rows it has written; held while it writes.
  private let written = Mutex(0)
  private let stop = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  init(_ path: String, seed: UInt64) {
    let thread = Thread { [self] in
      do {
        try write(to: path, seed)
      } catch {
        Issue.record("the writer cannot write: \(error)")
      }
      ended.signal()
    }
    thread.start()
  }

  private func write(to path: String, _ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let connection = try Connection(path: path)
    let last = try connection.value("SELECT max(id) FROM numbers")
    guard case .integer(let last) = last else { return }
    // A writer that never releases the lock would block the other.
    while stop.wait(timeout: .now() + .milliseconds(2)) == .timedOut {
      try written.withLock { written in
        // Each commits separately, and waits for the disk.
        try connection.execute(
          """
          UPDATE numbers SET n = n + 1, written = written + 1, late = late + (n >= 1000000)
          WHERE id = ?
          """,
          .integer(10 * Int64.random(in: 1...last / 10, using: &generator))
        )
        written += 1
      }
    }
  }

  var count: Int { written.withLock(\.self) }

  /// Runs `body` while nothing is written.
  func whilePaused(_ body: () throws -> Void) rethrows {
    try written.withLock { _ in try body() }
  }

  func end() {
    stop.signal()
    ended.wait()
  }
}
