import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Increments while others write, killed at random moments: between them, the files have each version of a row
/// once that no later one replaced in time.
@Suite(.timeLimit(.minutes(30))) struct IncrementModelTests {
  /// How a column grows, and what a job says of it.
  struct Cursor: CustomTestStringConvertible, Sendable {
    let name: String
    /// The type of the column.
    var type = "TEXT"
    /// The value for a change, in SQL.
    let value: String
    /// The lag, as the job has it.
    let lag: String?
    var testDescription: String { name }

    static let all = [
      Cursor(name: "counter", type: "INTEGER", value: "(SELECT count(*) FROM log)", lag: nil),
      // Of rows with one value, those with the largest wait for others with it.
      Cursor(name: "ties", type: "INTEGER", value: "(SELECT count(*) / 7 FROM log)", lag: "1"),
      // Of rows with one value, a later one has a greater key.
      Cursor(name: "groups", type: "INTEGER", value: "(SELECT count(*) / 7 FROM log)", lag: nil),
      Cursor(name: "text", value: "datetime('now')", lag: "\"1s\""),
      Cursor(name: "ISO", value: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", lag: "\"1s\""),
      Cursor(
        name: "milliseconds",
        type: "INTEGER",
        value: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        lag: "\"1s\""
      ),
      Cursor(
        name: "seconds",
        type: "REAL",
        value: "(julianday('now') - 2440587.5) * 86400",
        lag: "\"1s\""
      ),
    ]
  }

  private static let increments = 20

  @Test(arguments: Cursor.all)
  func `killed increments beside writers have each version exactly once`(cursor: Cursor) throws {
    let directory = try TemporaryDirectory()
    let rows = 1_000
    let path = try TestDatabase.make(
      in: directory,
      "PRAGMA journal_mode = wal",
      "CREATE TABLE items (id INTEGER PRIMARY KEY, v INTEGER, at \(cursor.type))",
      "CREATE INDEX items_at ON items (at)",
      "CREATE TABLE log (v INTEGER PRIMARY KEY, id INTEGER, at \(cursor.type))"
    )
    try directory.write(
      """
      { "version": 1, "name": "items", "database": { "path": "test.db" },
        "source": { "entity": "items",
          "since": { "column": "at"\(cursor.lag.map { ", \"lag\": \($0)" } ?? "") } },
        "action": { "type": "export", "file": "out-{runStartedAt}.csv", "format": "csv",
          "columns": ["id", "v"] },
        "chunk": { "size": 10 }, "checkpoint": { "interval": "1ms" },
        "throttle": { "identifiersPerSecond": 5000 }, "history": 1000 }
      """,
      to: "job.json"
    )
    let seed = ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
    var kills = IncrementKills(seed: seed ?? .random(in: 0...UInt64(UInt32.max)), in: directory)
    let writer = try ItemWriter(path, cursor, rows: rows, seed: kills.seed)
    let writing = Writing { try writer.change() }
    var model = IncrementModel { try TestDatabase.texts(path, $0) }
    for number in 1...Self.increments {
      let least = KillLoop.kills * number / Self.increments
      let run = try kills.complete(until: least)
      try model.add(run, in: directory, "\(cursor.name), seed \(kills.seed)")
    }
    try writing.stop()
    // The last rows are as old as the lag before an increment has them.
    let deadline = ContinuousClock.now + .seconds(60)
    while try !model.missing(waiting: cursor.name == "ties").isEmpty {
      try #require(
        ContinuousClock.now < deadline,
        "\(cursor.name), seed \(kills.seed): rows are missing"
      )
      let run = try kills.complete(until: 0)
      try model.add(run, in: directory, "\(cursor.name), seed \(kills.seed)")
    }
    #expect(model.isContiguous)
    print(
      "increments of \(cursor.name): \(kills.count) kills, \(kills.resumed) resumed half-way,"
        + " \(model.runs) increments, \(model.versions.count) versions, seed \(kills.seed)"
    )
  }
}

/// Gives the command until an increment is complete, and kills it at random moments.
struct IncrementKills {
  let seed: UInt64
  private let directory: TemporaryDirectory
  private var generator: SeededGenerator
  private(set) var count = 0
  private(set) var resumed = 0
  private var longest = 0.3

  init(seed: UInt64, in directory: TemporaryDirectory) {
    (self.seed, self.directory) = (seed, directory)
    generator = SeededGenerator(seed: seed)
  }

  /// Kills until there were that many kills, then lets the run end; returns the last event.
  mutating func complete(until least: Int) throws -> [String: Any] {
    var ranges: [String: String] = [:]
    while true {
      let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
      let start = ContinuousClock.now
      var wasKilled = false
      if count < least {
        let moment = Double.random(in: 0...longest, using: &generator)
        wasKilled = program.send(SIGKILL, afterSeconds: moment)
      }
      let result = program.wait()
      let events = try JSONOutput.lines(result.output)
      for event in events {
        guard let run = event["run"] as? String, let range = event["increment"] else { continue }
        let json = try JSONSerialization.data(withJSONObject: range, options: .sortedKeys)
        let text = String(decoding: json, as: UTF8.self)
        // Each run keeps its range.
        #expect(ranges[run] ?? text == text, "seed \(seed)")
        ranges[run] = text
      }
      if let first = events.first, first["event"] as? String == "resumed",
        first["done"] as? Int ?? 0 > 0
      {
        resumed += 1
      }
      if wasKilled, result.status == -SIGKILL {
        count += 1
        // Killed after its end, it is another increment.
        if let last = events.last, last["event"] as? String == "finished" { return last }
        continue
      }
      try #require(result.status == 0, "seed \(seed): \(result.errors)")
      longest = min(0.5, max(0.05, start.duration(to: .now) / .seconds(1)))
      if count < least { continue }
      return try #require(events.last)
    }
  }
}

/// What the files have, and the versions that there were.
struct IncrementModel {
  /// The versions that the files have.
  private(set) var versions: Set<Int> = []
  private(set) var runs = 0
  private let query: (String) throws -> [String]
  private var files: Set<String> = []
  private var ends: [(from: String, to: String)] = []

  /// A model of a database whose queries give one column.
  init(_ query: @escaping (String) throws -> [String]) { self.query = query }

  /// Each range begins where the one before it ends.
  var isContiguous: Bool { zip(ends, ends.dropFirst()).allSatisfy { $0.to == $1.from } }

  /// Reads the files that are new, all of which are complete.
  mutating func add(
    _ run: [String: Any],
    in directory: TemporaryDirectory,
    _ words: String
  ) throws {
    let last = try query("SELECT coalesce(max(v), 0) FROM log").first ?? "0"
    for name in try directory.names().sorted() where name.hasPrefix("out-") {
      guard let text = try Self.text(name, in: directory), files.insert(name).inserted else {
        continue
      }
      runs += 1
      for line in text.split(whereSeparator: \.isNewline).dropFirst() {
        let version = try #require(line.split(separator: ",").last.flatMap { Int($0) })
        #expect(versions.insert(version).inserted, "\(words): version \(version) twice")
      }
    }
    let history = try BatchProgram.run("history", "job.json", "--json", in: directory)
    let recorded = try #require(try JSONOutput.object(history.output)["runs"] as? [[String: Any]])
    ends = recorded.reversed().compactMap { run in
      guard let range = run["increment"] as? [String: Any] else { return nil }
      func place(_ name: String) -> String {
        "\(range[name] ?? "") \(range["\(name)Key"] ?? "")"
      }
      return (place("from"), place("to"))
    }
    // A version that is still there, and was in the range, is in the files.
    guard let range = run["increment"] as? [String: Any], let end = range["to"] as? String else {
      return
    }
    let isText = Double(end) == nil
    let due = try query(
      "SELECT v FROM items WHERE at < \(isText ? "'\(end)'" : end) AND v <= \(last)"
    ).compactMap { Int($0) }
    let lost = Set(due).subtracting(versions)
    #expect(lost.isEmpty, "\(words): \(lost.sorted().prefix(5)) are in no file")
  }

  /// What a complete output has, a file or the parts of a folder; nil for one that is not complete.
  static func text(_ name: String, in directory: TemporaryDirectory) throws -> String? {
    if name.hasSuffix(".csv") { return String(decoding: try directory.read(name), as: UTF8.self) }
    guard let bytes = FileManager.default.contents(atPath: directory.file("\(name)/manifest.json")),
      let parts = try JSONOutput.object(String(decoding: bytes, as: UTF8.self))["parts"]
        as? [[String: Any]]
    else { return nil }
    return try parts.map { part in
      let file = try #require(part["file"] as? String)
      return String(decoding: try directory.read("\(name)/\(file)"), as: UTF8.self)
    }.joined()
  }

  /// The versions that the table has and no file; without those that wait for others with their cursor.
  func missing(waiting: Bool) throws -> Set<Int> {
    let due = waiting ? " WHERE at < (SELECT max(at) FROM items)" : ""
    let all = try query("SELECT v FROM items\(due)").compactMap { Int($0) }
    return Set(all).subtracting(versions)
  }
}

/// Changes rows of `items`, each of whose versions is in `log`.
private final class ItemWriter: @unchecked Sendable {
  // Sendable: one thread at a time uses it.
  private let connection: Connection
  private let cursor: IncrementModelTests.Cursor
  private var generator: SeededGenerator
  private var last: Int

  init(
    _ path: String,
    _ cursor: IncrementModelTests.Cursor,
    rows: Int,
    seed: UInt64
  ) throws {
    connection = try Connection(path: path)
    try connection.execute("PRAGMA synchronous = OFF")
    self.cursor = cursor
    generator = SeededGenerator(seed: seed ^ 0x57)
    last = 0
    try connection.execute("BEGIN IMMEDIATE")
    for _ in 0..<rows { try write(id: nil) }
    try connection.execute("COMMIT")
  }

  /// Commits a change of some rows.
  func change() throws {
    try connection.execute("BEGIN IMMEDIATE")
    for _ in 0..<Int.random(in: 1...5, using: &generator) {
      if cursor.name == "groups" || Bool.random(using: &generator) {
        try write(id: nil)
      } else if Int.random(in: 0..<10, using: &generator) == 0 {
        let id = Int.random(in: 1...last, using: &generator)
        try connection.execute("DELETE FROM items WHERE id = \(id)")
      } else {
        try write(id: Int.random(in: 1...last, using: &generator))
      }
    }
    try connection.execute("COMMIT")
  }

  private func write(id: Int?) throws {
    let id =
      id
      ?? {
        last += 1
        return last
      }()
    try connection.execute(
      """
      INSERT OR REPLACE INTO items
      SELECT \(id), (SELECT coalesce(max(v), 0) + 1 FROM log), \(cursor.value)
      """
    )
    try connection.execute("INSERT INTO log SELECT v, id, at FROM items WHERE id = \(id)")
  }
}

/// A thread that writes until it is told to stop.
final class Writing: @unchecked Sendable {
  // Sendable: one thread changes rows, and writes the error before `ended` is signalled, which is waited for.
  private let stopping = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private var error: (any Error)?
  private let change: () throws -> Void

  init(_ change: @escaping () throws -> Void) {
    self.change = change
    let thread = Thread { [self] in
      do {
        while stopping.wait(timeout: .now() + .milliseconds(2)) == .timedOut { try self.change() }
      } catch {
        self.error = error
      }
      ended.signal()
    }
    thread.start()
  }

  func stop() throws {
    stopping.signal()
    ended.wait()
    if let error { throw error }
  }
}
