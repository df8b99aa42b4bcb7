import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Undo records that were cut, edited or copied, and tables that have changed since: an undo is refused, says
/// what can be done, and writes nothing.
@Suite struct UndoDamageTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER, label TEXT)",
      "INSERT INTO items VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)"
    )
  }

  /// Has another connection do something, and be gone.
  private func execute(_ statements: String...) throws {
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
  }

  private func run(_ action: String) throws {
    let keys: [String: Any] = ["undo": true, "chunk": ["size": 2], "workers": 1]
    let job =
      action == "update"
      ? try JobText.update(["n": "n + 1"], entity: "items", adding: keys)
      : try JobText.delete(where: "id > 0", entity: "items", adding: keys)
    try directory.write(job, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
  }

  private func rows() throws -> [[SQLValue]] {
    try TestDatabase.rows(path, "SELECT * FROM items ORDER BY id")
  }

  private func bytes() throws -> [UInt8] {
    let value = try TestDatabase.value(
      path,
      "SELECT bytes FROM _batch_undo ORDER BY number DESC LIMIT 1"
    )
    guard case .blob(let bytes) = value else { return [] }
    return bytes
  }

  private func setBytes(_ bytes: [UInt8]) throws {
    try Connection(path: path).execute(
      "UPDATE _batch_undo SET bytes = ? WHERE number = (SELECT max(number) FROM _batch_undo)",
      .blob(bytes)
    )
  }

  private static let says = ["a record of table _batch_undo cannot be read", "--ids"]

  @Test(arguments: ["update", "delete"])
  func `an undo record truncated anywhere is refused`(action: String) throws {
    try run(action)
    let whole = try bytes()
    #expect(whole.count > 20)
    for end in 0..<whole.count {
      try setBytes(Array(whole[..<end]))
      try Refusal.expect(["undo", "job.json"], in: directory, says: Self.says)
    }
    try setBytes(whole)
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows().map { $0[1] } == [.integer(10), .integer(20), .integer(30)])
  }

  @Test func `undo, undo --plan and verify refuse an edited undo record`() throws {
    try run("update")
    let whole = try bytes()
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    for _ in 0..<25 {
      var edited = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<edited.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: edited[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1: edited.insert(UInt8.random(in: 0...255, using: &random), at: place)
        default: edited.remove(at: place)
        }
      }
      if edited == whole { continue }
      try setBytes(edited)
      let arguments = [
        ["undo", "job.json"], ["undo", "job.json", "--plan"], ["verify", "job.json"],
      ]
      try Refusal.expect(
        try #require(arguments.randomElement(using: &random)),
        in: directory,
        says: Self.says
      )
    }
    print("edited undo records: seed \(seed)")
  }

  /// Whoever makes the hash anew can say what he likes, and ends no program with it.
  @Test func `an undo record edited with a new hash is refused or undone as it says`() throws {
    try run("update")
    let whole = Array(try bytes().dropLast(8))
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    for _ in 0..<40 {
      var edited = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        edited[Int.random(in: 0..<edited.count, using: &random)] = .random(
          in: 0...255,
          using: &random
        )
      }
      let hash = XXHash64.hash(edited)
      for shift in stride(from: 0, to: 64, by: 8) {
        edited.append(UInt8(truncatingIfNeeded: hash >> UInt64(shift)))
      }
      try setBytes(edited)
      let result = try BatchProgram.run("undo", "job.json", "--plan", in: directory)
      #expect([0, 2].contains(result.status), "seed \(seed): \(result.errors)")
    }
  }

  @Test(arguments: ["5", "1", "0", "-1", "NULL", "'x'", "1.5", "9223372036854775807", "4294967295"])
  func `an invalid row count of an undo record is refused`(count: String) throws {
    try run("update")
    // The table admits no NULL.
    try execute(
      "PRAGMA writable_schema = ON",
      "UPDATE sqlite_schema SET sql = replace(sql, 'rows INTEGER NOT NULL', 'rows')"
        + " WHERE name = '_batch_undo'"
    )
    try execute(
      "UPDATE _batch_undo SET rows = \(count) WHERE number = (SELECT min(number) FROM _batch_undo)"
    )
    let before = try rows()
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 2 || undo.status == 1, "\(undo.status) \(undo.errors)")
    #expect(undo.errors.hasPrefix("error: "), "\(undo.errors)")
    #expect(try rows() == before)
  }

  @Test func `rows of intact undo records are restored by their identifiers`() throws {
    try run("update")
    // The last record has row 3.
    try setBytes(Array(try bytes().dropLast()))
    for (keys, name) in [("1\n2\n", "first.ids"), ("2\n3\n", "others.ids")] {
      try directory.write(keys, to: "keys.txt")
      let made = try BatchProgram.run(
        "ids",
        "from",
        "keys.txt",
        "--database",
        "test.db",
        "--entity",
        "items",
        "--output",
        name,
        in: directory
      )
      #expect(made.status == 0, "\(made.errors)")
    }
    try Refusal.expect(["undo", "job.json"], in: directory, says: Self.says)
    try Refusal.expect(
      ["undo", "job.json", "--ids", "others.ids"],
      in: directory,
      says: Self.says
    )
    let undo = try BatchProgram.run("undo", "job.json", "--ids", "first.ids", in: directory)
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows().map { $0[1] } == [.integer(10), .integer(20), .integer(31)])
  }

  @Test(arguments: [
    ("key", "'[]'"), ("key", "'[\"id\"'"), ("key", "''"), ("columns", "'[]'"), ("columns", "'n'"),
    ("columns", "'[\"n\",\"label\"]'"), ("types", "'[]'"), ("types", "'{'"),
    ("columns", "x'00'"), ("columns", "'[\"label\"]'"), ("types", "'[\"TEXT\"]'"),
  ])
  func `an edited undo run is refused`(column: String, value: String) throws {
    try run("update")
    try execute("UPDATE _batch_undo_run SET \(column) = \(value)")
    try Refusal.expect(
      ["undo", "job.json"],
      in: directory,
      says: ["_batch_undo_run has a row that no run entered", "DELETE FROM _batch_undo_run"]
    )
    try execute("DELETE FROM _batch_undo_run")
    try Refusal.expect(["undo", "job.json"], in: directory, says: ["can be undone"])
  }

  @Test(arguments: [
    "DELETE FROM _batch_undo WHERE number = (SELECT min(number) FROM _batch_undo)",
    "DELETE FROM _batch_undo WHERE number = (SELECT max(number) FROM _batch_undo)",
    "INSERT INTO _batch_undo (run, rows, bytes) SELECT run, rows, bytes FROM _batch_undo",
  ])
  func `removed or copied undo records are noticed`(edit: String) throws {
    try run("update")
    let changed = try rows()
    try execute(edit)
    for command in ["undo job.json", "undo job.json --plan", "verify job.json"] {
      try Refusal.expect(
        command.components(separatedBy: " "),
        in: directory,
        says: ["rows of run", "which has recorded 3", "--ids"]
      )
    }
    #expect(try rows() == changed)
  }

  @Test(arguments: [("entity", "'nothing'"), ("is_deletion", "1"), ("kind", "'objects'")])
  func `an undo run edited to be of another kind is refused`(column: String, value: String) throws {
    try run("update")
    try execute("UPDATE _batch_undo_run SET \(column) = \(value)")
    try Refusal.expect(["undo", "job.json"], in: directory)
  }

  @Test func `undo records of another database are refused`() throws {
    try run("update")
    let other = try TemporaryDirectory()
    try TestDatabase.make(
      in: other,
      "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER, label TEXT)",
      "INSERT INTO items VALUES (1, 11, 'a'), (2, 21, 'b'), (3, 31, NULL)"
    )
    let keys: [String: Any] = ["undo": true]
    try other.write(
      JobText.update(["n": "n"], where: "id < 0", entity: "items", adding: keys),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: other).status == 0)
    try TestDatabase.make(
      in: other,
      "ATTACH '\(path)' AS source",
      "INSERT INTO main._batch_undo_run SELECT * FROM source._batch_undo_run",
      "INSERT INTO main._batch_undo (run, rows, bytes) SELECT run, rows, bytes FROM source._batch_undo"
    )
    try Refusal.expect(
      ["undo", "job.json"],
      in: other,
      says: ["has changed another database", "undo it in that one"]
    )
    // A copy of the file is the same database.
    let copy = directory.file("copy.db")
    try execute("VACUUM INTO '\(copy)'")
    try directory.write(
      JobText.update(
        ["n": "n + 1"],
        entity: "items",
        adding: ["undo": true, "database": ["path": "copy.db"]]
      ),
      to: "copy.json"
    )
    let undo = try BatchProgram.run("undo", "copy.json", in: directory)
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try TestDatabase.texts(copy, "SELECT sum(n) FROM items") == ["60"])
  }

  @Test(arguments: [
    ("n TEXT, label TEXT", ["n was INTEGER and is TEXT", "restore the columns' types"]),
    ("n, label TEXT", ["n was INTEGER and is of no type"]),
    ("label TEXT", ["has no column n that could be set", "restore the table's columns"]),
    ("label TEXT, n INTEGER AS (id) STORED", ["has no column n that could be set"]),
  ])
  func `an undo of a table with changed columns is refused`(
    columns: String,
    says: [String]
  ) throws {
    try run("update")
    let names = columns.hasPrefix("label") ? "id, label" : "id, n, label"
    try execute(
      "CREATE TABLE new (id INTEGER PRIMARY KEY, \(columns))",
      "INSERT INTO new (\(names)) SELECT \(names) FROM items",
      "DROP TABLE items",
      "ALTER TABLE new RENAME TO items"
    )
    for arguments in [["undo", "job.json"], ["undo", "job.json", "--overwrite"]] {
      try Refusal.expect(arguments, in: directory, says: ["has changed since the run"] + says)
    }
  }

  @Test func `an undo of a table with another key or none is refused`() throws {
    try run("update")
    try execute("CREATE TABLE new AS SELECT id AS number, n, label FROM items")
    try execute("DROP TABLE items", "ALTER TABLE new RENAME TO items")
    try Refusal.expect(
      ["undo", "job.json"],
      in: directory,
      says: ["has changed since the run, whose rows had the key id", "restore the table's key"]
    )
    try execute("DROP TABLE items")
    try Refusal.expect(["undo", "job.json"], in: directory, says: ["items"])
  }

  @Test(arguments: ["CHECK (n > 10)", "UNIQUE", "NOT NULL"])
  func `an undo leaves a row that violates a new constraint unchanged and reports it`(
    constraint: String
  ) throws {
    try run("update")
    try execute(
      "CREATE TABLE new (id INTEGER PRIMARY KEY, n INTEGER \(constraint), label TEXT)",
      "INSERT INTO new SELECT id, n, label FROM items",
      "DROP TABLE items",
      "ALTER TABLE new RENAME TO items",
      "INSERT INTO items SELECT 9, 10, 'in the way' WHERE \(constraint == "UNIQUE" ? 1 : 0)"
    )
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    let failing = constraint == "NOT NULL" ? [] : ["1"]
    #expect(undo.status == (failing.isEmpty ? 0 : 4), "\(undo.errors)")
    let failed = try BatchProgram.run("ids", "job.undo", "--outcome", "failed", in: directory)
    #expect(failed.output.split(separator: "\n").map(String.init) == failing, "\(failed.errors)")
    let first = SQLValue.integer(failing.isEmpty ? 10 : 11)
    #expect(try rows().prefix(3).map { $0[1] } == [first, .integer(20), .integer(30)])
  }
}
