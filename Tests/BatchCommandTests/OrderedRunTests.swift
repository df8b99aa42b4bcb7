import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random jobs in which the order of the rows decides, in small chunks by several workers, a third of them killed: the
/// rows end as if each had been changed by a statement of its own, in the order of the list.
@Suite(.timeLimit(.minutes(30))) struct OrderedRunTests {
  /// The number of jobs of each kind; `BATCH_ORDERED` increases it.
  private static let count = Int(ProcessInfo.processInfo.environment["BATCH_ORDERED"] ?? "") ?? 4

  private static var seeds: [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["BATCH_SEED"].flatMap(UInt64.init) { return [seed] }
    return (0..<count).map { _ in .random(in: 0...UInt64(UInt32.max)) }
  }

  /// A job and its rows, before and in the order of the list.
  private struct Trial {
    let directory: TemporaryDirectory
    var random: SeededGenerator
    let seed: UInt64
    let rows: Int

    init(_ seed: UInt64) throws {
      directory = try TemporaryDirectory()
      random = SeededGenerator(seed: seed)
      self.seed = seed
      rows = .random(in: 2...400, using: &random)
    }

    /// Random numbers from 1 to the number of rows, each once.
    mutating func permutation() -> [Int] { Array(1...rows).shuffled(using: &random) }

    mutating func isTrue(_ times: Int = 1, of all: Int) -> Bool {
      Int.random(in: 0..<all, using: &random) < times
    }

    mutating func make(_ schema: String, _ values: [String]) throws {
      try TestDatabase.make(in: directory, schema)
      let connection = try Connection(path: directory.file("test.db"))
      try connection.transaction(.immediate) { () throws(BatchError) in
        for value in values { try connection.execute("INSERT INTO t VALUES (\(value))") }
      }
    }

    /// Runs the job, and compares the rows with those that a statement for each leaves, in the order that the job asks
    /// for, or has without terms.
    mutating func check(
      _ action: [String: Any],
      as statement: String,
      where condition: String,
      orderBy order: [String],
      _ sql: String,
      skip: Bool
    ) throws {
      let path = directory.file("test.db")
      let original = try content(of: path)
      try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("plain.db"))'")
      let plain = try Connection(path: directory.file("plain.db"))
      try plain.execute("PRAGMA foreign_keys = ON")
      let keys = try plain.texts("SELECT id FROM t WHERE \(condition) ORDER BY \(sql)")
      var failed = 0
      try plain.transaction(.immediate) { () throws(BatchError) in
        for key in keys {
          do throws(BatchError) {
            try plain.execute("\(statement) WHERE id = \(key) AND (\(condition))")
          } catch {
            guard error.code == .constraint else { throw error }
            failed += 1
          }
        }
      }
      try #require(skip || failed == 0, "seed \(seed)")
      let undoes = isTrue(of: 3)
      var source: [String: Any] = ["entity": "t", "where": condition]
      if !order.isEmpty { source["orderBy"] = order }
      var job: [String: Any] = [
        "version": 1, "name": "job", "database": ["path": "test.db", "foreignKeys": true],
        "source": source, "action": action, "workers": Int.random(in: 2...4, using: &random),
        "chunk": ["size": Int.random(in: 1...20, using: &random)],
        "checkpoint": ["interval": "1ms"],
      ]
      if skip { job["skip"] = ["limit": 100_000] }
      if undoes { job["undo"] = true }
      let text = try JSONSerialization.data(withJSONObject: job)
      try directory.write(String(decoding: text, as: UTF8.self), to: "job.json")
      let status = try complete("run", kills: isTrue(of: 3) ? 3 : 0)
      #expect(status == (failed > 0 ? 4 : 0), "seed \(seed)")
      #expect(try content(of: path) == content(of: directory.file("plain.db")), "seed \(seed)")
      // A run that has changed nothing has nothing to undo, which an undo says with status 2.
      guard undoes, keys.count > failed else { return }
      _ = try complete("undo", kills: isTrue(of: 3) ? 3 : 0)
      let undone = try content(of: path)
      let difference = Set(undone).symmetricDifference(original).sorted()
      let reasons = try BatchProgram(["ids", "job.undo", "--reasons"], in: directory).wait().output
      #expect(undone == original, "seed \(seed), undone: \(difference); failed: \(reasons)")
    }

    /// Runs a command until it ends by itself.
    private mutating func complete(_ command: String, kills: Int) throws -> Int32 {
      for _ in 0..<kills {
        let program = try BatchProgram([command, "job.json", "--json"], in: directory)
        let events = Int.random(in: 0...20, using: &random)
        for _ in 0..<events where program.nextLine() == nil { break }
        program.send(SIGKILL)
        let status = program.wait().status
        if status != -SIGKILL { return status }
      }
      let result = try BatchProgram([command, "job.json"], in: directory).wait()
      #expect([0, 4].contains(result.status), "seed \(seed): \(result.errors)")
      return result.status
    }

    private func content(of path: String) throws -> [String] {
      try TestDatabase.texts(
        path,
        "SELECT id || ' ' || quote(v) || ' ' || quote(w) FROM t ORDER BY id"
      )
    }
  }

  @Test(arguments: seeds)
  func `an ordered update shifts values under a unique index`(
    seed: UInt64
  ) throws {
    var trial = try Trial(seed)
    let values = trial.permutation()
    try trial.make(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL UNIQUE, w INTEGER)",
      (0..<trial.rows).map { "\($0 + 1), \(values[$0]), \($0 % 7)" }
    )
    let rises = trial.isTrue(of: 2)
    let set = "v \(rises ? "+" : "-") 1"
    let action: [String: Any] =
      if trial.isTrue(of: 4) {
        [
          "type": "transform", "columns": ["v"], "writes": ["v"],
          "command": ["sh", "-c", Self.adding(rises ? 1 : -1)],
        ]
      } else {
        ["type": "update", "set": ["v": set]]
      }
    let last = Int.random(in: 0...trial.rows, using: &trial.random)
    try trial.check(
      action,
      as: "UPDATE t SET v = \(set)",
      where: trial.isTrue(of: 2) ? "w >= 0" : rises ? "v >= \(last)" : "v <= \(last)",
      orderBy: [rises ? "-v" : "v"],
      rises ? "v DESC" : "v",
      skip: trial.isTrue(of: 4)
    )
  }

  /// A program that adds a number to `v`.
  private static func adding(_ number: Int) -> String {
    """
    while read -r line; do
      v=${line##*:}; v=${v%?}
      echo "{\\"v\\": $((v + \(number)))}"
    done
    """
  }

  @Test(arguments: seeds)
  func `a delete in a self-referencing table deletes rows before those they refer to`(
    seed: UInt64
  ) throws {
    var trial = try Trial(seed)
    var values: [String] = []
    for row in 1...trial.rows {
      let parent =
        row > 1 && !trial.isTrue(of: 5)
        ? "\(Int.random(in: max(1, row - 30)..<row, using: &trial.random))" : "NULL"
      values.append("\(row), \(parent), \(row % 7)")
    }
    let isIndexed = trial.isTrue(2, of: 3)
    try trial.make(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER REFERENCES t, w INTEGER)",
      values
    )
    if isIndexed { try TestDatabase.make(in: trial.directory, "CREATE INDEX i ON t (v)") }
    let last = Int.random(in: 0...trial.rows, using: &trial.random)
    // Rows that stay, and keep others, unless they let go of them.
    let keeps = trial.isTrue(of: 3)
    if !keeps {
      try TestDatabase.make(
        in: trial.directory,
        "UPDATE t SET v = NULL WHERE id > \(last) AND v <= \(last)"
      )
    }
    try trial.check(
      ["type": "delete"],
      as: "DELETE FROM t",
      where: "id <= \(last)",
      orderBy: trial.isTrue(of: 2) ? ["-id"] : [],
      "id DESC",
      skip: keeps || trial.isTrue(of: 4)
    )
  }

  @Test(arguments: seeds)
  func `the first row in the order gets a contested unique value`(
    seed: UInt64
  ) throws {
    var trial = try Trial(seed)
    let (values, ranks) = (trial.permutation(), trial.permutation())
    let hasKey = trial.isTrue(of: 2)
    try trial.make(
      "CREATE TABLE t (id \(hasKey ? "INTEGER PRIMARY KEY" : "TEXT PRIMARY KEY"), v INTEGER, w INTEGER)",
      (0..<trial.rows).map { "\($0 + 1), \(values[$0] * 10), \(ranks[$0] / 3)" }
    )
    let index = trial.isTrue(of: 3) ? "i ON t (v % 100000) WHERE v < 1000000" : "i ON t (v)"
    try TestDatabase.make(in: trial.directory, "CREATE UNIQUE INDEX \(index)")
    let divisor = Int.random(in: 2...60, using: &trial.random)
    let descends = trial.isTrue(of: 2)
    try trial.check(
      ["type": "update", "set": ["v": "v / \(divisor)"]],
      as: "UPDATE t SET v = v / \(divisor)",
      where: trial.isTrue(of: 2) ? "w > 3" : "v > 100",
      orderBy: [descends ? "-w" : "w"],
      descends ? "w DESC, id" : "w, id",
      skip: true
    )
  }
}
