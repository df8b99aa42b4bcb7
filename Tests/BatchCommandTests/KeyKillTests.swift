import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Runs over tables with all kinds of keys, killed at random moments, while somebody else gives rows
/// other places, deletes them, inserts new ones with their keys, and changes other columns.
@Suite struct KeyKillTests {
  /// A kind of key: the table's columns and options, and the key of row `i`.
  enum Kind: String, CaseIterable {
    case dense, random, text, blob, ascending, integers, scattered, clustered, clusteredPair

    var table: String {
      switch self {
      case .dense, .random: "id INTEGER PRIMARY KEY, %"
      case .text, .ascending: "id TEXT NOT NULL PRIMARY KEY, %"
      case .blob: "id BLOB NOT NULL PRIMARY KEY, %"
      case .integers: "a INTEGER, b INTEGER, %, PRIMARY KEY (a, b)"
      case .scattered: "a TEXT, b INTEGER, %, PRIMARY KEY (a, b)"
      case .clustered: "id TEXT PRIMARY KEY, %"
      case .clusteredPair: "a TEXT, b INTEGER, %, PRIMARY KEY (b, a)"
      }
    }

    var options: String {
      [.clustered, .clusteredPair].contains(self) ? " WITHOUT ROWID" : ""
    }

    var key: String {
      switch self {
      case .dense: "i"
      case .random: "random() >> 1"
      case .text, .clustered: "lower(hex(randomblob(16)))"
      case .blob: "randomblob(16)"
      case .ascending: "printf('ORD-%06d', i)"
      case .integers: "i / 100, i % 100"
      case .scattered, .clusteredPair: "hex(randomblob(2)), random() >> 40"
      }
    }

    var keyColumns: String {
      switch self {
      case .integers, .scattered, .clusteredPair: "a, b"
      default: "id"
      }
    }
  }

  enum Action: CaseIterable {
    case update, delete, export, undo
  }

  private static let rows = 2_000
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("test.db")
  }

  /// A run, and what somebody else does meanwhile.
  private struct Trial {
    let connection: Connection
    let kind: Kind
    let directory: TemporaryDirectory
    var random: SeededGenerator
    var kills = 0
    /// The rows that somebody else has deleted, and may have inserted anew.
    var touched: Set<Int> = []
    /// The rows of which somebody else has set another column.
    var labelled: Set<Int> = []

    /// Does something to a few rows, as far as the run lets it.
    mutating func interfere() {
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let row = Int.random(in: 1...rows, using: &random)
        do {
          switch Int.random(in: 0..<8, using: &random) {
          case 0: try connection.execute("VACUUM")
          case 1, 2, 3:
            try connection.execute("DELETE FROM numbers WHERE i = \(row)")
            touched.insert(row)
          case 4, 5:
            guard let gone = touched.randomElement(using: &random) else { continue }
            let columns = kind.keyColumns
            try connection.execute(
              """
              INSERT OR IGNORE INTO numbers (\(columns), i, n, label)
              SELECT \(columns), i, 1000, 'new' FROM original WHERE i = \(gone)
              """
            )
          default:
            try connection.execute("UPDATE numbers SET label = 'other' WHERE i = \(row)")
            if connection.changes == 1 { labelled.insert(row) }
          }
        } catch {
          // The run has the database, or a moment of it.
        }
      }
    }

    /// Gives a command, and kills it a few times.
    mutating func complete(_ arguments: [String]) throws -> BatchProgram.Result {
      for _ in 0..<4 {
        let program = try BatchProgram(arguments, in: directory)
        interfere()
        let moment = Double.random(in: 0...0.3, using: &random)
        _ = program.send(SIGKILL, afterSeconds: moment)
        let result = program.wait()
        guard result.status == -SIGKILL else { return result }
        kills += 1
        // One that was killed after its end is over: the next one would be another run.
        let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
        if arguments[0] == "run", status.status == 0,
          try JSONOutput.object(status.output)["next"] as? String == "begin"
        {
          return status
        }
        interfere()
      }
      return try BatchProgram(arguments, in: directory).wait()
    }

    var rows: Int { KeyKillTests.rows }
  }

  @Test(arguments: Kind.allCases)
  func `killed runs do every row once for any key, although rows move and vanish`(
    kind: Kind
  ) throws {
    let seed =
      ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
      ?? UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    let wanted = max(1, KillLoop.kills / Kind.allCases.count)
    var (kills, runs) = (0, 0)
    while kills < wanted, runs < 20 * wanted {
      let action = Action.allCases.randomElement(using: &random) ?? .update
      kills += try run(kind, action, &random, "\(kind), \(action), seed \(seed)")
      runs += 1
    }
    print("kill-loop keys \(kind): \(kills) kills, \(runs) runs, seed \(seed): every row once")
  }

  /// - Returns: How often the run was killed.
  private func run(
    _ kind: Kind,
    _ action: Action,
    _ random: inout SeededGenerator,
    _ comment: Comment
  ) throws -> Int {
    for file in try directory.names() {
      try FileManager.default.removeItem(atPath: directory.file(file))
    }
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (\(kind.table.replacing("%", with: "i INTEGER, n INTEGER, label TEXT")))"
        + kind.options,
      "CREATE TABLE archive AS SELECT * FROM numbers",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(Self.rows))
      INSERT OR IGNORE INTO numbers (\(kind.keyColumns), i, n, label) SELECT \(kind.key), i, 0, 'old' FROM c
      """,
      "CREATE INDEX places ON numbers (i)",
      "CREATE TABLE original AS SELECT * FROM numbers"
    )
    let tuning: [String: Any] = [
      "checkpoint": ["interval": "1ms"], "chunk": ["size": Int.random(in: 10...90, using: &random)],
      "undo": action == .undo,
    ]
    let job =
      switch action {
      case .update, .undo: try JobText.update(adding: tuning)
      case .delete: try JobText.delete(archive: "archive", adding: tuning)
      case .export:
        try JobText.export(to: "out.ndjson", adding: tuning.merging(["undo": false]) { $1 })
      }
    try directory.write(job, to: "job.json")
    var trial = Trial(
      connection: try Connection(path: path),
      kind: kind,
      directory: directory,
      random: random
    )
    try trial.connection.execute("PRAGMA busy_timeout = 100")
    let result = try trial.complete(["run", "job.json"])
    #expect(result.status == 0, "\(comment): \(result.errors)")
    if action == .undo {
      let undo = try trial.complete(["undo", "job.json"])
      // One that was killed after its last step may be repeated as one that is done.
      let isDone = undo.status == 2 && undo.errors.contains("nothing is left to undo")
      #expect([0, 4].contains(undo.status) || isDone, "\(comment): \(undo.errors)")
    }
    try expectEachOnce(action, trial, comment)
    random = trial.random
    return trial.kills
  }

  private func expectEachOnce(_ action: Action, _ trial: Trial, _ comment: Comment) throws {
    let all = try TestDatabase.texts(path, "SELECT i FROM original").compactMap(Int.init)
    let untouched = Set(all).subtracting(trial.touched)
    func rows(_ query: String) throws -> Set<Int> {
      Set(try TestDatabase.texts(path, query).compactMap(Int.init))
    }
    let others = try rows("SELECT i FROM numbers WHERE label = 'other'")
    switch action {
    case .update, .undo:
      let n = action == .update ? 1 : 0
      let counts = try TestDatabase.texts(
        path,
        "SELECT n || ' x ' || count(*) FROM numbers GROUP BY n"
      )
      let done = try rows("SELECT i FROM numbers WHERE n = \(n)")
      #expect(done.isSuperset(of: untouched), "\(counts) \(comment)")
      // A new row with an old key is done at most once, too.
      #expect(try rows("SELECT i FROM numbers WHERE n NOT IN (0, 1, 1000, 1001)") == [], comment)
      #expect(others.isSuperset(of: trial.labelled.intersection(untouched)), comment)
    case .delete:
      #expect(try rows("SELECT i FROM archive WHERE n = 0").isSuperset(of: untouched), comment)
      #expect(try rows("SELECT i FROM numbers").isDisjoint(with: untouched), comment)
      let twice = "SELECT i FROM archive GROUP BY i HAVING count(*) > 1"
      #expect(try rows(twice) == [], comment)
    case .export:
      let lines = try String(contentsOfFile: directory.file("out.ndjson"), encoding: .utf8)
        .split(separator: "\n")
      let exported = try lines.compactMap { try JSONOutput.object(String($0))["i"] as? Int }
      #expect(exported.count == lines.count && Set(exported).count == exported.count, comment)
      #expect(Set(exported).isSuperset(of: untouched), comment)
    }
    #expect(try TestDatabase.integrity(path) == ["ok"], comment)
  }
}
