#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct PostgresTransformTests {
  /// Sets the first written column to the first read column plus one.
  @Sendable private static func addOne(_ rows: ReadRows<RowKeys>) throws(BatchError) -> RowChanges {
    var changes = RowChanges(ofRows: rows.count, columns: 1)
    for row in 0..<rows.count {
      changes.values.set(row, 0, integer: rows.values.word(row, 0) + 1)
    }
    return changes
  }

  /// Sets the written columns to the read ones.
  @Sendable private static func copy(_ rows: ReadRows<RowKeys>) throws(BatchError) -> RowChanges {
    RowChanges(values: rows.values)
  }

  /// Sets the rows of a chunk in one transaction.
  @discardableResult
  private static func write(
    _ trial: ChangeTrial,
    _ transform: PostgresTransform,
    _ chunk: TransformedRows<RowKeys>,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy = .failChunk
  ) throws -> ChunkResult {
    try trial.session.transaction(TransactionOptions(searchPath: trial.path)) {
      () throws(BatchError) in
      try transform.write(to: chunk, method, onFailure: policy, in: trial.session)
    }
  }

  // MARK: Values

  @Test(arguments: [WritingMethod.counting, .listing])
  func `a transform reads and writes values of every type without loss`(method: WritingMethod)
    async throws
  {
    let columns = [
      "b", "s", "i", "l", "o", "r", "d", "x", "f", "c", "v", "w", "j", "jb", "a", "aa", "z", "ts",
      "da", "ti", "iv", "y", "m", "p", "u", "ip", "q", "rg", "bi",
    ]
    let trial = try await ChangeTrial(
      """
      CREATE TYPE mood AS ENUM ('sad', 'it''s "ok", {so}');
      CREATE DOMAIN positive AS int CHECK (value > 0);
      CREATE TYPE pair AS (a int, b text);
      CREATE TABLE t (id bigint PRIMARY KEY, b boolean, s smallint, i int, l bigint, o oid, r real, d float8,
        x numeric, f numeric(9,3), c char(5), v varchar(7), w text, j json, jb jsonb, a text[], aa int[][],
        z timestamptz, ts timestamp, da date, ti time, iv interval, y bytea, m mood, p positive, u uuid, ip inet,
        q pair, rg int4range, bi bit(5));
      INSERT INTO t SELECT g, g % 2 = 0, 32767 - g, -2147483648 + g, 9223372036854775807 - g, 4294967295 - g,
        0.1::real + g, CASE g WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE 0.1::float8 * g END,
        CASE g WHEN 3 THEN 'NaN' ELSE 123456789012345678901234567890.123456789 * g END, g / 7.0, 'a ', 'Ä,"\\' || g,
        CASE g WHEN 4 THEN '' WHEN 5 THEN 'NULL' ELSE repeat(E'x\\n\\t\\\\"{},', g) END,
        '{ "a" : 1.10,  "a": null }', '{"b": [1.10, "x"]}', ARRAY['x', NULL, '', 'NULL', 'it''s, "{}"'],
        ARRAY[[1, NULL], [3, g]], timestamptz '2024-03-31 01:30+01' + g * interval '7 min 0.000001 s',
        CASE g WHEN 6 THEN 'infinity' ELSE timestamp '0044-03-15 12:00 BC' END, '2024-02-29', '23:59:60',
        '1 year -2 days 03:04:05.6', decode('00ff', 'hex') || decode(md5(g::text), 'hex'),
        CASE WHEN g % 2 = 0 THEN 'sad' ELSE 'it''s "ok", {so}' END::mood, g, md5(g::text)::uuid, '10.0.0.1/8',
        ROW(g, NULL)::pair, int4range(g, NULL), B'10101'
      FROM generate_series(1, 40) AS g;
      INSERT INTO t (id) VALUES (41);
      CREATE TABLE before AS SELECT * FROM t;
      UPDATE t SET x = x
      """
    )
    for setting in ["array_nulls = off", "quote_all_identifiers = on"] {
      try trial.session.execute("SET \(setting)")
    }
    let transform = try trial.transform(columns, columns)
    #expect(try transform.check(in: trial.session).isEmpty)
    let chunk = try transform.prepare(trial.keys(), in: trial.session, Self.copy)
    #expect(chunk.changed.count == 41)
    #expect(try Self.write(trial, transform, chunk, method).succeeded == 41)
    let difference = """
      SELECT count(*) FROM t FULL JOIN before USING (id) WHERE t::text IS DISTINCT FROM before::text
      """
    #expect(try trial.session.integer(difference) == 0)
    // Each is another version of its row.
    #expect(try trial.session.integer("SELECT count(DISTINCT xmin::text) FROM t") == 1)
    #expect(chunk.rows.values.real(0, 5) == 1.1)
    let number = "123456789012345678901234567890.123456789"
    #expect(chunk.rows.values.value(0, 7) == .text(number))
  }

  @Test(arguments: [
    ("smallint", "g - 20"), ("int", "g * 7 - 90"), ("oid", "(4294967295 - g)::bigint::oid"),
    ("uuid", "md5(g::text)::uuid"), ("text", "chr(g + 33) || E'it''s\\\\,{\"'"),
    ("char(9)", "'k' || g"),
    ("bytea", "decode(md5(g::text), 'hex')"), ("numeric(9,3)", "g / 7.0 - 30"),
    ("timestamptz", "timestamptz '2024-03-31 00:00+00' + g * interval '7 minutes'"),
    ("text COLLATE \"und-x-icu\"", "chr(g + 192) || g"),
    ("varchar(9) COLLATE \"POSIX\"", "chr(g + 192) || g"),
  ])
  func `a transform finds its rows by keys of every type, in the list's order`(
    type: String,
    value: String
  ) async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (k \(type) PRIMARY KEY, g int, n int NOT NULL DEFAULT 0);
      INSERT INTO t (k, g, n) SELECT \(value), g, g FROM generate_series(0, 60) AS g
      """,
      where: "g % 3 <> 1"
    )
    // A role may have it so.
    try trial.session.execute("SET standard_conforming_strings = off")
    let transform = try trial.transform(["n"], ["n"])
    let chunk = try transform.prepare(trial.keys(3..<40), in: trial.session, Self.addOne)
    #expect(chunk.rows.numbers == Array(0..<37))
    try Self.write(trial, transform, chunk, .counting)
    #expect(try trial.session.integer("SELECT count(*) FROM t WHERE n = g + 1") == 37)
    #expect(try trial.session.integer("SELECT count(*) FROM t WHERE n = g") == 24)
  }

  @Test func `a value that does not fit its column fails only its row`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, s smallint, v varchar(3), x numeric(3,1), w text, p int REFERENCES t);
      INSERT INTO t SELECT g, g FROM generate_series(0, 20) AS g
      """
    )
    let transform = try trial.transform(["id"], ["s", "v", "x", "w", "p"])
    let compute: RowComputation = { rows throws(BatchError) in
      var changes = RowChanges(ofRows: rows.count, columns: 5)
      for row in 0..<rows.count {
        let values: [SQLValue] = [
          .integer(row == 1 ? 70_000 : 7), .text(row == 2 ? "abcd" : "abc"),
          row == 3 ? .text("ten") : .real(1.5), .text(row == 4 ? "a\0b" : "a"),
          .integer(row == 5 ? 99 : 1),
        ]
        for (column, value) in values.enumerated() { try changes.values.set(row, column, value) }
      }
      return changes
    }
    let chunk = try transform.prepare(trial.keys(), in: trial.session, compute)
    let written = try Self.write(trial, transform, chunk, .listing, onFailure: .skip(upTo: 5))
    #expect(written.failures.map(\.number) == [1, 2, 3, 4, 5])
    #expect(
      written.failures.map(\.error.code.rawValue) == Array(repeating: "invalidValue", count: 4) + [
        "constraint"
      ]
    )
    #expect(written.succeeded == 16)
    #expect(
      try trial.texts("count(*) FILTER (WHERE (s, v, x, w, p) = (7, 'abc', 1.5, 'a', 1))") == ["16"]
    )
    let again = try transform.prepare(trial.keys(), in: trial.session, compute)
    let error = #expect(throws: BatchError.self) {
      try Self.write(trial, transform, again, .listing)
    }
    #expect(error?.message.contains("identifier 1:") == true)
    #expect(error?.message.contains("smallint") == true)
  }

  @Test func `a transform keeps columns without a new value and does not touch unchanged rows`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, a int DEFAULT 1, b text DEFAULT 'own');
      INSERT INTO t SELECT generate_series(0, 9)
      """
    )
    let transform = try trial.transform(["id"], ["a", "b"])
    let chunk = try transform.prepare(trial.keys(), in: trial.session) { rows throws(BatchError) in
      var changes = RowChanges(ofRows: rows.count, columns: 2)
      for row in 0..<rows.count {
        if row % 3 == 1 { changes.values.set(row, 0, integer: 7) }
        if row % 3 == 2 { changes.values.setNull(row, 1) }
      }
      return changes
    }
    let written = try Self.write(trial, transform, chunk, .counting)
    #expect(written.succeeded == 6)
    #expect(written.passedOver.unchanged == RangeSet([0, 3, 6, 9], within: 0..<10))
    #expect(try trial.texts("(a, b)", orderBy: "id").prefix(3) == ["(1,own)", "(7,own)", "(1,)"])
    #expect(try trial.session.integer("SELECT count(DISTINCT xmin::text) FROM t") == 2)
  }

  // MARK: By position and by join

  /// What a row of the model test gets: for each column a text, "-" for NULL, and nil to leave it as it is.
  private static func choice(of id: Int64, seed: Int, rate: Double, columns: Int) -> [String?] {
    var generator = SeededGenerator(seed: UInt64(bitPattern: id) &* 31 &+ UInt64(seed))
    if Double.random(in: 0..<1, using: &generator) > rate {
      return [String?](repeating: nil, count: columns)
    }
    return (0..<columns).map { column in
      let number = Int.random(in: 0..<100, using: &generator)
      switch number {
      case ..<20: return nil
      case ..<40: return "-"
      default: return ["\(number)", "\(number).5", "\(number).25", "w\(number)"][column]
      }
    }
  }

  @Test(arguments: 0..<12, ["int", "smallint", "bigint"])
  func `each row gets the values computed for it, with or without gaps between keys`(
    seed: Int,
    type: String
  ) async throws {
    var generator = SeededGenerator(seed: UInt64(seed))
    let count = Int.random(in: 2...90, using: &generator)
    let last = type == "bigint" ? Int64.max : Int64.random(in: 0...200, using: &generator)
    let gap = Int.random(in: 0..<3 * count, using: &generator)
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id \(type) PRIMARY KEY, i int DEFAULT 5, r real DEFAULT 0.5, d float8, w text DEFAULT 'own');
      INSERT INTO t (id) SELECT \(last) - g FROM generate_series(0, \(count - 1)) AS g WHERE g <> \(gap)
      """
    )
    let columns = seed % 3 == 0 ? ["i", "r", "d", "w"] : ["i", "r", "d"]
    let rate = [0.1, 0.4, 0.7, 1.0][seed % 4]
    let text = """
      concat_ws(' ', id, coalesce(i::text, '-'), coalesce(r::text, '-'), coalesce(d::text, '-'), coalesce(w, '-'))
      """
    var expected: [String] = []
    var changed = 0
    for row in try trial.texts(text, orderBy: "id") {
      var words = row.split(separator: " ").map(String.init)
      let id = try #require(Int64(words[0]))
      let choice = Self.choice(of: id, seed: seed, rate: rate, columns: columns.count)
      for (column, value) in choice.enumerated() { words[column + 1] = value ?? words[column + 1] }
      if choice.contains(where: { $0 != nil }) { changed += 1 }
      expected.append(words.joined(separator: " "))
    }
    let transform = try trial.transform(["id"], columns)
    let chunk = try transform.prepare(trial.keys(), in: trial.session) { rows throws(BatchError) in
      var changes = RowChanges(ofRows: rows.count, columns: columns.count)
      for row in 0..<rows.count {
        let id = rows.values.word(row, 0)
        let choice = Self.choice(of: id, seed: seed, rate: rate, columns: columns.count)
        for (column, text) in choice.enumerated() {
          guard let text else { continue }
          let number = Int64(text).map { SQLValue.integer($0) } ?? Double(text).map { .real($0) }
          let value = text == "-" ? .null : number ?? .text(text)
          try changes.values.set(row, column, value)
        }
      }
      return changes
    }
    let written = try Self.write(trial, transform, chunk, .counting)
    #expect(written.succeeded == changed)
    #expect(try trial.texts(text, orderBy: "id") == expected)
    let versions = try trial.session.integer("SELECT count(DISTINCT xmin::text) FROM t")
    #expect(versions == (changed == 0 || changed == expected.count ? 1 : 2))
    let statement = try transform.statement(for: chunk, chunk.changed)
    let isByPosition = gap >= count && columns.count == 3 && 2 * changed >= count
    #expect(statement.sql.contains("unnest") == !isByPosition, "\(statement.sql)")
  }

  @Test func `a transform refuses a column whose type has changed since it was prepared`()
    async throws
  {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, n int, w text); INSERT INTO t SELECT g, g, g FROM generate_series(1, 9) AS g"
    )
    let transform = try trial.transform(["n", "w"], ["n", "w"])
    let other = try trial.database.session()
    try other.run(
      "ALTER TABLE t ALTER n TYPE text USING 'abc' || n, ALTER w TYPE int USING w::int"
    )
    // Without a run, which verifies the schema first, each row that cannot be read fails.
    let unread = try transform.prepare(trial.keys(), in: trial.session, Self.copy)
    #expect(!unread.failures.isEmpty)
    #expect(unread.failures.first?.error.message.contains("abc1") == true)
    try other.run("ALTER TABLE t ALTER n TYPE numeric USING id")
    let chunk = try transform.prepare(trial.keys(), in: trial.session, Self.copy)
    #expect(chunk.rows.values.value(4, 0) == .integer(5))
    #expect(chunk.rows.values.value(4, 1) == .text("5"))
    // The value computed as text is not an integer: nothing is written, and the message names the
    // column.
    let refusal = #expect(throws: BatchError.self) {
      try Self.write(trial, transform, chunk, .counting)
    }
    #expect(refusal?.message.contains("\"w\" is of type integer") == true)
    #expect(try trial.texts("w", orderBy: "id") == (1...9).map(String.init))
  }

  @Test func `a transform reads no more rows than its memory limit allows`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, w text);
      INSERT INTO t SELECT g, repeat('x', 100000) FROM generate_series(1, 500) AS g; DELETE FROM t WHERE id = 3
      """
    )
    let transform = try trial.transform(["w"], ["w"])
    let keys = try RowKeys(trial.list.packed, 0..<499, key: trial.key)
    let chunk = try transform.prepare(keys, holding: 1 << 20, in: trial.session, Self.copy)
    #expect(chunk.count == 11)
    #expect(!trial.session.isInTransaction)
    // A handler may stop sooner.
    let shorter = try transform.prepare(keys, holding: 1 << 20, in: trial.session) {
      rows throws(BatchError) in
      RowChanges(values: rows.values.selecting(0..<4))
    }
    #expect(shorter.count == 4)
  }

  // MARK: Tables

  @Test(arguments: [
    "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0)",
    """
    CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0) PARTITION BY HASH (id);
    CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)
    """,
    """
    CREATE TABLE base (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); CREATE VIEW t AS SELECT * FROM base
    """,
    "CREATE TABLE t (id int, n int NOT NULL DEFAULT 0)",
  ])
  func `a transform refuses to write rows that have changed since it read them`(table: String)
    async throws
  {
    let trial = try await ChangeTrial(
      "\(table); INSERT INTO t SELECT generate_series(1, 50)",
      key: ["id"]
    )
    let transform = try trial.transform(["n"], ["n"])
    #expect(try transform.check(in: trial.session).isEmpty)
    let chunk = try transform.prepare(trial.keys(), in: trial.session, Self.addOne)
    try trial.session.run("UPDATE t SET n = 10 WHERE id IN (7, 8)")
    for method in [WritingMethod.counting, .listing] {
      let error = #expect(throws: BatchError.self) {
        try Self.write(trial, transform, chunk, method)
      }
      #expect(error?.isAboutStaleRows == true)
    }
    let again = try transform.refresh(chunk, in: trial.session) { rows throws(BatchError) in
      // Only these are computed again.
      guard rows.numbers == [6, 7] else { throw BatchError(.handlerFailed, "\(rows.numbers)") }
      return try Self.addOne(rows)
    }
    #expect(try Self.write(trial, transform, again, .counting).succeeded == 50)
    #expect(try trial.texts("sum(n)") == ["70"])
  }

  @Test func `a transform does not overwrite a row that another transaction is changing`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); INSERT INTO t SELECT generate_series(1, 5)
      """
    )
    let transform = try trial.transform(["n"], ["n"])
    let chunk = try transform.prepare(trial.keys(), in: trial.session, Self.addOne)
    // It holds the lock when the statement reaches the row, which then rechecks the row.
    let other = try trial.database.session()
    try other.run("BEGIN; UPDATE t SET n = 10 WHERE id = 3")
    let connection = PostgresConnection(label: "batch.set", address: try trial.database.address)
    let path = trial.path
    let set = Task {
      try await connection.perform { session throws(BatchError) in
        try session.transaction(TransactionOptions(searchPath: path)) { () throws(BatchError) in
          try transform.write(to: chunk, .counting, onFailure: .failChunk, in: session)
        }
      }
    }
    try await trial.database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'batch.set' AND wait_event_type = 'Lock'"
    )
    try other.run("COMMIT")
    let error = await #expect(throws: BatchError.self) { try await set.value }
    #expect(error?.isAboutStaleRows == true)
    await connection.close()
    #expect(try trial.texts("n", orderBy: "id") == ["0", "0", "10", "0", "0"])
  }

  @Test func `a row that a policy lets the role read but not update fails`() async throws {
    let role = "reader_\(UInt32.random(in: 0 ... .max))"
    let trial = try await ChangeTrial(
      """
      CREATE ROLE \(role) LOGIN;
      CREATE TABLE t (id int PRIMARY KEY, own bool, n int DEFAULT 0);
      INSERT INTO t SELECT g, g % 3 = 0 FROM generate_series(0, 19) AS g;
      ALTER TABLE t ENABLE ROW LEVEL SECURITY;
      CREATE POLICY see ON t FOR SELECT USING (true);
      GRANT SELECT, UPDATE ON t TO \(role)
      """,
      role: role
    )
    defer { try? trial.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    let transform = try trial.transform(["n"], ["n"])
    let none = #expect(throws: BatchError.self) { try transform.check(in: trial.session) }
    #expect(none?.code == .accessDenied)
    try trial.database.run("CREATE POLICY change ON t FOR UPDATE TO \(role) USING (own)")
    _ = try transform.check(in: trial.session)
    let chunk = try transform.prepare(trial.keys(), in: trial.session, Self.addOne)
    // As rows that others have changed: only a lock finds out.
    let stale = #expect(throws: BatchError.self) {
      try Self.write(trial, transform, chunk, .counting)
    }
    #expect(stale?.isAboutStaleRows == true)
    let locking = LockingTransform(transform: transform, compute: Self.addOne)
    let written = try trial.session.transaction(TransactionOptions(searchPath: trial.path)) {
      () throws(BatchError) in
      try locking.list(chunk, .listing, onFailure: .skip(upTo: 20), in: trial.session)
    }
    #expect(written.failures.map(\.number) == (0..<20).filter { $0 % 3 != 0 })
    #expect(written.succeeded == 7)
    #expect(written.passedOver.counts.total == 0)
    #expect(try trial.database.text("SELECT sum(n) FROM t") == "7")
  }

  @Test func `a transform of key, generated or unknown columns is refused before the first chunk`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (n) STORED);
      CREATE ROLE reader_\(UInt32.random(in: 0 ... .max))
      """
    )
    for (column, code) in [
      ("id", BatchError.Code.unstableKey), ("g", .unknownAttribute), ("m", .unknownAttribute),
    ] {
      let error = #expect(throws: BatchError.self) { try trial.transform(["n"], [column]) }
      #expect(error?.code == code, "\(column)")
    }
    #expect(throws: BatchError.self) { try trial.transform(["m"], ["n"]) }
  }
}
#endif
