import BatchTestSupport
import Foundation
import Testing

/// A service that works by objects, is killed at random moments, and is restarted by its
/// supervisor.
@Suite struct ContextKillTests {
  @Test func `a run by objects that is killed at random moments does each object once`() throws {
    let rows = KillLoop.rows(300_000)
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(rows, in: directory)
    let environment = ProcessInfo.processInfo.environment
    let seed =
      environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    var kills = 0
    var resumptions = 0
    var jobs = 0
    var seconds = 1.0
    while kills < KillLoop.kills {
      jobs += 1
      // The fetch no longer finds processed rows.
      let arguments = ["test.db", "numbers.batch", "n < \(jobs)"]
      for attempt in 1... {
        try #require(attempt < 1000, "it never ended, seed \(seed)")
        let start = ContinuousClock.now
        let program = try BatchProgram(arguments, of: "CrashingContexts", in: directory)
        let moment = Double.random(in: 0...1.1, using: &generator) * seconds
        let wasKilled = jobs > 1 && program.send(SIGKILL, afterSeconds: moment)
        let result = program.wait()
        if result.status == 0 {
          if jobs == 1 { seconds = start.duration(to: .now) / .seconds(1) }
          break
        }
        try #require(wasKilled && result.status == -SIGKILL, "\(result.errors), seed \(seed)")
        kills += 1
        let counts = try TestDatabase.texts(
          path,
          "SELECT count(*) FROM numbers WHERE n = \(jobs) UNION ALL SELECT max(n) FROM numbers"
        )
        #expect(counts[1] == "\(jobs)" || counts[0] == "0", "seed \(seed)")
        if counts[0] != "0", counts[0] != "\(rows)" { resumptions += 1 }
      }
      let wrong = try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n <> \(jobs)")
      #expect(wrong == ["0"], "job \(jobs), seed \(seed)")
    }
    #expect(resumptions > 0, "seed \(seed): no run was resumed with work done")
    print(
      "kill-loop contexts: \(kills) kills, \(jobs) jobs of \(rows) objects,"
        + " \(resumptions) resumed half-way, seed \(seed)"
    )
  }

  @Test func `a load of a sequence that is killed at random moments has each record once`() throws {
    let count = KillLoop.rows(60_000)
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE copies (id INTEGER PRIMARY KEY, number INTEGER, text TEXT)"
    )
    let seed =
      ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
      ?? .random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    var (kills, resumptions, seconds) = (0, 0, 1.0)
    for load in 1... {
      for attempt in 1... {
        try #require(attempt < 1000, "it never ended, seed \(seed)")
        let start = ContinuousClock.now
        let program = try BatchProgram(
          ["test.db", "copies.batch", "load", "\(count)", "load \(load)"],
          of: "CrashingContexts",
          in: directory
        )
        let moment = Double.random(in: 0...1.1, using: &generator) * seconds
        let wasKilled = load > 1 && program.send(SIGKILL, afterSeconds: moment)
        let result = program.wait()
        if result.status == 0 {
          if load == 1 { seconds = start.duration(to: .now) / .seconds(1) }
          break
        }
        try #require(wasKilled && result.status == -SIGKILL, "\(result.errors), seed \(seed)")
        kills += 1
        let rows = try TestDatabase.texts(path, "SELECT count(*) FROM copies")
        if rows != ["0"], rows != ["\(count - count / 1000)"] { resumptions += 1 }
      }
      let wrong = try TestDatabase.texts(
        path,
        """
        SELECT count(*) FROM (SELECT *, row_number() OVER (ORDER BY id) - 1 AS place FROM copies)
        WHERE number <> place + place / 999 OR text <> 'number ' || number
        UNION ALL SELECT count(*) FROM copies
        """
      )
      #expect(wrong == ["0", "\(count - count / 1000)"], "load \(load), seed \(seed)")
      let failed = try BatchProgram.run("ids", "copies.batch", "--outcome", "failed", in: directory)
      #expect(failed.output.split(separator: "\n").count == count / 1000, "\(failed.errors)")
      if kills >= KillLoop.kills { break }
      try TestDatabase.make(in: directory, "DELETE FROM copies")
    }
    #expect(resumptions > 0, "seed \(seed): no run was resumed with work done")
    print("kill-loop records: \(kills) kills, \(resumptions) resumed half-way, seed \(seed)")
  }
}
