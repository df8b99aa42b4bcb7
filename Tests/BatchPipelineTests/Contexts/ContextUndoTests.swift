import BatchObjects
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// Runs by objects that are undone.
@Suite struct ContextUndoTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(60, in: directory)
  }

  private var checkpoint: FilePath { FilePath(directory.file("numbers.batch")) }

  private func make(_ statements: String...) throws {
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
  }

  private func container() async throws -> ModelContainer {
    try await ModelContainer(configurations: ModelConfiguration(path: path))
  }

  private func run(
    _ container: ModelContainer,
    chunk: Int = 10,
    undo: Job.Undo? = .init(),
    _ body: @escaping ChunkBody
  ) -> BatchRun {
    var policy = RunPolicy(chunk: .init(size: chunk), workers: 2)
    policy.retry.limit = 0
    policy.checkpoint.path = checkpoint
    return BatchRun(
      container,
      named: "numbers",
      fetching: FetchRequest(entity: "numbers"),
      policy: policy,
      undo: undo,
      body
    )
  }

  /// Runs each statement in the first chunk, or in each.
  private func run(
    _ statements: String...,
    chunk: Int = 100
  ) async throws -> RunSummary {
    try await run(container(), chunk: chunk) { context, _ in
      for statement in statements { try context.executeOnSave(statement) }
    }.run()
  }

  private func undo(_ run: String? = nil, overwriting: Bool = false) async throws -> RunSummary {
    let report = try await UndoReport(
      undoingWork: ProgramWork(ofRunAt: checkpoint),
      run: run,
      overwriting: overwriting
    )
    // However small chunks are, a chunk of the run is undone as a whole.
    var options = BatchRun.Options()
    options.chunkSize = 1
    let undo = try BatchRun(
      undoingRunAt: checkpoint,
      run: run,
      overwriting: overwriting,
      options: options
    )
    let summary = try await undo.run()
    // What constraints refuse a plan does not foresee.
    if try await failures().allSatisfy({ $0.code == "changedSince" }) {
      #expect(report.outcomes == summary.outcomes)
    }
    return summary
  }

  private func failures() async throws -> [IdentifierSelection.Reason] {
    let records = try FilePath(directory.file("numbers.undo")).records()
    return try await records.identifiers(.failed, .all, ofRun: nil).reasons()
  }

  // MARK: Any tables

  private static let schema = [
    """
    CREATE TABLE people (id INTEGER PRIMARY KEY, mail TEXT UNIQUE ON CONFLICT REPLACE, n INTEGER,
      price REAL, twice AS (n * 2) STORED)
    """,
    "CREATE TABLE pets (name TEXT, owner INTEGER REFERENCES people ON DELETE CASCADE)",
    """
    CREATE TABLE places (a TEXT COLLATE NOCASE, b INTEGER, n INTEGER UNIQUE, rowid TEXT,
      PRIMARY KEY (a, b)) WITHOUT ROWID
    """,
    "CREATE TABLE named (name TEXT PRIMARY KEY, data)",
    "CREATE TABLE audit (what, id, at DEFAULT 7)",
    """
    CREATE TRIGGER people_changed AFTER UPDATE ON people BEGIN
      INSERT INTO audit (what, id) VALUES ('update', OLD.id); END
    """,
    "CREATE TRIGGER people_gone AFTER DELETE ON people BEGIN DELETE FROM audit WHERE id = OLD.id; END",
    """
    CREATE TRIGGER pets_come AFTER INSERT ON pets BEGIN
      UPDATE people SET n = n + 1 WHERE id = NEW.owner;
      UPDATE pets SET name = NEW.name || '!' WHERE rowid = NEW.rowid; END
    """,
    "CREATE TRIGGER pets_gone BEFORE DELETE ON pets BEGIN UPDATE people SET n = n - 1; END",
    """
    INSERT INTO people (id, mail, n, price) SELECT id, 'mail' || id, id % 7, id * 1.25 FROM numbers
    """,
    "INSERT INTO places SELECT 'Ä' || (id % 5), id, id, x'00ff' FROM numbers",
    "INSERT INTO named SELECT CASE WHEN id % 9 THEN 'name' || id END, id / 3.0 FROM numbers",
    "INSERT INTO pets SELECT 'pet' || id, id FROM numbers",
    // Rows that are shorter than their table.
    "ALTER TABLE people ADD COLUMN later TEXT NOT NULL DEFAULT 'later'",
  ]

  private static let dumps = [
    "SELECT * FROM people ORDER BY id", "SELECT rowid, * FROM pets ORDER BY 1",
    "SELECT * FROM places ORDER BY a, b", "SELECT rowid, * FROM named ORDER BY 1",
    "SELECT rowid, * FROM audit ORDER BY 1", "SELECT * FROM numbers ORDER BY id",
  ]

  private func dump() throws -> [[[SQLValue]]] {
    try Self.dumps.map { try TestDatabase.rows(path, $0) }
  }

  /// A statement that changes something, now and then of many rows.
  private static func statement(_ generator: inout SeededGenerator) -> String {
    let id = Int.random(in: 1...75, using: &generator)
    let other = Int.random(in: 1...75, using: &generator)
    return [
      "UPDATE people SET n = n + 1, price = price * 1.5 WHERE id % 9 = \(id % 9)",
      "UPDATE people SET mail = 'mail\(other)' WHERE id = \(id)",
      "INSERT OR REPLACE INTO people (id, mail, n) VALUES (\(id), 'mail\(other)', \(other))",
      "INSERT INTO people (mail, n) VALUES ('mail\(id)', 5)",
      "DELETE FROM people WHERE id = \(id)",
      "UPDATE OR REPLACE people SET later = id, mail = mail || 'x' WHERE id > \(id)",
      "INSERT INTO pets SELECT 'new\(id)', id FROM people WHERE id = \(other)",
      "DELETE FROM pets WHERE name LIKE '%\(id % 10)'",
      "UPDATE OR REPLACE pets SET rowid = rowid + 1000 WHERE rowid = \(id)",
      "UPDATE OR REPLACE places SET n = n + 1 WHERE n > \(id)",
      "UPDATE OR IGNORE places SET a = 'X', b = \(other) WHERE b = \(id)",
      "REPLACE INTO places (a, b, n) VALUES ('ä\(id % 5)', \(id), \(other))",
      "REPLACE INTO named VALUES ('name\(id)', x'\(String(format: "%02x", other))')",
      "INSERT INTO named VALUES ('name\(id)', 1) ON CONFLICT (name) DO UPDATE SET data = NULL",
      "DELETE FROM named WHERE name IS NULL OR name > 'name\(id)'",
      "DELETE FROM audit WHERE \(id) < 3", "DELETE FROM places WHERE \(id) = 1",
      "UPDATE numbers SET n = n + \(id) WHERE id <= \(other)",
      "WITH s AS (SELECT max(n) AS m FROM places) UPDATE OR REPLACE places SET n = s.m + 1 + b FROM s WHERE b < \(id)",
    ].randomElement(using: &generator) ?? ""
  }

  @Test(arguments: 0..<12)
  func `the undo of a run restores all its changes and no later change of others`(
    round: Int
  ) async throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let connection = try Connection(path: path)
    for statement in Self.schema { try connection.execute(statement) }
    let before = try dump()
    let container = try await container()
    let chunk = Int.random(in: 3...30, using: &generator)
    let stops = Lock(Int.random(in: 0...3, using: &generator))
    var last: String?
    // Stopped a few times, and resumed.
    for _ in 0..<10 {
      let holder = Lock<BatchRun?>(nil)
      let run = run(container, chunk: chunk) { context, identifiers in
        guard case .integer(let first)? = identifiers.first?.key else { return }
        var generator = SeededGenerator(seed: seed &+ UInt64(first))
        for _ in 0..<Int.random(in: 0...4, using: &generator) {
          try context.executeOnSave(Self.statement(&generator))
        }
        for number in try context.fetch(identifiers, as: ManagedObject.self, skippingMissing: true)
        {
          if Bool.random(using: &generator) { number["n"] = .integer(first) }
        }
        let left = stops.withLock { stops in
          stops -= 1
          return stops
        }
        if left >= 0 { holder.withLock { $0?.stop() } }
      }
      holder.withLock { $0 = run }
      let summary = try await run.run()
      last = summary.run
      #expect(summary.state != .failed, "\(String(describing: summary.failure)), seed \(seed)")
      if summary.state == .completed { break }
    }
    let after = try dump()
    #expect(try TestDatabase.texts(path, "PRAGMA foreign_key_check") == [], "seed \(seed)")

    if round % 2 == 0 {
      let summary = try await undo()
      #expect(summary.state == .completed, "\(String(describing: summary.failure)), seed \(seed)")
      let restored = try dump()
      for (index, rows) in restored.enumerated() {
        #expect(rows == before[index], "\(Self.dumps[index]), seed \(seed)")
      }
      let again = try await undo(last)
      #expect(again.outcomes.total == again.outcomes.unchanged, "\(again.outcomes), seed \(seed)")
      #expect(try dump() == before, "seed \(seed)")
      return
    }
    // Somebody else changes rows, and so do the triggers that fire.
    for _ in 0..<3 {
      try connection.execute("PRAGMA foreign_keys = ON")
      try? connection.execute(
        "UPDATE people SET n = 1000 WHERE id = \(Int.random(in: 1...75, using: &generator))"
      )
      try connection.execute(
        "UPDATE places SET rowid = 'mine' WHERE b = \(Int.random(in: 1...75, using: &generator))"
      )
      try connection.execute(
        "DELETE FROM named WHERE rowid = \(Int.random(in: 1...75, using: &generator))"
      )
    }
    let others = try dump()
    let summary = try await undo()
    #expect(
      summary.state == .completed || summary.state == .completedWithFailures,
      "\(String(describing: summary.failure)), seed \(seed)"
    )
    #expect(try TestDatabase.texts(path, "PRAGMA foreign_key_check") == [], "seed \(seed)")
    #expect(try TestDatabase.texts(path, "PRAGMA integrity_check") == ["ok"], "seed \(seed)")
    let failed = Set(try await failures().map(\.key))
    for (table, rows) in try dump().enumerated() {
      let now = Self.byKey(rows, of: table)
      let was = Self.byKey(before[table], of: table)
      let left = Self.byKey(others[table], of: table)
      let run = Self.byKey(after[table], of: table)
      for key in Set(now.keys).union(was.keys) {
        if left[key] == run[key], !failed.contains(key) {
          #expect(now[key] == was[key], "\(key), seed \(seed)")
        } else if let row = now[key], !failed.contains(key) {
          // A row changed by somebody else: each value is theirs, or as before.
          for (column, value) in row.enumerated() {
            let isKnown = value == left[key]?[column] || value == was[key]?[column]
            #expect(isKnown, "\(key): \(row), seed \(seed)")
          }
        }
      }
    }
  }

  /// The rows of a table by their keys, as the undo names them.
  private static func byKey(_ rows: [[SQLValue]], of table: Int) -> [String: [SQLValue]] {
    let (name, count) = (dumps[table].split(separator: " "), table == 2 ? 2 : 1)
    let from = name.firstIndex(of: "FROM").map { name[$0 + 1] } ?? ""
    return Dictionary(
      uniqueKeysWithValues: rows.map { row in
        let components = row.prefix(count).map { value -> KeyComponent in
          switch value {
          case .integer(let value): .integer(value)
          case .text(let text): .text(text)
          default: .null
          }
        }
        let key = PrimaryKey.encoded(EncodedKey([.text(String(from))] + components))
        return (key.description, row)
      }
    )
  }

  // MARK: Rows in each other's way

  @Test func `an undo restores rows that have exchanged unique values or deleted each other`()
    async throws
  {
    try make(
      "CREATE TABLE seats (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE, who TEXT)",
      "INSERT INTO seats VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
      "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree ON DELETE CASCADE)",
      "INSERT INTO tree VALUES (5, NULL), (4, 5), (9, 4), (1, 9)"
    )
    let dump = {
      try TestDatabase.rows(path, "SELECT * FROM seats UNION ALL SELECT id, parent, 1 FROM tree")
    }
    let before = try dump()
    let summary = try await run(
      "UPDATE seats SET place = -place",
      "UPDATE seats SET place = CASE place WHEN -1 THEN 2 WHEN -2 THEN 3 ELSE 1 END",
      "DELETE FROM tree WHERE id = 5",
      "INSERT INTO tree VALUES (7, NULL), (6, 7)"
    )
    #expect(summary.state == .completed, "\(String(describing: summary.failure))")
    #expect(try dump() != before)
    let undone = try await undo()
    #expect(undone.outcomes.succeeded == 9 && undone.outcomes.failed == 0)
    #expect(try dump() == before)
  }

  @Test func `an undo leaves a row as it is if restoring it would violate a foreign key`()
    async throws
  {
    try make(
      """
      CREATE TABLE orders (id INTEGER PRIMARY KEY, n);
      """,
      "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders ON DELETE CASCADE)",
      "INSERT INTO orders VALUES (1, 1), (2, 2)",
      "INSERT INTO items VALUES (11, 1), (21, 2)"
    )
    let summary = try await run(
      "INSERT INTO orders VALUES (3, 3), (4, 4)",
      "DELETE FROM items",
      "UPDATE orders SET n = n + 10 WHERE id < 3"
    )
    #expect(summary.state == .completed, "\(String(describing: summary.failure))")
    try make("INSERT INTO items VALUES (31, 3)", "DELETE FROM orders WHERE id = 2")
    let undone = try await undo()
    // One order is gone, one has somebody else's item; an item has lost its order.
    #expect(undone.outcomes.succeeded == 3 && undone.outcomes.vanished == 1)
    #expect(undone.outcomes.failed == 2)
    #expect(try TestDatabase.texts(path, "SELECT id || ' ' || n FROM orders") == ["1 1", "3 3"])
    #expect(try TestDatabase.texts(path, "SELECT id FROM items") == ["11", "31"])
    let failures = try await failures()
    #expect(Set(failures.map(\.key)) == ["=orders,3", "=items,21"])
    #expect(failures.allSatisfy { $0.message.contains("FOREIGN KEY constraint failed") })
  }

  @Test func `an undo reverts a row that several chunks changed step by step`() async throws {
    try make("CREATE TABLE totals (id INTEGER PRIMARY KEY, n)", "INSERT INTO totals VALUES (1, 0)")
    let first = try await run("UPDATE totals SET n = n + 1", chunk: 7).run
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["9"])
    let undone = try await undo()
    #expect(undone.outcomes.succeeded == 9)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["0"])
    await #expect { try await undo() } throws: { "\($0)".contains("was undone by run") }
    let again = try await undo(first)
    #expect(again.outcomes.unchanged == 9 && again.state == .completed)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["0"])
    // A value that the run did not leave is somebody else's, unless some chunk found it.
    try make("UPDATE totals SET n = 5")
    let part = try await undo(first)
    #expect(part.outcomes.unchanged == 4 && part.outcomes.succeeded == 5)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["0"])
    // Run once more, it is the last run that is undone.
    _ = try await run("UPDATE totals SET n = n + 1", chunk: 7)
    #expect(try await undo().outcomes.succeeded == 9)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["0"])

    // Somebody else's value stays, unless overwritten.
    _ = try await run("UPDATE totals SET n = n + 1", chunk: 30)
    try make("UPDATE totals SET n = 40")
    let kept = try await undo()
    #expect(kept.outcomes.failed == 2 && kept.state == .completedWithFailures)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["40"])
    let overwritten = try await undo(overwriting: true)
    #expect(overwritten.outcomes.failed == 0)
    #expect(try TestDatabase.texts(path, "SELECT n FROM totals") == ["0"])
  }

  // MARK: Refusals

  @Test func `a run that cannot record its undo is refused with a reason`() async throws {
    let unkept = BatchRun(
      try await container(),
      named: "numbers",
      fetching: FetchRequest(entity: "numbers"),
      undo: .init()
    ) { _, _ in }
    await #expect { try await unkept.run() } throws: { "\($0)".contains("checkpoint.path") }

    try make("CREATE VIRTUAL TABLE words USING fts5 (text)")
    let failed = try await run("INSERT INTO words VALUES ('a')", "UPDATE numbers SET n = 5")
    #expect(failed.failure?.code == .unrecordable, "\(String(describing: failed.failure))")
    #expect(failed.failure?.message.contains("words_content") == true)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 5") == ["0"])
  }

  @Test func `a run without undo records cannot be undone, and an undone run does not resume`()
    async throws
  {
    _ = try await run(container(), undo: nil) { _, _ in }.run()
    await #expect { try await BatchRun(undoingRunAt: checkpoint).run() } throws: { error in
      guard let error = error as? BatchError else { return false }
      return error.code == .noUndo && error.remedy?.contains("undo: .init()") == true
    }
    let list = try await container().stores[0].fetchIdentifiers(FetchRequest(entity: "numbers"))
    let failing = run(try await container()) { context, identifiers in
      for number in try context.fetch(identifiers, as: ManagedObject.self) {
        if number["id"] == .integer(31) { throw CocoaError(.fileReadUnknown) }
        number["n"] = .integer(9)
      }
    }
    #expect(try await failing.run().state == .failed)
    await #expect {
      try await BatchRun(
        undoingWork: ProgramWork(ofRunAt: checkpoint),
        run: nil,
        only: list,
        overwriting: false
      ).run()
    } throws: {
      "\($0)".contains("as a whole")
    }
    _ = try await undo()
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 9") == ["0"])
    await #expect { try await run(container()) { _, _ in }.run() } throws: {
      "\($0)".contains("was undone")
    }
  }
}
