#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Random tables, jobs and changes on a server: every value that a job would not have given is found, and
/// nothing else is reported.
///
/// `BATCH_SEQUENCES` says how many.
@Suite(.timeLimit(.minutes(60))) struct SharedVerifyModelTests {
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 60

  @Test(arguments: 0..<count)
  func `a verification on the server finds exactly the undeclared change`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let table = VerifiedTable(using: &random)
    let job = try SharedJob(rows: 1, table.script)
    try job.writeJob(table.job)
    let run = try job.start().wait()
    #expect(run.status == 0 || run.status == 4, "seed \(seed): \(run.errors)")
    #expect(try table.differences(job).isEmpty, "seed \(seed): \(table.script)")
    try Self.verify(job, finds: [], "seed \(seed) \(table.script) \(table.job)")
    let plant = table.plant(using: &random)
    try job.database.run(plant)
    let differences = try table.differences(job)
    try Self.verify(job, finds: differences, "seed \(seed) \(table.script) \(table.job) \(plant)")
  }

  /// Verifies the rows; `differences` are the keys of those that are not as the job leaves them.
  private static func verify(
    _ job: SharedJob,
    finds differences: [String],
    _ told: Comment
  ) throws {
    let result = try job.batch("verify", "job.json", "--against", "before", "--json")
    #expect(result.status == (differences.isEmpty ? 0 : 1), "\(told) \(result.errors)")
    guard result.status < 2 else { return }
    let found = try JSONOutput.object(result.output)
    let counts = ["changed", "added", "removed", "outcome"].compactMap { found[$0] as? Int }
    #expect(counts.reduce(0, +) == differences.count, "\(told) \(found)")
    let keys = try #require(found["differences"] as? [[String: Any]]).compactMap {
      ($0["key"] as? [[String: Any]])?.compactMap { $0["value"] as? String }.joined(separator: " ")
        .replacing("'", with: "")
    }
    #expect(keys.count == min(20, differences.count), "\(told)")
    #expect(Set(keys).isSubset(of: differences), "\(told)")
  }
}

/// A table `items` of random columns, its copy `before`, and a job over it.
private struct VerifiedTable {
  /// A type of a column, with the text of row `i`, what a job may set, and another value.
  struct Kind {
    let type: String
    let value: String
    let next: [String]
    let other: String

    init(_ type: String, _ value: String, _ next: [String], _ other: String) {
      (self.type, self.value, self.next, self.other) = (type, value, next, other)
    }
  }

  /// `c` is the column.
  static let kinds = [
    Kind("int", "i * 7", ["c + 1", "c % 3", "-c", "NULL"], "coalesce(c, 0) + 1000"),
    Kind("bigint", "i * 7000000000", ["c / 2", "abs(c)"], "coalesce(c, 0) + 1"),
    Kind("smallint", "i % 100", ["(c + 1)::smallint"], "(coalesce(c, 0) + 1)::smallint"),
    Kind(
      "numeric",
      "i / 3.0",
      ["c * 1.5", "round(c, 1)", "c::float8"],
      "coalesce(c, 0) + 0.0000001"
    ),
    // An equal value with one digit more.
    Kind(
      "numeric",
      "i",
      ["c + 0.10"],
      "(coalesce(c, 0)::text || CASE WHEN scale(c) > 0 THEN '0' ELSE '.0' END)::numeric"
    ),
    Kind("numeric(10, 2)", "i / 3.0", ["c / 7", "1e3"], "coalesce(c, 0) + 0.01"),
    Kind(
      "float8",
      "i / 7.0",
      ["c * 2", "'NaN'", "sqrt(abs(c))"],
      "CASE WHEN c = 0 THEN '-0' ELSE 0 END"
    ),
    Kind("float8", "0", ["c", "'-0'"], "CASE WHEN c::text = '0' THEN '-0' ELSE 0 END::float8"),
    Kind("float4", "i / 3.0", ["c + 0.1"], "coalesce(c, 0) + 1"),
    Kind(
      "text",
      "'t' || i",
      ["upper(c) || 'x'", "c || c", "''", "left(c, 1)"],
      "coalesce(c, '') || ' '"
    ),
    Kind("varchar(12)", "'v' || i", ["replace(c, 'v', 'w')"], "'other'"),
    Kind("char(6)", "'c' || i", ["c || 'd'"], "CASE WHEN c = 'o' THEN 'p' ELSE 'o' END"),
    Kind("bool", "i % 2 = 0", ["NOT c", "true"], "NOT coalesce(c, true)"),
    Kind("date", "date '2026-01-01' + i::int", ["c + 1", "'infinity'"], "'1999-01-01'"),
    Kind(
      "timestamptz",
      "timestamptz '2026-01-01 10:00+01' + i * interval '1 hour'",
      ["c + interval '1 day'"],
      "'1999-01-01 00:00:00.000001+00'"
    ),
    Kind(
      "timestamp",
      "timestamp '2026-03-29 01:30' + i * interval '1 minute'",
      ["c - interval '1 month'"],
      "'-infinity'"
    ),
    Kind(
      "interval",
      "i * interval '1 day'",
      ["c * 2", "c + interval '1 month'"],
      "CASE WHEN c::text = '30 days' THEN interval '1 month' ELSE '30 days' END"
    ),
    Kind(
      "uuid",
      "md5(i::text)::uuid",
      ["md5(c::text)::uuid"],
      "'00000000-0000-0000-0000-000000000001'"
    ),
    Kind(
      "bytea",
      "decode(lpad(to_hex(i), 8, '0'), 'hex')",
      ["c || '\\x00'::bytea", "''"],
      "coalesce(c, '') || '\\xff'::bytea"
    ),
    Kind(
      "jsonb",
      "jsonb_build_object('i', i, 'a', NULL)",
      ["c || '{\"b\": [1]}'", "c - 'a'"],
      "'[1.0]'"
    ),
    Kind("json", "json_build_object('i', i)", ["c"], "(coalesce(c, '{}')::text || ' ')::json"),
    Kind("int[]", "ARRAY[i::int, NULL]", ["c || 1", "'{}'"], "array_append(c, NULL)"),
    Kind(
      "text[]",
      "ARRAY['a', '', i::text]",
      ["c || NULL::text", "array_remove(c, '')"],
      "array_append(c, 'NULL')"
    ),
    Kind(
      "int4range",
      "int4range(i::int, i::int + 5)",
      ["c * '[0,50)'"],
      "CASE WHEN c = 'empty' THEN '(,)' ELSE 'empty' END::int4range"
    ),
    Kind("inet", "'10.0.0.' || i % 250", ["broadcast(c)"], "'::1/64'"),
    Kind(
      "mood",
      "CASE i % 2 WHEN 0 THEN 'ok' ELSE 'sad one' END::mood",
      ["'ok'"],
      "CASE WHEN c = 'happy' THEN 'ok' ELSE 'happy' END::mood"
    ),
    Kind("code", "'d' || i", ["c || '!'"], "coalesce(c, '') || '?'"),
    Kind("point", "point(i, 0.5)", ["point(c[1], c[0])"], "point(1, 3e-300)"),
  ]

  static let keys = [
    [Kind("bigint", "i", [], "(SELECT max(c) + 1 FROM items)")],
    [Kind("text", "'k' || i % 9", [], "'new'"), Kind("int", "i", [], "5")],
    [Kind("uuid", "md5(i::text)::uuid", [], "'00000000-0000-0000-0000-000000000000'")],
    [Kind("numeric", "i + 0.50", [], "-1.0")],
    [
      Kind("date", "date '2026-01-01' + i::int", [], "'1999-01-01'"),
      Kind("bool", "i % 2 = 0", [], "true"),
    ],
    [
      Kind("mood", "CASE i % 2 WHEN 0 THEN 'ok' ELSE 'sad one' END::mood", [], "'happy'"),
      Kind("smallint", "i", [], "7::smallint"),
    ],
    [Kind("timestamptz", "timestamptz '2026-01-01' + i * interval '1 hour'", [], "'1999-01-01'")],
  ]

  struct Column {
    let name: String
    let kind: Kind

    var quoted: String { PostgresName.quoted(name) }
  }

  let key: [Column]
  let columns: [Column]
  let set: [String: String]
  let isDelete: Bool
  let isPoisoned: Bool
  let script: String

  init(using random: inout SeededGenerator) {
    func pick<Value>(_ values: [Value]) -> Value {
      values[Int.random(in: values.indices, using: &random)]
    }
    func named(_ kinds: [Kind], _ name: String) -> [Column] {
      kinds.enumerated().map { index, kind in
        let isOdd = Bool.random(using: &random)
        return Column(name: isOdd ? "\(name) \"\(index)\"" : "\(name)\(index)", kind: kind)
      }
    }
    key = named(pick(Self.keys), "key")
    columns = named(
      (0..<Int.random(in: 1...6, using: &random)).map { _ in pick(Self.kinds) },
      "Col"
    )
    isDelete = Int.random(in: 0..<4, using: &random) == 0
    isPoisoned = !isDelete && Int.random(in: 0..<3, using: &random) == 0
    var set: [String: String] = [:]
    for column in columns.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random)) {
      set[column.name] = Self.of(column, pick(column.kind.next))
    }
    self.set = set
    let count = Int.random(in: 1...150, using: &random)
    let all = key + columns
    let definitions =
      all.map { "\($0.quoted) \($0.kind.type)" } + [
        "chosen int NOT NULL", "poison bool NOT NULL",
        "PRIMARY KEY (\(key.map(\.quoted).joined(separator: ", ")))",
      ]
    let values =
      key.map { "(\($0.kind.value))::\($0.kind.type)" }
      + columns.map { "CASE WHEN i % 5 = 0 THEN NULL ELSE (\($0.kind.value))::\($0.kind.type) END" }
      + ["i % 3", "i % 11 = 7"]
    let rows = "WHERE chosen = 1\(isPoisoned ? " AND NOT poison" : "")"
    let assignments = set.map { "\(PostgresName.quoted($0)) = \($1)" }.joined(separator: ", ")
    script = """
      CREATE TYPE mood AS ENUM ('sad one', 'ok', 'happy');
      CREATE DOMAIN code AS varchar(20);
      CREATE TABLE items (\(definitions.joined(separator: ", ")));
      INSERT INTO items SELECT \(values.joined(separator: ", ")) FROM generate_series(1, \(count)) AS i;
      CREATE TABLE before AS TABLE items;
      CREATE TABLE expected AS TABLE items;
      \(isDelete ? "DELETE FROM expected \(rows)" : "UPDATE expected SET \(assignments) \(rows)");
      \(isPoisoned ? "ALTER TABLE items ADD CONSTRAINT guard CHECK (NOT poison) NOT VALID" : "")
      """
  }

  private static func of(_ column: Column, _ expression: String) -> String {
    expression.replacing(/\bc\b/, with: column.quoted)
  }

  var job: [String: Any] {
    let action: [String: Any] = isDelete ? ["type": "delete"] : ["type": "update", "set": set]
    return [
      "source": ["entity": "items", "where": "chosen = 1"], "action": action,
      "chunk": ["size": 7], "skip": ["limit": 1000],
    ]
  }

  /// The keys of the rows that differ from the expected ones in a byte of their text.
  func differences(_ job: SharedJob) throws -> [String] {
    let all = (key + columns).map { "\($0.quoted)::text" } + ["chosen::text", "poison::text"]
    let names = key.map { "\($0.quoted)::text" }.joined(separator: " || ' ' || ")
    func texts(_ table: String) -> String {
      "SELECT \(names) AS name, ARRAY[\(all.joined(separator: ", "))] AS row FROM \(table)"
    }
    let rows = try job.database.session().execute(
      """
      SELECT coalesce(a.name, b.name) FROM (\(texts("items"))) AS a
      FULL JOIN (\(texts("expected"))) AS b ON a.name = b.name COLLATE "C"
      WHERE a.row IS DISTINCT FROM b.row ORDER BY 1
      """
    )
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// A statement of another program, which may change failed rows, too.
  func plant(using random: inout SeededGenerator) -> String {
    let name = key.map(\.quoted).joined(separator: ", ")
    let row =
      "(\(name)) IN (SELECT \(name) FROM items ORDER BY md5(ROW(\(name))::text || '\(Int.random(in: 0..<99, using: &random))') LIMIT 1)"
    let column = columns[Int.random(in: columns.indices, using: &random)]
    let other = "(\(Self.of(column, column.kind.other)))::\(column.kind.type)"
    let keys = key.map { "(\(Self.of($0, $0.kind.other)))::\($0.kind.type)" }
    let statement =
      switch Int.random(in: 0..<7, using: &random) {
      case 0: "DELETE FROM items WHERE \(row)"
      case 1:
        "INSERT INTO items (\(name), chosen, poison) VALUES (\(keys.joined(separator: ", ")), 0, false)"
      case 2:
        "UPDATE items SET (\(name), chosen) = (SELECT \(keys.joined(separator: ", ")), chosen) WHERE \(row)"
      case 3: "UPDATE items SET \(column.quoted) = NULL WHERE \(row)"
      case 4 where isDelete:
        "INSERT INTO items SELECT * FROM before WHERE chosen = 1 AND NOT poison LIMIT 1"
      case 4:
        "UPDATE items SET \(column.quoted) = b.\(column.quoted) FROM before AS b WHERE \(key.map { "items.\($0.quoted) = b.\($0.quoted)" }.joined(separator: " AND ")) AND items.chosen = 1"
      default: "UPDATE items SET \(column.quoted) = \(other) WHERE \(row)"
      }
    return "ALTER TABLE items DROP CONSTRAINT IF EXISTS guard; \(statement)"
  }
}
#endif
