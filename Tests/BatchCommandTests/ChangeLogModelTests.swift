import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Increments of the log of changes beside a writer, killed at random moments: whoever merges them in order by key
/// has the table.
@Suite(.timeLimit(.minutes(30))) struct ChangeLogModelTests {
  /// A table with a key, a unique column `u` and a value `v`.
  struct Keyed: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let definition: String
    var name = "items"
    let key: [String]
    /// The values of the key of a number, in SQL.
    let values: @Sendable (Int) -> [String]

    static let all = [
      Keyed(
        testDescription: "rowid",
        definition: "(id INTEGER PRIMARY KEY, u TEXT UNIQUE, v INTEGER)",
        key: ["id"]
      ) { ["\($0)"] },
      Keyed(
        testDescription: "text without case",
        definition: "(v INTEGER, id TEXT COLLATE NOCASE PRIMARY KEY, u TEXT COLLATE NOCASE UNIQUE)",
        key: ["id"]
      ) { ["'\($0.isMultiple(of: 2) ? "k" : "K")\($0 / 2)'"] },
      Keyed(
        testDescription: "composite without rowid",
        definition: "(a TEXT, u UNIQUE, b INTEGER, v, PRIMARY KEY (b, a DESC)) WITHOUT ROWID",
        key: ["b", "a"]
      ) { ["\($0 % 7)", "'é\($0 / 7)'"] },
      Keyed(
        testDescription: "blob",
        definition: "(id BLOB PRIMARY KEY, u TEXT, v INTEGER, UNIQUE (u, v))",
        key: ["id"]
      ) { ["x'00ff\(String(1_000 + $0))'"] },
      Keyed(
        testDescription: "unique index, odd names",
        definition: "(\"i`d\"\" '\" TEXT NOT NULL UNIQUE, u TEXT UNIQUE, v INTEGER)",
        name: "\"it\"\"e'm `s\"",
        key: ["\"i`d\"\" '\""]
      ) { ["'00000000-0000-4000-8000-\(String(100_000_000_000 + $0))'"] },
      Keyed(
        testDescription: "any type",
        definition: "(id ANY PRIMARY KEY, u TEXT UNIQUE, v INTEGER) STRICT",
        key: ["id"]
      ) { [["\($0)", "'\($0)'", "\($0).5", "x'\(String(10 + $0 % 90))'"][$0 % 4]] },
    ]
  }

  private static let increments = 16

  @Test(arguments: Keyed.all)
  func `merging all increments gives the table`(table: Keyed) throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "PRAGMA journal_mode = wal",
      "CREATE TABLE \(table.name) \(table.definition)"
    )
    func bare(_ name: String) -> String {
      name.hasPrefix("\"")
        ? String(name.dropFirst().dropLast()).replacing("\"\"", with: "\"") : name
    }
    let json = String(decoding: try JSONEncoder().encode(bare(table.name)), as: UTF8.self)
    let names = try JSONEncoder().encode((table.key + ["u", "v"]).map(bare))
    func write(_ name: String, _ file: String, changes: Bool = true, more: String = "") throws {
      try directory.write(
        """
        { "version": 1, "name": "\(name)", "database": { "path": "test.db" },
          "source": { "entity": \(json)\(changes ? #", "changes": "log""# : "") },
          "action": { "type": "export", "file": "\(file)", "format": "csv",
            "columns": \(String(decoding: names, as: UTF8.self)) }\(more) }
        """,
        to: "\(name).json"
      )
    }
    try write(
      "job",
      "out-{runStartedAt}.csv",
      more: #"""
        , "chunk": { "size": 10 }, "checkpoint": { "interval": "1ms" },
          "throttle": { "identifiersPerSecond": 3000 }, "history": 1000
        """#
    )
    try write("slow", "slow-{runStartedAt}.csv")
    try write("all", "all.csv", changes: false)
    let seed = ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
    var kills = IncrementKills(seed: seed ?? .random(in: 0...UInt64(UInt32.max)), in: directory)
    let words = "\(table.testDescription), seed \(kills.seed)"
    let writer = try KeyedWriter(path, table, seed: kills.seed)
    for _ in 0..<50 { try writer.change() }
    let tracked = try BatchProgram.run("track", "job.json", in: directory)
    try #require(tracked.status == 0, "\(words): \(tracked.errors)")
    let writing = Writing { try writer.change() }
    for number in 1...Self.increments {
      _ = try kills.complete(until: KillLoop.kills * number / Self.increments)
      if number.isMultiple(of: 5) {
        #expect(try BatchProgram.run("run", "slow.json", in: directory).status == 0, "\(words)")
      }
    }
    try writing.stop()
    for job in ["job", "slow", "all"] {
      let result = try BatchProgram.run("run", "\(job).json", in: directory)
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
    let all = String(decoding: try directory.read("all.csv"), as: UTF8.self)
      .split(whereSeparator: \.isNewline).dropFirst().map(String.init)
    for prefix in ["out-", "slow-"] {
      let merged = try Self.merged(prefix, keys: table.key.count, in: directory, words)
      #expect(Set(merged.values) == Set(all), "\(words), \(prefix)")
      #expect(merged.count == all.count, "\(words), \(prefix)")
    }
    // What all have exported is removed by the next runs.
    for job in ["job", "slow", "job"] {
      #expect(try BatchProgram.run("run", "\(job).json", in: directory).status == 0, "\(words)")
    }
    let status = try BatchProgram.run("track", "job.json", "--status", in: directory).output
    #expect(status.contains("log       0 changes"), "\(words): \(status)")
    print(
      "log of \(table.testDescription): \(kills.count) kills, \(kills.resumed) resumed half-way, \(writer.events)"
        + " changes, \(all.count) rows, seed \(kills.seed)"
    )
  }

  /// The rows by key, after the changes of all files in their order.
  static func merged(
    _ prefix: String,
    keys: Int,
    in directory: TemporaryDirectory,
    _ words: String
  ) throws -> [String: String] {
    var rows: [String: String] = [:]
    for name in try directory.names().sorted() where name.hasPrefix(prefix) {
      guard let text = try IncrementModel.text(name, in: directory) else { continue }
      var seen: Set<String> = []
      for line in text.split(whereSeparator: \.isNewline).dropFirst() {
        let fields = line.split(separator: ",", omittingEmptySubsequences: false)
        let key = fields.prefix(keys).joined(separator: ",")
        #expect(seen.insert(key).inserted, "\(words): \(key) twice in \(name)")
        switch fields.last {
        case "delete":
          let hasValues = fields.dropFirst(keys).dropLast().contains { !$0.isEmpty }
          #expect(!hasValues, "\(words): \(line)")
          rows[key] = nil
        case "insert", "update": rows[key] = fields.dropLast().joined(separator: ",")
        default: Issue.record("\(words): \(line)")
        }
      }
    }
    return rows
  }
}

/// Changes rows in every way that SQLite has.
private final class KeyedWriter: @unchecked Sendable {
  // Sendable: one thread at a time uses it.
  private let connection: Connection
  private let table: ChangeLogModelTests.Keyed
  private var generator: SeededGenerator
  private(set) var events = 0

  init(_ path: String, _ table: ChangeLogModelTests.Keyed, seed: UInt64) throws {
    connection = try Connection(path: path)
    try connection.execute("PRAGMA synchronous = OFF")
    self.table = table
    generator = SeededGenerator(seed: seed ^ 0x10)
  }

  private var condition: String {
    zip(table.key, values).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  private var values: [String] { table.values(.random(in: 0..<150, using: &generator)) }

  private var unique: String {
    let number = Int.random(in: 0..<200, using: &generator)
    return number > 150 ? "NULL" : "'\(number.isMultiple(of: 2) ? "u" : "U")\(number / 2)'"
  }

  /// Commits or rolls back some changes.
  func change() throws {
    try connection.execute("BEGIN IMMEDIATE")
    for _ in 0..<Int.random(in: 1...8, using: &generator) {
      do {
        try step()
      } catch let error as BatchError where error.code == .constraint {
        // The statement is taken back, with what its triggers did.
      }
    }
    try connection.execute(Int.random(in: 0..<8, using: &generator) == 0 ? "ROLLBACK" : "COMMIT")
  }

  private func step() throws {
    events += 1
    let (name, keys) = (table.name, table.key.joined(separator: ", "))
    let v = Int.random(in: 0..<5, using: &generator)
    let row = "\(name) (\(keys), u, v) VALUES (\(values.joined(separator: ", ")), \(unique), \(v))"
    let new = zip(table.key, values).map { "\($0) = \($1)" }.joined(separator: ", ")
    switch Int.random(in: 0..<12, using: &generator) {
    case 0...2: try connection.execute("INSERT OR REPLACE INTO \(row)")
    case 3: try connection.execute("INSERT OR IGNORE INTO \(row)")
    case 4:
      try connection.execute(
        "INSERT OR IGNORE INTO \(row) ON CONFLICT (\(keys)) DO UPDATE SET v = excluded.v"
      )
    case 5...6: try connection.execute("UPDATE \(name) SET v = v + 1 WHERE \(condition)")
    case 7: try connection.execute("UPDATE OR REPLACE \(name) SET \(new) WHERE \(condition)")
    case 8: try connection.execute("UPDATE OR REPLACE \(name) SET u = \(unique) WHERE \(condition)")
    case 9:
      try connection.execute(
        "UPDATE OR IGNORE \(name) SET \(new), u = \(unique) WHERE \(condition)"
      )
    case 10: try connection.execute("DELETE FROM \(name) WHERE \(condition)")
    default: try connection.execute("INSERT OR FAIL INTO \(row)")
    }
  }
}
