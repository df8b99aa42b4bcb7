import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct BulkChangeTests {
  let directory: TemporaryDirectory

  /// The run that was begun last.
  private static func lastRun(of store: Store) throws -> String? {
    try TestDatabase.texts(store.path, "SELECT run FROM _batch_run ORDER BY started_at").last
  }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func store(_ statements: String...) async throws -> Store {
    let path = try TestDatabase.make(in: directory)
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
    return try await Store(path: path)
  }

  /// Applies a change to all rows of `t` in one chunk.
  private func apply(
    _ action: BulkChange.Action,
    where predicate: String? = nil,
    key: [String]? = nil,
    recheck: Recheck = .skip,
    in store: Store,
    meanwhile: String? = nil
  ) async throws -> Outcomes {
    let list = try await store.fetchIdentifiers(
      FetchRequest(entity: "t", predicate: predicate.map { SQLExpression($0) }, key: key)
    )
    if let meanwhile { try Connection(path: store.path).execute(meanwhile) }
    let connection = try Connection(path: store.path)
    let query = try IdentifierQuery(
      FetchRequest(entity: "t", predicate: nil, key: key),
      schema: store.schema,
      connection: connection
    )
    let change = BulkChange(
      entity: query.entity,
      key: query.key,
      action: action,
      predicate: predicate.map { SQLExpression($0) },
      recheck: recheck,
      parameters: [:]
    )
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    let begun = try Self.lastRun(of: store).map { "\($0)+" } ?? "run"
    try await lane.begin(
      RunDescription(identifier: begun, job: "job", total: list.count, startedAt: begun)
    )
    return try await lane.commit(
      change,
      to: ChunkKeys(list.packed, 0..<list.count, key: change.key),
      at: 0..<list.count
    ).outcomes
  }

  private let increment = BulkChange.Action.update([("n", SQLExpression("n + 1"))])

  @Test func `rows inserted between selected ones are left unchanged`() async throws {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 0), (2, 0), (4, 0), (9223372036854775806, 0),"
        + " (9223372036854775807, 0), (-9223372036854775808, 0), (-1, 0)"
    )
    let outcomes = try await apply(
      increment,
      in: store,
      meanwhile: "INSERT INTO t VALUES (3, 0), (5, 0), (0, 0), (-9223372036854775807, 0)"
    )
    #expect(outcomes.succeeded == 7)
    #expect(outcomes.total == 7)
    #expect(
      try Connection(path: store.path).texts("SELECT id FROM t WHERE n = 0 ORDER BY id")
        == ["-9223372036854775807", "0", "3", "5"]
    )
  }

  @Test func `keys that differ only in the index's collation are two rows`() async throws {
    let store = try await store(
      "CREATE TABLE t (id TEXT COLLATE NOCASE NOT NULL, n, PRIMARY KEY (id COLLATE BINARY))",
      "INSERT INTO t VALUES ('a', 0), ('A', 0), ('b', 0)"
    )
    #expect(try await apply(increment, in: store).succeeded == 3)
    #expect(try Connection(path: store.path).texts("SELECT n FROM t") == ["1", "1", "1"])
  }

  @Test(arguments: [
    "CREATE TRIGGER g AFTER UPDATE ON t BEGIN DELETE FROM t WHERE id = new.id; END",
    "CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO t VALUES (new.id + 100, 5); END",
  ])
  func `a trigger that interferes with an update leaves consistent counts`(trigger: String)
    async throws
  {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)",
      trigger
    )
    let outcomes = try await apply(
      increment,
      in: store,
      meanwhile: "DELETE FROM t WHERE id = 2"
    )
    #expect(outcomes.total == 3)
    #expect(min(outcomes.succeeded, outcomes.vanished, outcomes.noLongerMatching) >= 0)
    #expect(try await store.doneRanges(ofRun: "run")?.outcomes == outcomes)
  }

  @Test(arguments: [
    "CREATE TRIGGER g AFTER DELETE ON t BEGIN INSERT INTO t VALUES (old.id, 9); END",
    "CREATE TRIGGER g AFTER DELETE ON t BEGIN DELETE FROM t WHERE id > old.id; END",
  ])
  func `a trigger that interferes with a delete leaves consistent counts`(trigger: String)
    async throws
  {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 0), (2, 0), (5, 0)",
      trigger
    )
    let outcomes = try await apply(
      .delete(archive: nil),
      in: store,
      meanwhile: "DELETE FROM t WHERE id = 2"
    )
    #expect(outcomes.total == 3)
    #expect(min(outcomes.succeeded, outcomes.vanished, outcomes.noLongerMatching) >= 0)
  }

  @Test(arguments: [
    ("CHECK", "CREATE TABLE t (id INTEGER PRIMARY KEY, n CHECK (n <> 5))"),
    ("UNIQUE", "CREATE TABLE t (id INTEGER PRIMARY KEY, n UNIQUE)"),
  ])
  func `a constraint violation rolls back the whole chunk with its ledger entry`(
    name: String,
    table: String
  ) async throws {
    let store = try await store(table, "INSERT INTO t VALUES (1, 1), (2, 2), (4, 4), (9, 6)")
    let error = await #expect(throws: BatchError.self) {
      try await apply(
        .update([("n", SQLExpression("CASE n WHEN 4 THEN 5 WHEN 2 THEN 5 ELSE -n END"))]),
        in: store
      )
    }
    #expect(error?.code == .constraint)
    #expect(error?.message.contains("\(name) constraint failed") == true)
    #expect(
      try Connection(path: store.path).texts("SELECT n FROM t ORDER BY id") == ["1", "2", "4", "6"]
    )
    #expect(try await store.doneRanges(ofRun: "run") == DoneRanges())
  }

  @Test func `recheck off changes rows that no longer match, and recheck fail refuses them`()
    async throws
  {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)"
    )
    let meanwhile = "UPDATE t SET n = 50 WHERE id = 2"
    let error = await #expect(throws: BatchError.self) {
      try await apply(increment, where: "n < 9", recheck: .fail, in: store, meanwhile: meanwhile)
    }
    #expect(error?.code == .noLongerMatching)
    let texts = { try Connection(path: store.path).texts("SELECT n FROM t ORDER BY id") }
    #expect(try texts() == ["0", "50", "0"])
    try Connection(path: store.path).execute("UPDATE t SET n = 0; ")
    let off = try await apply(
      increment,
      where: "n < 9",
      recheck: .off,
      in: store,
      meanwhile: meanwhile + " RETURNING id"
    )
    #expect(off.succeeded == 3)
    #expect(try texts() == ["1", "51", "1"])
  }

  @Test func `a key that now matches two rows fails the chunk`() async throws {
    let store = try await store(
      "CREATE TABLE t (name, n)",
      "INSERT INTO t VALUES ('a', 0), ('b', 0)"
    )
    let error = await #expect(throws: BatchError.self) {
      try await apply(
        increment,
        key: ["name"],
        in: store,
        meanwhile: "INSERT INTO t VALUES ('a', 7)"
      )
    }
    #expect(error?.code == .unstableKey)
    #expect(try Connection(path: store.path).texts("SELECT n FROM t") == ["0", "0", "7"])
  }

  @Test func `an archive must have every stored column and require no other`() async throws {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n, \"a b\", g AS (n) STORED)",
      "CREATE TABLE same (\"A B\", N, ID)",
      "CREATE TABLE more (id, n, \"a b\", x NOT NULL DEFAULT 5, k INTEGER PRIMARY KEY)",
      "CREATE TABLE fewer (id, n)",
      "CREATE TABLE generated (id, n, \"a b\" AS (n))",
      "CREATE TABLE needy (id, n, \"a b\", x NOT NULL)",
      "CREATE TABLE greedy (id, n, \"a b\", g NOT NULL)",
      "CREATE VIEW v AS SELECT * FROM t"
    )
    let entity = try store.schema.entity(named: "t")
    for name in ["same", "more"] {
      _ = try BulkChange.Archive(store.schema.entity(named: name), for: entity)
    }
    for (name, column) in [
      ("fewer", "a b"), ("generated", "a b"), ("needy", "x"), ("greedy", "g"), ("v", "v"),
      ("t", "t"),
    ] {
      let error = #expect(throws: BatchError.self) {
        try BulkChange.Archive(store.schema.entity(named: name), for: entity)
      }
      #expect(error?.message.contains(column) == true)
    }
  }

  @Test func `the error names the trigger that keeps a row from being archived and deleted`()
    async throws
  {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "CREATE TABLE kept (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
      "CREATE TRIGGER d BEFORE DELETE ON t WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END",
      "CREATE TRIGGER other BEFORE INSERT ON t BEGIN SELECT RAISE(IGNORE); END"
    )
    let entity = try store.schema.entity(named: "t")
    let archive = try BulkChange.Archive(store.schema.entity(named: "kept"), for: entity)
    let error = await #expect(throws: BatchError.self) {
      try await apply(.delete(archive: archive), in: store)
    }
    #expect(error?.code == .constraint)
    #expect(error?.message.contains("the trigger \"d\" keeps \"t\" as it is") == true)
    #expect(try Connection(path: store.path).texts("SELECT n FROM t") == ["1", "2", "3"])
    #expect(try Connection(path: store.path).texts("SELECT n FROM kept").isEmpty)
  }

  @Test func `a row that the archive does not take is not deleted`() async throws {
    let store = try await store(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
      "CREATE TABLE taken (id INTEGER PRIMARY KEY, n UNIQUE ON CONFLICT IGNORE)",
      "INSERT INTO taken VALUES (7, 2)",
      "CREATE TABLE refused (id INTEGER PRIMARY KEY, n UNIQUE)",
      "INSERT INTO refused VALUES (7, 2)"
    )
    let entity = try store.schema.entity(named: "t")
    for name in ["taken", "refused"] {
      let archive = try BulkChange.Archive(store.schema.entity(named: name), for: entity)
      let error = await #expect(throws: BatchError.self) {
        try await apply(.delete(archive: archive), in: store)
      }
      #expect(error?.code == .constraint)
      #expect(error?.message.contains("_batch") == false)
      let connection = try Connection(path: store.path)
      #expect(try connection.texts("SELECT id FROM t") == ["1", "2", "3"])
      #expect(try connection.texts("SELECT id FROM \(name)") == ["7"])
    }
  }
}
