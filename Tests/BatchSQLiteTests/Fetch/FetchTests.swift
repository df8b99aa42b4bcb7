import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct FetchTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func keys(_ list: IdentifierList) throws -> [[SQLValue]] {
    try list.indices.map { try list.key(at: $0).components.map { SQLValue($0) } }
  }

  private func error(_ store: Store, _ request: FetchRequest) async -> BatchError? {
    await #expect(throws: BatchError.self) { try await store.fetchIdentifiers(request) }
  }

  @Test(arguments: KeyedTable.allCases, 0..<4 as Range<UInt64>)
  func `a list has the keys of its SELECT in the requested order`(
    table: KeyedTable,
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let path = try table.make(in: directory)
    let connection = try Connection(path: path)
    for _ in 0..<Int.random(in: 0...120, using: &random) {
      let (sql, values) = table.insertion(using: &random)
      try connection.run(sql, values)
    }
    let store = try await Store(path: path)
    let names = table.columns.map { "\"\($0)\"" }.joined(separator: ", ")
    for _ in 0..<12 {
      let condition = KeyedTable.condition(using: &random)
      let order = [[], ["n"], ["-r", "s"], ["-s", "n"]].randomElement(using: &random) ?? []
      let limit = [nil, 0, 1, 7, 1_000].randomElement(using: &random) ?? nil
      let request = FetchRequest(
        entity: "T",
        where: condition?.sql,
        orderBy: order.map {
          $0.hasPrefix("-") ? .init(String($0.dropFirst()), descending: true) : .init($0)
        },
        limit: limit,
        parameters: condition?.parameters ?? [:]
      )
      let list = try await store.fetchIdentifiers(request)
      let terms = order.map { $0.hasPrefix("-") ? "\($0.dropFirst()) DESC" : $0 } + [names]
      let statement = try connection.prepare(
        "SELECT \(names) FROM t WHERE (\(condition?.sql ?? "1")\n)"
          + " ORDER BY \(terms.joined(separator: ", ")) LIMIT \(limit ?? -1)"
      )
      for (name, value) in condition?.parameters ?? [:] {
        if let index = statement.parameterIndex(":" + name) { try statement.bind(value, at: index) }
      }
      var expected: [[SQLValue]] = []
      while try statement.step() {
        expected.append(table.columns.indices.map { statement.value(at: $0) })
      }
      #expect(try keys(list) == expected, "\(request)")
      #expect(try await store.fetchCount(request) == expected.count)
    }
  }

  @Test func `rows are fetched in key order, even within ties of another order`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (5, 1), (-3, 2), (9, 1), (0, NULL), (2, 2)"
    )
    let store = try await Store(path: path)
    func ids(_ order: FetchRequest.SortTerm...) async throws -> [Int64] {
      let list = try await store.fetchIdentifiers(FetchRequest(entity: "t", orderBy: order))
      return try list.integers(in: 0..<list.count)
    }
    #expect(try await ids() == [-3, 0, 2, 5, 9])
    #expect(try await ids(.init("n")) == [0, 5, 9, -3, 2])
    #expect(try await ids(.init("n", descending: true)) == [-3, 2, 5, 9, 0])
    #expect(try await ids(.init("n"), .init("id", descending: true)) == [0, 9, 5, 2, -3])
  }

  @Test func `a fetch uses an index that covers the request`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n, fat)",
      "CREATE INDEX by_n ON t (n)"
    )
    let connection = try Connection(path: path)
    let query = try IdentifierQuery(
      FetchRequest(entity: "t", where: "n = :n", parameters: ["n": .integer(1)]),
      schema: Schema(reading: connection),
      connection: connection
    )
    #expect(
      try query.queryPlan(in: connection).lines == ["SEARCH t USING COVERING INDEX by_n (n=?)"]
    )
  }

  @Test func `the error of a NULL in a primary key says what to do`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id TEXT PRIMARY KEY)",
      "INSERT INTO t VALUES ('a'), (NULL), (NULL)",
      "CREATE TABLE i (id INT PRIMARY KEY)",
      "INSERT INTO i VALUES (1), (NULL)"
    )
    let store = try await Store(path: path)
    for entity in ["t", "i"] {
      let error = await error(store, FetchRequest(entity: entity))
      #expect(error?.code == .unstableKey)
      #expect(error?.message.contains("NULL in its primary key column \"id\"") == true)
      #expect(error?.remedy == "leave such rows out with \"id\" IS NOT NULL")
      let list = try await store.fetchIdentifiers(
        FetchRequest(entity: entity, where: "\"id\" IS NOT NULL")
      )
      #expect(list.count == 1)
    }
  }

  @Test func `a key declared by a job must distinguish the rows`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (name, n)",
      "INSERT INTO t VALUES ('a', 1), ('b', 2), ('b', 3), ('c', 4)"
    )
    let store = try await Store(path: path)
    func request(_ condition: String?, _ key: [String]) -> FetchRequest {
      FetchRequest(entity: "t", predicate: condition.map { SQLExpression($0) }, key: key)
    }
    #expect(await error(store, request(nil, ["name"]))?.code == .unstableKey)
    // One b is selected, and the key would find both.
    #expect(await error(store, request("n <> 3", ["name"]))?.code == .unstableKey)
    #expect(try await store.fetchIdentifiers(request("name <> 'b'", ["name"])).count == 2)
    #expect(try await store.fetchIdentifiers(request(nil, ["name", "N"])).count == 4)
    #expect(await error(store, request(nil, ["nam"]))?.code == .unknownAttribute)
    #expect(await error(store, FetchRequest(entity: "t"))?.code == .unstableKey)
  }

  @Test func `views are fetched by the keys they expose`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, 5), (2, 5), (3, NULL)",
      "CREATE VIEW plain AS SELECT n, id FROM t",
      "CREATE VIEW grouped AS SELECT n, count(*) AS c FROM t GROUP BY n",
      "CREATE VIEW doubled AS SELECT id FROM t UNION ALL SELECT id FROM t"
    )
    let store = try await Store(path: path)
    let plain = try await store.fetchIdentifiers(FetchRequest(entity: "plain", where: "n = 5"))
    #expect(try keys(plain) == [[.integer(1)], [.integer(2)]])
    let grouped = try await store.fetchIdentifiers(FetchRequest(entity: "grouped"))
    #expect(try keys(grouped) == [[.null, .integer(1)], [.integer(5), .integer(2)]])
    #expect(await error(store, FetchRequest(entity: "doubled"))?.code == .unstableKey)
  }

  @Test func `the error of an invalid request names its place`() async throws {
    let store = try await Store(path: TestDatabase.makeNumbers(3, in: directory))
    var wrong = FetchRequest(entity: "number")
    #expect(await error(store, wrong)?.code == .unknownEntity)
    wrong = FetchRequest(entity: "numbers", orderBy: [.init("m")])
    #expect(await error(store, wrong)?.code == .unknownAttribute)
    wrong = FetchRequest(entity: "numbers", predicate: SQLExpression("n = :x", at: "here"))
    #expect(await error(store, wrong)?.code == .invalidSQL)
    #expect(await error(store, wrong)?.place == "here")
    for condition in ["count(*) > 1", "row_number() OVER () = 1"] {
      wrong = FetchRequest(entity: "numbers", where: condition)
      #expect(await error(store, wrong)?.code == .invalidSQL)
    }
  }

  @Test func `a fetch leaves no transaction open`() async throws {
    let path = try TestDatabase.makeNumbers(500, in: directory)
    let writer = try Connection(path: path, options: .init(busyTimeout: .zero))
    #expect(try writer.useWriteAheadLog())
    try writer.execute("UPDATE numbers SET n = 1")
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers", where: "n = 1"))
    // Truncating waits for all readers to be gone.
    #expect(
      try TestDatabase.rows(writer, "PRAGMA wal_checkpoint(truncate)")
        == [[.integer(0), .integer(0), .integer(0)]]
    )
    try writer.execute("DELETE FROM numbers")
    #expect(list.count == 500)
    #expect(try list.integers(in: 498..<500) == [499, 500])
  }

  @Test func `texts in UTF-16 and with invalid Unicode can be keys`() async throws {
    let path = try TestDatabase.make(in: directory, "PRAGMA encoding = 'UTF-16le'")
    let connection = try Connection(path: path)
    try connection.execute("PRAGMA encoding = 'UTF-16le'")
    try connection.execute("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER DEFAULT 0)")
    try connection.execute("INSERT INTO t (id) VALUES ('č'), ('🧵'), ('z'), ('')")
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "t"))
    #expect(Set(try keys(list)) == [[.text("č")], [.text("🧵")], [.text("z")], [.text("")]])
    #expect(try connection.value("PRAGMA encoding") == .text("UTF-16le"))
  }
}
