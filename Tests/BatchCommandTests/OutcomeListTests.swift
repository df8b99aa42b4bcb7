import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Which rows came to what, asked of runs that are killed while others change and delete rows.
@Suite struct OutcomeListTests {
  private static let outcomes = [
    "succeeded", "unchanged", "vanished", "noLongerMatching", "failed",
  ]

  private let directory: TemporaryDirectory
  private let seed: UInt64

  init() throws {
    directory = try TemporaryDirectory()
    let environment = ProcessInfo.processInfo.environment
    seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
  }

  /// The identifiers with an outcome, by number; nil if there is no run yet.
  private func list(_ outcome: String, of source: String = "job.json") throws -> [Int]? {
    let result = try BatchProgram(["ids", source, "--outcome", outcome], in: directory).wait()
    if result.status == 2, result.errors.contains("no checkpoint") { return nil }
    #expect(result.status == 0, "\(outcome), seed \(seed): \(result.errors)")
    return result.output.split(separator: "\n").compactMap { Int($0.trimmingPrefix("=")) }.sorted()
  }

  /// The state of the run.
  private func status() throws -> [String: Any] {
    try JSONOutput.object(BatchProgram.run("status", "job.json", "--json", in: directory).output)
  }

  private func hasEnded() throws -> Bool {
    try (status()["state"] as? String)?.hasPrefix("completed") == true
  }

  private struct Row {
    var label: String
    var state = 0
    var isPoison = false
  }

  /// The expected outcomes, computed row by row.
  private struct Twin {
    var rows: [Int: Row] = [:]
    var fates: [Int: String] = [:]

    mutating func process(_ identifier: Int, _ action: String) {
      precondition(fates[identifier] == nil)
      guard let row = rows[identifier] else { return fates[identifier] = "vanished" }
      if row.state != 0 { return fates[identifier] = "noLongerMatching" }
      switch action {
      case "update" where row.label == row.label.uppercased(): fates[identifier] = "unchanged"
      case "export": fates[identifier] = "succeeded"
      case _ where row.isPoison: fates[identifier] = "failed"
      case "update":
        rows[identifier]?.label = row.label.uppercased()
        fates[identifier] = "succeeded"
      default:
        rows[identifier] = nil
        fates[identifier] = "succeeded"
      }
    }

    func identifiers(_ outcome: String) -> [Int] {
      fates.filter { $0.value == outcome }.keys.sorted()
    }
  }

  private static let tables = [
    "dense": "id INTEGER PRIMARY KEY, label TEXT, state INTEGER, poison INTEGER)",
    "sparse": "id INTEGER PRIMARY KEY, label TEXT, state INTEGER, poison INTEGER)",
    "text": "id TEXT PRIMARY KEY, label TEXT, state INTEGER, poison INTEGER) WITHOUT ROWID",
  ]

  private func makeRows(
    _ table: String,
    using random: inout SeededGenerator
  ) throws -> (Connection, Twin) {
    let columns = try #require(Self.tables[table])
    let path = try TestDatabase.make(
      in: directory,
      "PRAGMA journal_mode = wal",
      "CREATE TABLE t (\(columns)",
      "CREATE TABLE audit (id)",
      "CREATE TRIGGER a AFTER UPDATE ON t BEGIN INSERT INTO audit VALUES (old.id); END",
      "CREATE TRIGGER u BEFORE UPDATE OF label ON t WHEN old.poison BEGIN SELECT RAISE(ABORT, 'no'); END",
      "CREATE TRIGGER d BEFORE DELETE ON t WHEN old.poison BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    let connection = try Connection(path: path)
    var twin = Twin()
    try connection.execute("BEGIN")
    var identifier = 1000
    for _ in 0..<600 {
      identifier += table == "dense" ? 1 : Int.random(in: 1...30, using: &random)
      let row = Row(
        label: Bool.random(using: &random) ? "some" : "SOME",
        isPoison: Int.random(in: 0..<25, using: &random) == 0
      )
      twin.rows[identifier] = row
      try connection.execute(
        "INSERT INTO t VALUES (\(identifier), '\(row.label)', 0, \(row.isPoison ? 1 : 0))"
      )
    }
    try connection.execute("COMMIT")
    return (connection, twin)
  }

  private func writeJob(_ action: String) throws {
    let more: [String: Any] = [
      "chunk": ["size": 20], "throttle": ["identifiersPerSecond": 3000],
      "checkpoint": ["interval": "20ms"],
    ]
    let skip: [String: Any] = ["skip": ["limit": 1000]]
    switch action {
    case "update":
      let job = try JobText.update(
        ["label": "upper(label)"],
        where: "state = 0",
        entity: "t",
        adding: more.merging(skip) { $1 }
      )
      try directory.write(
        job.replacing("\"set\" :", with: "\"unchanged\": \"skip\", \"set\" :"),
        to: "job.json"
      )
    case "delete":
      let job = try JobText.delete(
        where: "state = 0",
        entity: "t",
        adding: more.merging(skip) { $1 }
      )
      try directory.write(job, to: "job.json")
    default:
      let job = try JobText.export(
        to: "out.ndjson",
        where: "state = 0",
        entity: "t",
        adding: more
      )
      try directory.write(job, to: "job.json")
    }
  }

  /// Changes and deletes some rows, whether they are done or not.
  private func meddle(
    _ twin: inout Twin,
    _ connection: Connection,
    using random: inout SeededGenerator
  ) throws {
    try connection.execute("BEGIN IMMEDIATE")
    for identifier in twin.rows.keys.sorted() {
      guard let row = twin.rows[identifier], !row.isPoison else { continue }
      let key = "id = '\(identifier)'"
      switch Int.random(in: 0..<12, using: &random) {
      case 0:
        try connection.execute("DELETE FROM t WHERE \(key)")
        twin.rows[identifier] = nil
      case 1:
        try connection.execute("UPDATE t SET state = 1 WHERE \(key)")
        twin.rows[identifier]?.state = 1
      case 2:
        try connection.execute("UPDATE t SET label = 'OTHER' WHERE \(key)")
        twin.rows[identifier]?.label = "OTHER"
      case 3:
        try connection.execute("UPDATE t SET label = 'other' WHERE \(key)")
        twin.rows[identifier]?.label = "other"
      default: break
      }
    }
    try connection.execute("DELETE FROM audit")
    try connection.execute("COMMIT")
  }

  @Test(arguments: ["update", "delete", "export"], tables.keys.sorted())
  func `each row of killed runs is in exactly one outcome list`(action: String, table: String)
    throws
  {
    var random = SeededGenerator(seed: seed)
    var (connection, twin) = try makeRows(table, using: &random)
    try writeJob(action)
    var remaining: [Int]?
    for attempt in 1... {
      let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
      var isOver = attempt > 3
      if !isOver {
        let seconds = Double.random(in: 0.05...0.25, using: &random)
        isOver = !program.send(SIGKILL, afterSeconds: seconds)
      }
      let result = program.wait()
      if isOver { #expect([0, 4].contains(result.status), "seed \(seed): \(result.errors)") }
      guard let now = try list("remaining") else { continue }
      if remaining == nil { remaining = try list("all") }
      let before = Set(twin.fates.filter { $0.value == "succeeded" }.keys)
      for identifier in Set(remaining ?? []).subtracting(now).sorted() {
        twin.process(identifier, action)
      }
      for outcome in Self.outcomes {
        #expect(try list(outcome) == twin.identifiers(outcome), "\(outcome), seed \(seed)")
      }
      if action == "update" {
        // Rows that have what they would be set to are not written, and their triggers do not run.
        let written = try connection.texts("SELECT id FROM audit").compactMap(Int.init).sorted()
        let succeeded = Set(twin.identifiers("succeeded")).subtracting(before)
        #expect(written == succeeded.sorted(), "seed \(seed)")
      }
      remaining = now
      // Killed in its last moment a run is over, and the same command begins another.
      if try isOver || hasEnded() { break }
      try meddle(&twin, connection, using: &random)
    }
    // What the finished run's file says is what the store has said.
    var sum = 0
    for outcome in Self.outcomes {
      #expect(try list(outcome, of: "job.batch") == twin.identifiers(outcome), "seed \(seed)")
      sum += twin.identifiers(outcome).count
    }
    let counts = try #require(try status()["outcomes"] as? [String: Int])
    #expect(
      counts
        == Dictionary(
          uniqueKeysWithValues: Self.outcomes.map {
            ($0, twin.identifiers($0).count)
          }
        )
    )
    #expect(sum == 600, "seed \(seed)")
    print("outcomes, \(action), \(table), seed \(seed): \(counts)")
  }

  @Test func `rows that others change meanwhile are in exactly one outcome list`() throws {
    var random = SeededGenerator(seed: seed)
    let (connection, twin) = try makeRows("sparse", using: &random)
    try writeJob("update")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = program.nextLine()
    var deleted: Set<Int> = []
    var changed: Set<Int> = []
    for identifier in twin.rows.keys.shuffled(using: &random) where program.isRunning {
      if Bool.random(using: &random) {
        try connection.execute("DELETE FROM t WHERE id = \(identifier) AND NOT poison")
        if connection.changes == 1 { deleted.insert(identifier) }
      } else {
        // So that the trigger of the audit does not see it.
        try connection.execute(
          "INSERT OR REPLACE INTO t SELECT id, label, 1, poison FROM t WHERE id = \(identifier)"
        )
        changed.insert(identifier)
      }
    }
    let result = program.wait()
    #expect([0, 4].contains(result.status), "seed \(seed): \(result.errors)")
    let lists = try Self.outcomes.map { Set(try #require(try list($0))) }
    #expect(lists.map(\.count).reduce(0, +) == 600, "seed \(seed)")
    #expect(lists.reduce(Set()) { $0.union($1) }.count == 600, "seed \(seed)")
    let written = try connection.texts("SELECT id FROM audit").compactMap(Int.init)
    #expect(lists[0].sorted() == written.sorted(), "seed \(seed)")
    #expect(lists[1].allSatisfy { twin.rows[$0]?.label == "SOME" }, "seed \(seed)")
    #expect(lists[2].isSubset(of: deleted), "seed \(seed)")
    #expect(lists[3].isSubset(of: changed), "seed \(seed)")
  }
}
