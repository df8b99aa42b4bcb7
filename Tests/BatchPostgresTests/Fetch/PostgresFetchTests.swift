#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct PostgresFetchTests {
  private let database: TestPostgres

  init() throws { database = try TestPostgres() }

  private func query(
    _ name: String,
    where condition: String? = nil,
    key: [String]? = nil,
    orderBy: [PostgresQuery.SortTerm] = [],
    limit: Int? = nil,
    parameters: [String: PostgresValue] = [:]
  ) throws -> PostgresQuery {
    let session = try database.session()
    let table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: name, in: session)
    }
    let path = try SearchPath(of: session)
    let parameters = PostgresParameters(parameters)
    let compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: parameters,
      path: path
    )
    return try PostgresQuery(
      table: table,
      key: table.requireKey(declared: key),
      where: condition.map { try compiler.condition(PostgresExpression($0)) },
      orderBy: orderBy,
      limit: limit,
      parameters: parameters,
      path: path
    )
  }

  private func fetch(
    _ query: PostgresQuery,
    readers: Int = 1,
    method: PostgresFetch.Method = .copy
  ) async throws -> IdentifierList {
    try await PostgresFetch(query, from: database.address, readers: readers, method: method)
      .run(store: "S").loaded()
  }

  private func keys(_ list: IdentifierList) throws -> [String] {
    try (0..<list.count).map { try list.key(at: $0).description }
  }

  // MARK: Keys

  @Test(arguments: [
    ("smallint", "g - 300"), ("int", "g * 7 - 900"), ("bigint", "g::bigint * 5000000000 - 1"),
    ("oid", "(4294967295 - g)::bigint::oid"), ("uuid", "md5(g::text)::uuid"),
    ("text", "chr(g + 33) || 'x'"), ("varchar(9)", "'Ä' || g"),
    ("text COLLATE \"en-x-icu\"", "chr(g + 33) || 'y'"),
    ("bytea", "decode(md5(g::text), 'hex')"), ("numeric", "g / 7.0 - 30"),
    ("numeric(9,3)", "g - 30"),
    ("float8", "g / 7.0::float8"), ("real", "(g / 7.0)::real"),
    ("date", "date '0044-03-15 BC' + g * 400"),
    ("timestamp", "timestamp '1999-12-31 23:59:59.999999' + g * interval '1.000001 second'"),
    ("timestamptz", "timestamptz '2024-03-31 00:00+00' + g * interval '7 minutes'"),
    ("time", "time '00:00' + g * interval '1.5 second'"),
    ("interval", "g * interval '1 day 1 second'"),
    ("inet", "('10.0.0.0'::inet + g)"), ("macaddr", "lpad(to_hex(g), 12, '0')::macaddr"),
    ("char(9)", "'k' || g"), ("bit(12)", "g::bit(12)"), ("positive", "g + 1"),
  ])
  func `fetched keys of every type find their rows again`(type: String, value: String) async throws
  {
    try database.run(
      """
      CREATE DOMAIN positive AS bigint CHECK (value > 0);
      CREATE TABLE t (k \(type) PRIMARY KEY, g int);
      INSERT INTO t SELECT \(value), g FROM generate_series(0, 600) AS g ORDER BY random()
      """
    )
    // A limit brings the rows in the order of the key.
    let query = try query("t", limit: 1_000)
    let list = try await fetch(query)
    #expect(list.count == 601)
    #expect(try keys(list) == keys(try await fetch(query, method: .select)))
    switch query.key.columns[0].form {
    case .other, .binary: break
    default: #expect(list.isSorted)
    }
    // Every key, as text and cast back, belongs to another row.
    let session = try database.session()
    let texts = try (0..<list.count).map { position in
      switch try list.key(at: position).components[0] {
      case .integer(let value): String(value)
      case .text(let text): text
      case .blob(let bytes):
        "\\x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      default: ""
      }
    }
    let base = query.key.columns[0].type
    try session.transaction { () throws(BatchError) in
      // In the order of the type, not of its text.
      if query.key.columns[0].form == .other {
        let first = try session.text("SELECT k::text FROM t ORDER BY t.k LIMIT 1")
        #expect(texts[0] == first)
      }
      var found: Set<String> = []
      for text in texts {
        let row = try session.text("SELECT g FROM t WHERE k = $1::\(base)", .literal(text))
        if let row { found.insert(row) }
      }
      #expect(found.count == 601)
    }
  }

  @Test func `enumerations and several columns can form a key`() async throws {
    try database.run(
      """
      CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
      CREATE TABLE t (m mood, n int, "T x" text, PRIMARY KEY (m, n, "T x"));
      INSERT INTO t VALUES ('happy', 1, 'a'), ('sad', -5, 'b'), ('sad', -5, 'B'), ('ok', 0, 'ü')
      """
    )
    #expect(
      try await keys(fetch(query("t", limit: 10))) == [
        "=sad,-5,=B", "=sad,-5,=b", "=ok,0,=%C3%BC", "=happy,1,=a",
      ]
    )
  }

  @Test func `text keys are sorted by their bytes whatever the collation`() async throws {
    try database.run(
      """
      CREATE TABLE t (k text COLLATE "en-x-icu" PRIMARY KEY);
      INSERT INTO t VALUES ('b'), ('A'), ('a'), ('B'), ('é'), ('e'), ('Z'), ('')
      """
    )
    let list = try await fetch(query("t", limit: 10))
    #expect(try keys(list) == ["=", "=A", "=B", "=Z", "=a", "=b", "=e", "=%C3%A9"])
    #expect(list.isSorted)
  }

  @Test func `a declared key is accepted if its selected values are unique and not NULL`()
    async throws
  {
    try database.run(
      """
      CREATE TABLE t (a int, b int);
      INSERT INTO t VALUES (1, 1), (2, 1), (3, 3), (3, 4), (NULL, 5)
      """
    )
    #expect(try await keys(fetch(query("t", where: "a < 3", key: ["a"]))) == ["1", "2"])
    let twice = await #expect(throws: BatchError.self) {
      try await fetch(query("t", where: "b = 3", key: ["a"]))
    }
    #expect(twice?.code == .unstableKey)
    let null = await #expect(throws: BatchError.self) {
      try await fetch(query("t", where: "b = 5", key: ["a"]))
    }
    #expect(null?.message.contains("NULL") == true)
    #expect(try await keys(fetch(query("t", where: "b = 5", key: ["a", "b"]))) == ["!,5"])
  }

  @Test func `a fetch obeys order and limit and reads views and partitions`() async throws {
    try database.run(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY HASH (id);
      CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
      CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);
      INSERT INTO t SELECT g, g % 3 FROM generate_series(1, 10) AS g;
      CREATE VIEW v AS SELECT id, n FROM t WHERE id > 5
      """
    )
    #expect(try await keys(fetch(query("t"), readers: 3)) == (1...10).map(String.init))
    let order = [PostgresQuery.SortTerm("n", descending: true)]
    #expect(try await keys(fetch(query("t", orderBy: order, limit: 4))) == ["2", "5", "8", "1"])
    #expect(try await keys(fetch(query("v", key: ["id"]))) == ["6", "7", "8", "9", "10"])
  }

  @Test func `a fetch that selects no row gives an empty list`() async throws {
    try database.run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (k text PRIMARY KEY)")
    for name in ["t", "u"] {
      for method in [PostgresFetch.Method.copy, .select] {
        #expect(try await fetch(query(name), readers: 2, method: method).count == 0)
      }
    }
  }

  // MARK: Parameters

  @Test func `parameter values reach the condition unchanged and never as SQL`() async throws {
    try database.run(
      """
      CREATE TABLE t (id int PRIMARY KEY, s text, d date, r float8, b bytea, ok bool);
      INSERT INTO t VALUES (1, 'it''s', '2024-02-29', 0.1, '\\x00ff', true),
        (2, ''' OR true --', '2024-03-01', 1e300, '\\x', false), (3, NULL, NULL, NULL, NULL, NULL)
      """
    )
    let cases: [(String, PostgresValue, [String])] = [
      ("s = :p", .text("it's"), ["1"]), ("s = :p", .text("' OR true --"), ["2"]),
      ("s = :p", .text("\\' OR true --"), []), ("d = :p::date", .text("2024-02-29"), ["1"]),
      ("r = :p", .real(0.1), ["1"]), ("r > :p", .real(1e299), ["2"]),
      ("b = :p", .blob([0, 255]), ["1"]),
      ("b = :p", .blob([]), ["2"]), ("ok = :p", .boolean(true), ["1"]),
      ("id > :p", .integer(1), ["2", "3"]),
      ("s IS NOT DISTINCT FROM :p", .null, ["3"]), ("id % 2 = (:p)", .integer(1), ["1", "3"]),
    ]
    for (condition, value, expected) in cases {
      let query = try query("t", where: condition, parameters: ["p": value, "other": .text("x")])
      #expect(try await keys(fetch(query)) == expected, "\(condition) \(value)")
      #expect(try await keys(fetch(query, method: .select)) == expected, "\(condition) \(value)")
    }
  }

  @Test func `a condition that fails for a row gives the server's error`() async throws {
    try database.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (0)")
    let error = await #expect(throws: BatchError.self) {
      try await fetch(query("t", where: "1 / id > 0"))
    }
    #expect(error?.code == .invalidValue)
  }

  // MARK: Several readers

  @Test func `several readers fetch the list that one reader fetches, even from a table with gaps`()
    async throws
  {
    try database.run(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, n int);
      INSERT INTO t SELECT g * 11 - 1000000, g % 10 FROM generate_series(1, 200000) AS g WHERE g % 7 <> 3;
      INSERT INTO t VALUES (-9000000000000000000, 1), (9000000000000000000, 1); ANALYZE t
      """
    )
    for condition in [nil, "n = 1", "false"] {
      let query = try query("t", where: condition)
      let one = try await fetch(query)
      let several = try await fetch(query, readers: 3)
      #expect(several.count == one.count)
      #expect(several.isSorted)
      #expect(try several.integers(in: 0..<several.count) == one.integers(in: 0..<one.count))
      try several.verify()
    }
  }

  @Test func `several readers read simultaneously`() async throws {
    // All rows take so long that the readers are seen at work.
    try database.run(
      """
      CREATE TABLE t (id bigint PRIMARY KEY);
      INSERT INTO t SELECT g FROM generate_series(1, 200000) AS g; ANALYZE t
      """
    )
    let condition = "length(repeat(id::text, 20000)) > 0"
    let fetch = PostgresFetch(
      try query("t", where: condition),
      from: try database.address,
      readers: 3
    )
    let run = Task { try await fetch.run(store: "S") }
    try await database.wait(
      until: """
        SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND datname = current_database()
        HAVING count(*) = 3
        """
    )
    fetch.interrupt()
    _ = try? await run.value
  }

  @Test func `all readers of a fetch see one snapshot`() async throws {
    // A writer keeps moving one row from one end to the other.
    try database.run(
      """
      CREATE TABLE t (id bigint PRIMARY KEY);
      INSERT INTO t SELECT g FROM generate_series(1, 300000) AS g; ANALYZE t
      """
    )
    let query = try query("t")
    let writer = PostgresConnection(label: "test.writer", address: try database.address)
    let moves = Task {
      for step in 0..<10_000 where !Task.isCancelled {
        try await writer.perform { session throws(BatchError) in
          _ = try session.execute("UPDATE t SET id = 300001 + \(step) WHERE id = 1 + \(step)")
        }
      }
    }
    for _ in 0..<5 {
      let list = try await fetch(query, readers: 4)
      #expect(list.count == 300_000)
      let first = try list.integers(in: 0..<1)[0]
      #expect(try list.integers(in: 299_999..<300_000)[0] == first + 299_999)
    }
    moves.cancel()
    try await moves.value
  }

  @Test func `an interrupted fetch leaves no session on the server`() async throws {
    try database.run(
      "CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t SELECT g FROM generate_series(1, 1000) AS g"
    )
    let condition =
      "(SELECT count(*) FROM t AS a, t AS b, t AS c WHERE a.id + b.id + c.id > t.id) > 0"
    let fetch = PostgresFetch(
      try query("t", where: condition),
      from: try database.address,
      readers: 2
    )
    let run = Task { try await fetch.run(store: "S") }
    try await database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND datname = current_database()"
    )
    fetch.interrupt()
    let error = await #expect(throws: BatchError.self) { try await run.value }
    #expect(error?.code == .interrupted)
    try await database.wait(
      until: """
        SELECT 1 WHERE NOT EXISTS (
          SELECT FROM pg_stat_activity WHERE application_name LIKE 'batch.fetch%' AND datname = current_database())
        """
    )
  }

  @Test func `a fetch works through PgBouncer in transaction mode`() async throws {
    try database.run(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, n int);
      INSERT INTO t SELECT g, g % 2 FROM generate_series(1, 200000) AS g; ANALYZE t
      """
    )
    let query = try query("t", where: "n = :n", parameters: ["n": .integer(1)])
    let address = try database.pooledAddress
    let one = try await PostgresFetch(query, from: address).run(store: "S")
    #expect(one.count == 100_000)
    let several = try await PostgresFetch(query, from: address, readers: 2).run(store: "S")
    #expect(several.count == 100_000)
    let rows = try await PostgresFetch(query, from: address, method: .select).run(store: "S")
    #expect(try rows.integers(in: 0..<5) == [1, 3, 5, 7, 9])
    // No settings are left to the connection's next user.
    let session = try PostgresSession(
      address,
      applicationName: "test",
      interrupter: PostgresInterrupter()
    )
    for _ in 0..<4 {
      #expect(try session.text("SELECT coalesce(current_setting('batch.p1', true), '')") == "")
      #expect(try session.text("SHOW debug_print_parse") == "off")
    }
  }

  @Test func `the memory of a fetch does not grow with the table`() async throws {
    // 120 MB of keys. What other tests need at the same time is counted too, and is less than half of that.
    try database.run(
      """
      CREATE UNLOGGED TABLE t (k text COLLATE "C" PRIMARY KEY);
      INSERT INTO t SELECT repeat('x', 400) || g FROM generate_series(1000001, 1300000) AS g
      """
    )
    let before = peakResidentBytes()
    let list = try await fetch(query("t"))
    #expect(list.count == 300_000)
    #expect(peakResidentBytes() - before < 64 << 20)
  }
}
#endif
