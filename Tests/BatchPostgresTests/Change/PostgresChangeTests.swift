#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct PostgresChangeTests {
  // MARK: Keys

  @Test(arguments: [
    ("smallint", "g - 20"), ("int", "g * 7 - 90"), ("bigint", "g::bigint * 5000000000 - 1"),
    ("oid", "(4294967295 - g)::bigint::oid"), ("uuid", "md5(g::text)::uuid"),
    ("text", "chr(g + 33) || 'it''s'"), ("text COLLATE \"en-x-icu\"", "chr(g + 33) || 'y'"),
    ("varchar(9)", "'Ä\\,{\"}' || g"), ("char(9)", "'k' || g"),
    ("bytea", "decode(md5(g::text), 'hex')"), ("numeric(9,3)", "g / 7.0 - 30"),
    ("float8", "g / 7.0::float8"), ("date", "date '0044-03-15 BC' + g * 400"),
    ("timestamptz", "timestamptz '2024-03-31 00:00+00' + g * interval '7 minutes'"),
    ("inet", "('10.0.0.0'::inet + g)"), ("bit(12)", "g::bit(12)"), ("positive", "g + 1"),
    ("mood", "('m' || g)::mood"), ("int GENERATED ALWAYS AS IDENTITY", "g"),
  ])
  func `a chunk finds exactly its rows by keys of every type`(
    type: String,
    value: String
  ) async throws {
    let moods = (0...60).map { "'m\($0)'" }.joined(separator: ", ")
    let trial = try await ChangeTrial(
      """
      CREATE DOMAIN positive AS bigint CHECK (value > 0);
      CREATE TYPE mood AS ENUM (\(moods));
      CREATE TABLE t (k \(type) PRIMARY KEY, g int, n int NOT NULL DEFAULT 0);
      INSERT INTO t (k, g) OVERRIDING SYSTEM VALUE SELECT \(value), g FROM generate_series(0, 60) AS g
      """,
      where: "g % 3 <> 1"
    )
    #expect(trial.list.count == 41)
    for (times, method) in [(1, WritingMethod.counting), (2, .listing)] {
      let written = try trial.write(trial.update(["n": "n + 1"]), by: method, at: 0..<40)
      #expect(written.outcomes.succeeded == 40)
      #expect(try trial.session.integer("SELECT count(*) FROM t WHERE n = \(times)") == 40)
      #expect(try trial.session.integer("SELECT sum(n) FROM t WHERE g % 3 = 1") == 0)
    }
    for (positions, method) in [(0..<20, WritingMethod.counting), (20..<41, .listing)] {
      let deleted = try trial.write(trial.delete(), by: method, at: positions)
      #expect(deleted.outcomes.succeeded == positions.count)
    }
    #expect(try trial.session.integer("SELECT count(*) FROM t WHERE g % 3 <> 1") == 0)
    #expect(try trial.session.integer("SELECT count(*) FROM t") == 20)
  }

  @Test(arguments: [WritingMethod.counting, .listing])
  func `a key may have several columns with arbitrary names`(
    method: WritingMethod
  ) async throws {
    let trial = try await ChangeTrial(
      #"""
      CREATE SCHEMA "My Sales";
      CREATE TABLE "My Sales"."Order ""Lines""" (
        "Shop" text, "no" bigint, "at" timestamptz, "N n" int DEFAULT 0, PRIMARY KEY ("Shop", "no", "at"));
      INSERT INTO "My Sales"."Order ""Lines""" SELECT s, g, now() + g * interval '1 s'
      FROM generate_series(1, 30) AS g, unnest(ARRAY['EU', 'it''s', '']) AS s
      """#,
      #""My Sales"."Order ""Lines""""#,
      where: #""no" % 2 = 0"#
    )
    let written = try trial.write(trial.update(["N n": #""N n" + 1"#]), by: method)
    #expect(written.outcomes.succeeded == 45)
    #expect(try trial.texts(#"sum("N n")"#) == ["45"])
    #expect(try trial.texts(#"count(*) FILTER (WHERE "N n" = 1 AND "no" % 2 = 0)"#) == ["45"])
  }

  @Test func `a chunk uses BETWEEN only if every key of the range was selected`() async throws {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id bigint PRIMARY KEY, n int DEFAULT 0); INSERT INTO t SELECT generate_series(1, 50)",
      where: "id <> 30"
    )
    let change = try trial.update(["n": "n + 1"])
    #expect(try change.countingStatement(for: trial.keys(0..<29))?.sql.contains("BETWEEN") == true)
    #expect(try change.countingStatement(for: trial.keys())?.sql.contains("ANY") == true)
    try trial.write(change)
    #expect(try trial.texts("n", orderBy: "id")[29] == "0")
    #expect(try trial.texts("sum(n)") == ["49"])
    let backwards = try await ChangeTrial(
      "CREATE TABLE t (id bigint PRIMARY KEY, n int DEFAULT 0); INSERT INTO t SELECT generate_series(1, 50)",
      orderBy: [.init("id", descending: true)]
    )
    #expect(try change.countingStatement(for: backwards.keys())?.sql.contains("BETWEEN") == false)
    // The outcome of the key with this number, in any order.
    try backwards.session.execute("DELETE FROM t WHERE id = 49")
    let written = try backwards.write(backwards.update(["n": "n + 1"]))
    #expect(written.passedOver.vanished == RangeSet([1], within: 0..<50))
  }

  @Test func `a declared key may hold NULL but must identify a single row`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (a int, b text, n int DEFAULT 0);
      INSERT INTO t VALUES (1, 'x'), (NULL, 'x'), (1, NULL), (NULL, NULL)
      """,
      key: ["a", "b"]
    )
    let written = try trial.write(trial.update(["n": "n + 1"]))
    #expect(written.outcomes.succeeded == 4)
    #expect(try trial.texts("n") == ["1", "1", "1", "1"])
    try trial.session.execute("INSERT INTO t VALUES (1, NULL)")
    let error = #expect(throws: BatchError.self) { try trial.write(trial.update(["n": "n + 1"])) }
    #expect(error?.code == .unstableKey)
    #expect(try trial.texts("sum(n)") == ["4"])
  }

  @Test func `the key of another table is refused`() async throws {
    let one = try await ChangeTrial(
      "CREATE TABLE t (id text PRIMARY KEY); INSERT INTO t VALUES ('a')"
    )
    let two = try await ChangeTrial(
      "CREATE TABLE t (a text, b int, n int, PRIMARY KEY (a, b)); INSERT INTO t VALUES ('a', 1)"
    )
    let keys = try RowKeys(one.list.packed, 0..<1, key: two.key)
    let error = #expect(throws: BatchError.self) {
      try two.update(["n": "1"]).countingStatement(for: keys)
    }
    #expect(error?.code == .invalidIdentifier)
  }

  // MARK: Columns

  @Test(arguments: [WritingMethod.counting, .listing])
  func `a chunk sets columns of every type as one UPDATE does`(
    method: WritingMethod
  ) async throws {
    let values: KeyValuePairs = [
      "b": "NOT b", "s": "s + 1", "r": "r / 3", "d": "d * 1e-7", "x": "x / 7",
      "c": "upper(c)", "j": "j || '{\"a\": [1, null]}'", "js": "'{ \"a\" : 1 }'",
      "a": "a || ARRAY[NULL, 'it''s']", "z": "z + interval '1 month'", "y": "y || '\\xff00'",
      "m": "'ok'", "p": "p * 2", "u": "md5(id::text)::uuid", "i": "i * 2", "q": "q",
    ]
    let table = """
      (id bigint PRIMARY KEY, b boolean, s smallint, r real, d float8, x numeric, c char(5), j jsonb,
        js json, a text[], z timestamptz, y bytea, m mood, p positive, u uuid, i interval,
        q pair, g int GENERATED ALWAYS AS (s * 10) STORED, o text DEFAULT 'kept')
      """
    let trial = try await ChangeTrial(
      """
      CREATE TYPE mood AS ENUM ('sad', 'ok');
      CREATE DOMAIN positive AS int CHECK (value > 0);
      CREATE TYPE pair AS (a int, b text);
      CREATE TABLE t \(table);
      INSERT INTO t SELECT g, g % 2 = 0, g, g, g, 123456789012345678901234567890.5 + g, 'ab', '{}', '[]',
        ARRAY['x'], timestamptz '2024-01-31 12:00+05' + g * interval '1 day', '\\x00', 'sad', g, NULL,
        '1 day 2 hours', ROW(g, 'it''s')::pair
      FROM generate_series(1, 100) AS g;
      CREATE TABLE naive \(table);
      INSERT INTO naive (id, b, s, r, d, x, c, j, js, a, z, y, m, p, u, i, q)
      SELECT id, b, s, r, d, x, c, j, js, a, z, y, m, p, u, i, q FROM t
      """
    )
    let settings = values.map { "\($0.key) = \($0.value)" }.joined(separator: ", ")
    try trial.session.run("UPDATE naive SET \(settings)")
    let written = try trial.write(trial.update(values), by: method)
    #expect(written.outcomes.succeeded == 100)
    let difference = """
      SELECT count(*) FROM t FULL JOIN naive USING (id) WHERE t::text IS DISTINCT FROM naive::text
      """
    #expect(try trial.session.integer(difference) == 0)
  }

  @Test func `key columns, generated columns and unknown columns cannot be set`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, i int GENERATED ALWAYS AS IDENTITY, n int,
        g int GENERATED ALWAYS AS (n) STORED)
      """
    )
    for (column, code) in [
      ("id", BatchError.Code.unstableKey), ("g", .unknownAttribute), ("i", .unknownAttribute),
      ("m", .unknownAttribute),
    ] {
      let error = #expect(throws: BatchError.self) {
        try PostgresChange.Assignment(
          of: CheckedExpression(expression: PostgresExpression("1"), pieces: [.text("1")]),
          to: column,
          in: trial.table,
          key: trial.key
        )
      }
      #expect(error?.code == code, "\(column)")
    }
  }

  @Test func `parameters are bound as values`() async throws {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, a text, n int DEFAULT 7); INSERT INTO t VALUES (1, ''), (2, '')",
      where: "n < :most",
      parameters: ["text": .text("'; DROP TABLE t; --"), "most": .integer(9), "none": .null]
    )
    try trial.write(trial.update(["a": ":text || :most"], if: "n < :most"))
    #expect(try trial.texts("a") == Array(repeating: "'; DROP TABLE t; --9", count: 2))
    try trial.write(trial.update(["a": ":none"]), by: .listing)
    #expect(try trial.texts("a IS NULL") == ["true", "true"])
  }

  // MARK: Tables

  @Test func `a row that moves to another partition counts once`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int, part int, n int DEFAULT 0) PARTITION BY LIST (part);
      CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0);
      CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
      INSERT INTO t SELECT g, g % 2 FROM generate_series(1, 40) AS g
      """,
      key: ["id"]
    )
    let written = try trial.write(trial.update(["part": "1 - part", "n": "n + 1"]))
    #expect(written.outcomes.succeeded == 40)
    #expect(try trial.texts("sum(n)") == ["40"])
    #expect(try trial.session.integer("SELECT count(*) FROM t0 WHERE id % 2 = 1") == 20)
  }

  @Test(arguments: [WritingMethod.counting, .listing])
  func `deleted rows are archived with all their columns in one transaction`(
    method: WritingMethod
  ) async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a text, x numeric,
        g text GENERATED ALWAYS AS (a || '!') STORED);
      CREATE TABLE kept (gone_at timestamptz DEFAULT now(), x numeric, a text,
        id int GENERATED ALWAYS AS IDENTITY);
      INSERT INTO t (a, x) SELECT 'a' || n, n / 3.0 FROM generate_series(1, 50) AS n
      """,
      where: "id % 2 = 0"
    )
    let before = try trial.texts("(id, a, x)", orderBy: "id").enumerated().filter {
      $0.offset % 2 == 1
    }
    let written = try trial.write(trial.delete(archive: "kept"), by: method)
    #expect(written.outcomes.succeeded == 25)
    let rows = try trial.session.execute("SELECT (id, a, x)::text FROM kept ORDER BY id")
    #expect((0..<rows.count).map { rows.text($0, 0) } == before.map(\.element))
    #expect(try trial.texts("count(*)") == ["25"])
  }

  @Test func `a row that the archive does not take is not deleted`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, a text);
      CREATE TABLE kept (id int PRIMARY KEY, a text);
      CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.id = 3 THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER lose BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION lose();
      INSERT INTO t SELECT g, 'a' FROM generate_series(1, 5) AS g;
      INSERT INTO kept VALUES (5, 'from an earlier run')
      """
    )
    let change = try trial.delete(archive: "kept")
    let refusal = #expect(throws: BatchError.self) { try trial.write(change) }
    #expect(refusal?.code == .constraint)
    #expect(try trial.texts("count(*)") == ["5"])
    let written = try trial.write(change, onFailure: .skip(upTo: 2))
    #expect(written.failures.map(\.number) == [2, 4])
    #expect(written.failures[0].error.message.contains("archived"))
    #expect(written.failures[1].error.postgres?.constraint == "kept_pkey")
    #expect(try trial.texts("id") == ["3", "5"])
    let missing = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, \"B b\" text[]); CREATE TABLE kept (id int)"
    )
    let error = #expect(throws: BatchError.self) { try missing.delete(archive: "kept") }
    #expect(error?.remedy == "run ALTER TABLE \"public\".\"kept\" ADD COLUMN \"B b\" text[]")
  }

  @Test(arguments: ["UPDATE", "DELETE", "DELETE with archive"], ["t", "part", "v"])
  func `a row that a trigger leaves unchanged fails, and the error names the trigger`(
    command: String,
    name: String
  ) async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int) \(name == "part" ? "PARTITION BY RANGE (id)" : "");
      \(name == "part" ? "CREATE TABLE part PARTITION OF t FOR VALUES FROM (0) TO (9);" : "")
      CREATE VIEW v AS SELECT * FROM t;
      CREATE TABLE kept (id int, n int);
      INSERT INTO t SELECT g, 0 FROM generate_series(1, 5) AS g;
      CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF OLD.id = 2 THEN RETURN NULL; END IF; RETURN coalesce(NEW, OLD); END $$;
      CREATE TRIGGER "keep it" BEFORE UPDATE OR DELETE ON \(name == "part" ? "part" : "t")
        FOR EACH ROW EXECUTE FUNCTION keep()
      """,
      name == "v" ? "v" : "t",
      where: "n = 0",
      key: ["id"]
    )
    // A row that no longer matches is not kept by the trigger.
    try trial.session.run("UPDATE t SET n = 9 WHERE id = 4")
    let change =
      switch command {
      case "UPDATE": try trial.update(["n": "n + 1"], if: "n = 0")
      case "DELETE": try trial.delete(if: "n = 0")
      default: try trial.delete(archive: "kept", if: "n = 0")
      }
    let refusal = #expect(throws: BatchError.self) { try trial.write(change) }
    #expect(
      refusal?.message.hasPrefix("identifier 2: the trigger \"keep it\" keeps the row") == true
    )
    let written = try trial.write(change, onFailure: .skip(upTo: 2))
    #expect(written.failures.map(\.number) == [1])
    #expect(written.outcomes.succeeded == 3)
    #expect(written.outcomes.noLongerMatching == 1)
    let rest = try trial.session.text("SELECT string_agg(id || ':' || n, ' ' ORDER BY id) FROM t")
    #expect(rest == (command == "UPDATE" ? "1:1 2:0 3:1 4:9 5:1" : "2:0 4:9"))
  }

  // MARK: Rows that are passed over

  @Test func `vanished, no longer matching and unchanged rows are counted separately`() async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int, a text); INSERT INTO t SELECT g, 0, 'a' FROM generate_series(0, 99) AS g
      """,
      where: "n = 0"
    )
    try trial.session.run(
      "DELETE FROM t WHERE id IN (3, 4, 50); UPDATE t SET n = 9 WHERE id IN (4, 5, 99); UPDATE t SET a = 'b' WHERE id = 7"
    )
    let change = try trial.update(["a": "'b'"], if: "n = 0", leavesUnchanged: true)
    let written = try trial.write(change)
    #expect(written.passedOver.vanished == RangeSet([3, 4, 50], within: 0..<100))
    #expect(written.passedOver.noLongerMatching == RangeSet([5, 99], within: 0..<100))
    #expect(written.passedOver.unchanged == RangeSet([7], within: 0..<100))
    #expect(written.succeeded == 94)
    let strict = try trial.update(["a": "'c'"], if: "n = 0", isRequired: true)
    let error = #expect(throws: BatchError.self) { try trial.write(strict) }
    #expect(error?.code.rawValue == "noLongerMatching")
    #expect(try trial.texts("count(*) FILTER (WHERE a = 'c')") == ["0"])
  }

  @Test func `a value counts as unchanged only if all its bits are equal`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE EXTENSION citext;
      CREATE TABLE t (id int PRIMARY KEY, x numeric, m numeric(6,2), c citext, j json, v varchar(3), f float8);
      INSERT INTO t VALUES (1, 1.0, 1.5, 'A', '{}', 'abc', 0)
      """
    )
    for (column, value, isUnchanged) in [
      ("x", "1.0", true), ("x", "1.00", false), ("m", "1.501", true), ("c", "'A'", true),
      ("c", "'a'", false), ("j", "'{}'", true), ("j", "'{ }'", false), ("f", "-0.0::float8", false),
      ("v", "'abc'", true), ("x", "NULL", false), ("x", "NULL", true),
    ] {
      let written = try trial.write(trial.update([column: value], leavesUnchanged: true))
      #expect(written.outcomes.unchanged == (isUnchanged ? 1 : 0), "\(column) = \(value)")
    }
    let tooLong = #expect(throws: BatchError.self) {
      try trial.write(trial.update(["v": "'abcd'"], leavesUnchanged: true))
    }
    #expect(tooLong?.code == .invalidValue)
  }
}
#endif
