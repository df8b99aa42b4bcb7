import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct SchemaTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func store(_ statements: [String]) async throws -> Store {
    let path = try TestDatabase.make(in: directory)
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
    return try await Store(path: path)
  }

  /// A table or view `e` and the key that it is expected to have.
  struct Case: Sendable, CustomTestStringConvertible {
    let statements: [String]
    let key: [String]?
    let origin: EntityKey.Origin?
    var testDescription: String { statements.last ?? "" }

    init(_ statements: String..., key: [String]? = nil, _ origin: EntityKey.Origin? = nil) {
      self.statements = statements
      self.key = key
      self.origin = origin
    }
  }

  static let tables: [Case] = [
    Case("CREATE TABLE e (a, id INTEGER PRIMARY KEY)", key: ["id"], .rowID),
    Case("CREATE TABLE e (a, id integer primary key autoincrement)", key: ["id"], .rowID),
    Case("CREATE TABLE e (a, id INTEGER, PRIMARY KEY (id))", key: ["id"], .rowID),
    Case("CREATE TABLE e (id INTEGER PRIMARY KEY ASC)", key: ["id"], .rowID),
    Case("CREATE TABLE e (id INTEGER PRIMARY KEY DESC)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id INT PRIMARY KEY)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id BIGINT PRIMARY KEY)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id INTEGER PRIMARY KEY) WITHOUT ROWID", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id INTEGER PRIMARY KEY, t TEXT) STRICT", key: ["id"], .rowID),
    Case("CREATE TABLE e (id TEXT PRIMARY KEY)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id BLOB PRIMARY KEY, x)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (id UUID PRIMARY KEY)", key: ["id"], .primaryKey),
    Case("CREATE TABLE e (b, a, c, PRIMARY KEY (c, b))", key: ["c", "b"], .primaryKey),
    Case(
      "CREATE TABLE e (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
      key: ["a", "b"],
      .primaryKey
    ),
    Case(
      "CREATE TABLE e (a, b, PRIMARY KEY (b DESC, a)) WITHOUT ROWID",
      key: ["b", "a"],
      .primaryKey
    ),
    Case("CREATE TABLE e (a, b TEXT NOT NULL UNIQUE)", key: ["b"], .uniqueIndex),
    Case(
      "CREATE TABLE e (a NOT NULL, b NOT NULL)",
      "CREATE UNIQUE INDEX i ON e (b, a)",
      key: ["b", "a"],
      .uniqueIndex
    ),
    Case("CREATE TABLE e (a, b)"),
    Case("CREATE TABLE e (a UNIQUE, b)"),
    Case("CREATE TABLE e (a NOT NULL)", "CREATE UNIQUE INDEX i ON e (a) WHERE a > 0"),
    Case("CREATE TABLE e (a NOT NULL)", "CREATE UNIQUE INDEX i ON e (a + 1)"),
    Case("CREATE TABLE e (a NOT NULL)", "CREATE INDEX i ON e (a)"),
    Case("CREATE TABLE e (rowid TEXT, a)"),
  ]

  static let views: [Case] = [
    Case(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "CREATE VIEW e AS SELECT n, id AS number FROM t WHERE n > 1",
      key: ["number"],
      .viewOrigin
    ),
    Case(
      "CREATE TABLE t (a, b, n, PRIMARY KEY (a, b))",
      "CREATE VIEW e AS SELECT b, n, a FROM t",
      key: ["b", "a"],
      .viewOrigin
    ),
    Case(
      "CREATE TABLE t (a, b, n, PRIMARY KEY (a, b))",
      "CREATE VIEW e AS SELECT b, n FROM t",
      key: ["b", "n"],
      .wholeRow
    ),
    Case(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, u)",
      "CREATE TABLE s (id INTEGER PRIMARY KEY, n)",
      "CREATE VIEW e (t_id, n, s_id) AS SELECT t.id, n, s.id FROM t JOIN s ON s.id = u",
      key: ["t_id", "s_id"],
      .viewOrigin
    ),
    Case(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "CREATE VIEW e AS SELECT n, count(*) AS c FROM t GROUP BY n",
      key: ["n", "c"],
      .wholeRow
    ),
    Case("CREATE VIEW e AS VALUES (1, 2)", key: ["column1", "column2"], .wholeRow),
  ]

  @Test(arguments: tables + views)
  func `the key of a table or view is found`(example: Case) async throws {
    let entity = try await store(example.statements).schema.entity(named: "e")
    #expect(entity.key?.columns == example.key)
    #expect(entity.key?.origin == example.origin)
  }

  @Test func `the error of a table without a key says what to do`() async throws {
    let entity = try await store(["CREATE TABLE e (a)"]).schema.entity(named: "e")
    let error = try #require(#expect(throws: BatchError.self) { try entity.requireKey() })
    #expect(error.code == .unstableKey)
    #expect(
      error.message
        == "table \"e\" has no primary key, and its rowids cannot be kept: VACUUM may change them"
    )
    #expect(error.remedy?.contains("the request's key") == true)
  }

  @Test func `a virtual table has its module's key, and its shadow tables are hidden`() async throws
  {
    let store = try await store([
      "CREATE VIRTUAL TABLE notes USING fts5 (title, body)",
      "CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1, +label)",
      "INSERT INTO notes VALUES ('a', 'b'), ('c', 'd')",
      "INSERT INTO boxes VALUES (9, 1, 2, 'x')",
    ])
    #expect(store.schema.entities.map(\.name) == ["boxes", "notes"])
    let notes = try store.schema.entity(named: "notes")
    #expect(notes.kind == .virtualTable)
    #expect(notes.key?.columns == ["rowid"])
    #expect(notes.attributes.map(\.name) == ["title", "body"])
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "notes", where: "body = 'd'"))
    #expect(try list.integers(in: 0..<1) == [2])
    let boxes = try await store.fetchIdentifiers(FetchRequest(entity: "boxes"))
    #expect(boxes.map { $0.description }.count == 1)
    #expect(try boxes.key(at: 0).components == [.integer(9)])
  }

  @Test func `a broken view or a missing module does not prevent reading the other tables`()
    async throws
  {
    let store = try await store([
      "CREATE TABLE good (id INTEGER PRIMARY KEY)",
      "CREATE TABLE gone (id INTEGER PRIMARY KEY, n)",
      "CREATE VIEW half AS SELECT id, n FROM gone",
      "CREATE VIEW loose AS SELECT id FROM good",
      "CREATE VIEW nested AS SELECT id FROM half",
      "PRAGMA legacy_alter_table = on",
      "DROP TABLE gone",
      "PRAGMA writable_schema = on",
      """
      INSERT INTO sqlite_schema VALUES
      ('table', 'far', 'far', 0, 'CREATE VIRTUAL TABLE far USING nowhere (a)')
      """,
    ])
    #expect(store.schema.entities.map(\.name) == ["far", "good", "half", "loose", "nested"])
    #expect(try store.schema.entity(named: "loose").key?.columns == ["id"])
    for name in ["far", "half", "nested"] {
      let error = await #expect(throws: BatchError.self) {
        try await store.fetchIdentifiers(FetchRequest(entity: name))
      }
      #expect(error?.code == .invalidSQL)
      #expect(error?.message.contains("no such") == true, "\(error?.message ?? "")")
    }
    #expect(try await store.fetchIdentifiers(FetchRequest(entity: "good")).isEmpty)
  }

  @Test func `an entity's attributes agree with SQLite's columns`() async throws {
    let entity = try await store([
      """
      CREATE TABLE e (
        id INTEGER PRIMARY KEY, a TEXT NOT NULL, b REAL NOT NULL DEFAULT 1.5, c,
        v AS (a || 'x'), s TEXT NOT NULL AS (a) STORED)
      """
    ]).schema.entity(named: "E")
    #expect(entity.attributes.map(\.name) == ["id", "a", "b", "c", "v", "s"])
    #expect(entity.attributes.map(\.type) == ["INTEGER", "TEXT", "REAL", "", "", "TEXT"])
    #expect(entity.attributes.map(\.isOptional) == [true, false, false, true, true, false])
    #expect(entity.attributes.map(\.isGenerated) == [false, false, false, false, true, true])
    #expect(entity.attributes.map(\.hasDefault) == [true, false, true, true, true, false])
  }

  @Test func `the tables of this library and of SQLite are hidden`() async throws {
    let store = try await store([
      "CREATE TABLE _batch_run (id INTEGER PRIMARY KEY)",
      "CREATE TABLE _Batch_x (id INTEGER PRIMARY KEY)",
      "CREATE TABLE \"xbatch_y\" (id INTEGER PRIMARY KEY AUTOINCREMENT)",
      "CREATE TABLE _batcher (id INTEGER PRIMARY KEY)",
      "ANALYZE",
    ])
    #expect(store.schema.entities.map(\.name) == ["_batcher", "xbatch_y"])
  }

  @Test func `the error of an unknown name suggests the nearest name`() async throws {
    let store = try await store(["CREATE TABLE orders (id INTEGER PRIMARY KEY, price)"])
    let entity = #expect(throws: BatchError.self) { try store.schema.entity(named: "ordres") }
    #expect(entity?.code == .unknownEntity)
    #expect(entity?.remedy?.contains("orders") == true)
    let attribute = #expect(throws: BatchError.self) {
      try store.schema.entity(named: "ORDERS").requireAttribute(named: "pirce")
    }
    #expect(attribute?.code == .unknownAttribute)
    #expect(attribute?.remedy?.contains("price") == true)
  }

  @Test(arguments: [
    "plain", "a b", "o'clock", "say \"so\"", "order", "select", "ČŠŽ 表", "semi;colon", "a--b",
    "[x]", "`x`", "100%", "x\ny", " ", "e\u{301}", "@first", ":p", "(", "_",
  ])
  func `a table, a key and a column may have any name`(name: String) async throws {
    func quoted(_ suffix: String) -> String {
      "\"\((name + suffix).replacing("\"", with: "\"\""))\""
    }
    let store = try await store([
      "CREATE TABLE \(quoted("")) (\(quoted("k")) TEXT PRIMARY KEY, \(quoted("c")) INTEGER)",
      "INSERT INTO \(quoted("")) VALUES ('x', 1), ('y', 2), ('z', 3)",
    ])
    let entity = try #require(store.schema.entities.first)
    #expect(entity.name == name)
    #expect(entity.key?.columns == [name + "k"])
    let list = try await store.fetchIdentifiers(
      FetchRequest(
        entity: name,
        where: "\(quoted("c")) < 3",
        orderBy: [.init(name + "c", descending: true)]
      )
    )
    #expect(try (0..<2).map { try list.key(at: $0).components } == [[.text("y")], [.text("x")]])
    let lane = try store.makeWriterLane(WriterConfiguration())
    let change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: .update([(name + "c", SQLExpression("\(quoted("c")) + 10"))]),
      predicate: SQLExpression("\(quoted("c")) < 3"),
      recheck: .skip,
      parameters: [:]
    )
    let keys = try ChunkKeys(list.packed, 0..<2, key: change.key)
    let outcomes = try await lane.commit(change, to: keys, at: 0..<2).outcomes
    #expect(outcomes.succeeded == 2)
    #expect(
      try TestDatabase.rows(store.path, "SELECT \(quoted("c")) FROM \(quoted("")) ORDER BY 1")
        == [[.integer(3)], [.integer(11)], [.integer(12)]]
    )
  }
}
