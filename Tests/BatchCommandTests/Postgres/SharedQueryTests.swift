#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports of the rows of a query on PostgreSQL.
@Suite(.timeLimit(.minutes(20))) struct SharedQueryTests {
  private static let schema = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE items (id int PRIMARY KEY, owner int, price numeric(10,2), label text, mood mood);
    CREATE TABLE owners (id int PRIMARY KEY, name text COLLATE "C");
    INSERT INTO owners SELECT n, 'owner ' || n FROM generate_series(0, 9) AS n;
    INSERT INTO items SELECT n, n % 12, n / 4.0, 'item ' || n, CASE WHEN n % 3 = 0 THEN 'sad'::mood ELSE 'ok' END
      FROM generate_series(1, 2000) AS n;
    """

  private static func write(
    _ job: SharedJob,
    _ source: [String: Any],
    to output: [String: Any] = ["file": "out.csv"],
    adding more: [String: Any] = [:]
  ) throws {
    let action: [String: Any] = ["type": "export", "format": "csv"]
    try job.writeJob(
      ["source": source, "action": action.merging(output) { $1 }].merging(more) { $1 }
    )
  }

  private static func lines(_ job: SharedJob, _ name: String = "out.csv") throws -> [String] {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: job.directory.file(name)))
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(
      String.init
    )
  }

  /// Settings that slow a process down so much that a test can interfere.
  private static var slowly: [String: Any] { ["throttle": ["identifiersPerSecond": 300]] }

  /// Starts the job, and returns when it has done some rows.
  private static func begun(_ job: SharedJob) throws -> BatchProgram {
    let process = try job.start()
    while let line = process.nextLine() {
      if line.contains("\"event\":\"throttled\""), !line.contains("\"done\":0,") { return process }
    }
    Issue.record("the run ended: \(process.wait().errors)")
    return process
  }

  /// The lines that the server itself writes of a query.
  private static func copy(_ job: SharedJob, _ sql: String) throws -> [String] {
    var lines: [String] = []
    let session = try job.database.session()
    try session.copyLines("COPY (\(sql)\n) TO STDOUT (FORMAT csv)") { line in
      lines.append(line.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) })
      return true
    }
    return lines.map { $0.trimmingCharacters(in: .newlines) }
  }

  // MARK: Its rows

  /// Queries over the tables, and what identifies their rows.
  private static let queries: [(sql: String, key: [String])] = [
    ("SELECT i.id, name, price FROM items i JOIN owners o ON o.id = i.owner", ["id"]),
    (
      "SELECT o.id, count(i.id) AS items, sum(price) FROM owners o LEFT JOIN items i ON i.owner = o.id GROUP BY o.id",
      ["id"]
    ),
    (
      "WITH cheap AS (SELECT * FROM items WHERE price < 50) SELECT id, label, mood FROM cheap",
      ["id"]
    ),
    ("SELECT 'i' AS kind, id FROM items UNION ALL SELECT 'o', id FROM owners", ["kind", "id"]),
    ("SELECT DISTINCT mood FROM items", ["mood"]),
    ("SELECT id, row_number() OVER (PARTITION BY owner ORDER BY id) AS place FROM items", ["id"]),
    ("SELECT owner, label FROM items -- all of them", ["label"]),
    ("SELECT n, n * 2 AS \"twice (n)\" FROM generate_series(1, 500) AS n", ["n"]),
    ("VALUES (1, 'a'), (2, 'b')", ["column1"]),
    (
      "SELECT o.name, i.id, i.label FROM owners o, LATERAL (SELECT * FROM items WHERE owner = o.id) i",
      ["name", "id"]
    ),
  ]

  @Test(arguments: queries.indices)
  func `an export of a query has the rows that the server answers`(number: Int) throws {
    let (sql, key) = Self.queries[number]
    let job = try SharedJob(rows: 0, Self.schema)
    try Self.write(job, ["query": sql, "key": key])
    let plan = try job.batch("plan", "job.json")
    let expected = try Self.copy(job, sql)
    #expect(
      plan.status == 0 && plan.output.replacing(",", with: "").contains("\(expected.count) row"),
      "\(plan.output)\(plan.errors)"
    )
    let run = try job.batch("run", "job.json")
    try #require(run.status == 0, "\(run.errors)")
    #expect(try Self.lines(job).dropFirst().sorted() == expected.sorted())
  }

  @Test func `a condition, parameters, an order and a limit apply to the rows of a query`() throws {
    let job = try SharedJob(rows: 0, Self.schema)
    let parameters = ["least": ["type": "integer", "default": 100], "who": ["type": "text"]]
    try Self.write(
      job,
      [
        "query":
          "SELECT i.id, name, price FROM items i JOIN owners o ON o.id = i.owner WHERE o.name <> :who",
        "key": ["id"], "where": "price >= :least AND name LIKE 'owner%'", "orderBy": ["-price"],
        "limit": 150,
      ],
      to: ["file": "out.csv", "overwrite": true],
      adding: ["parameters": parameters]
    )
    let run = try job.batch("run", "job.json", "--param", "who=owner 3'; DROP TABLE items; --")
    try #require(run.status == 0, "\(run.errors)")
    let all =
      "SELECT i.id, name, price FROM items i JOIN owners o ON o.id = i.owner WHERE price >= 100"
    #expect(
      try Array(Self.lines(job).dropFirst())
        == Self.copy(job, "\(all) ORDER BY price DESC LIMIT 150")
    )
    let some = try job.batch("run", "job.json", "--param", "who=owner 3")
    try #require(some.status == 0, "\(some.errors)")
    #expect(
      try Array(Self.lines(job).dropFirst())
        == Self.copy(job, "\(all) AND name <> 'owner 3' ORDER BY price DESC LIMIT 150")
    )
  }

  /// Rows that leave the query, or no longer satisfy the condition, while the export runs.
  @Test(arguments: ["file", "folder"])
  func `each row of a query is exported as it is at its turn`(output: String) throws {
    let job = try SharedJob(rows: 0, Self.schema)
    let source: [String: Any] = [
      "query": "SELECT i.id, name, price FROM items i JOIN owners o ON o.id = i.owner",
      "key": ["id"],
      "where": "price > 0",
    ]
    try Self.write(job, source, to: [output: "out"], adding: Self.slowly)
    let process = try Self.begun(job)
    try job.database.run(
      "UPDATE items SET owner = 77 WHERE id = 1999; UPDATE items SET price = -1 WHERE id = 1998;"
        + " UPDATE owners SET name = 'another' WHERE id = (SELECT owner FROM items WHERE id = 1997)"
    )
    process.send(SIGKILL)
    _ = process.wait()
    try Self.write(job, source, to: [output: "out"])
    let run = try job.start().wait()
    try #require(run.status == 0, "\(run.errors)")
    let outcomes = try #require(
      JSONOutput.lines(run.output).last?["outcomes"] as? [String: Int]
    )
    #expect(outcomes["vanished"] == 1 && outcomes["noLongerMatching"] == 1, "\(outcomes)")
    let names =
      output == "file"
      ? ["out"]
      : try FileManager.default
        .contentsOfDirectory(atPath: job.directory.file("out")).filter { $0.hasSuffix(".csv") }.map
      { "out/\($0)" }
    let rows = try names.flatMap { try Self.lines(job, $0).filter { !$0.hasPrefix("id,") } }
    let numbers = rows.compactMap { $0.split(separator: ",").first.flatMap { Int($0) } }
    let expected = (1...2000).filter { $0 % 12 < 10 && ![1998, 1999].contains($0) }
    #expect(numbers.sorted() == expected)
    #expect(rows.contains { $0.hasPrefix("1997,another,") })
  }

  @Test func `a query is exported as Parquet and in NDJSON, with the columns asked for`() throws {
    let job = try SharedJob(rows: 0, Self.schema)
    let source: [String: Any] = ["query": Self.queries[0].sql, "key": ["id"]]
    try Self.write(job, source, to: ["file": "out.parquet", "format": "parquet"])
    let parquet = try job.batch("run", "job.json")
    #expect(parquet.status == 0, "\(parquet.errors)")
    try Self.write(
      job,
      source,
      to: ["file": "out.ndjson", "format": "ndjson", "columns": ["name", "price"]]
    )
    let run = try job.batch("run", "job.json", "--run-id", "second")
    try #require(run.status == 0, "\(run.errors)")
    #expect(try Self.lines(job, "out.ndjson").first == #"{"name":"owner 1","price":0.25}"#)
  }

  @Test func `an infinite numeric is a text that a load turns back into one`() throws {
    let job = try SharedJob(rows: 0)
    try Self.write(
      job,
      [
        "query":
          "SELECT 1 AS id, 'Infinity'::numeric AS n, '-Infinity'::numeric AS m, 'NaN'::numeric AS x",
        "key": ["id"],
      ]
    )
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try Self.lines(job)[1] == "1,Infinity,-Infinity,NaN")
    try job.database.run("CREATE TABLE back (id int, n numeric, m numeric, x numeric)")
    try job.directory.write(
      """
      { "version": 1, "name": "back", "database": { "url": "\(job.url())" },
        "action": { "type": "load", "files": "out.csv", "format": "csv", "into": "back",
          "types": { "n": "any", "m": "any", "x": "any" } } }
      """,
      to: "back.json"
    )
    let load = try job.batch("run", "back.json")
    #expect(load.status == 0, "\(load.errors)")
    let right = "SELECT count(*) FROM back WHERE n = 'Infinity' AND m = '-Infinity' AND x = 'NaN'"
    #expect(try job.database.session().integer(right) == 1)
  }

  /// Each chunk computes the query once, not once for each key.
  @Test(arguments: [
    "SELECT label, count(*) AS n FROM big GROUP BY label", "SELECT label, id FROM big",
    "SELECT label, sum(id) OVER (ORDER BY id) AS s FROM big",
  ])
  func `a query without an index for its key is exported in bearable time`(sql: String) throws {
    let job = try SharedJob(
      rows: 0,
      "CREATE TABLE big AS SELECT n AS id, 'label ' || n AS label FROM generate_series(1, 20000) AS n"
    )
    try Self.write(job, ["query": sql, "key": ["label"]])
    let clock = ContinuousClock()
    let start = clock.now
    #expect(try job.batch("plan", "job.json").status == 0)
    let run = try job.batch("run", "job.json")
    #expect(run.status == 0, "\(run.errors)")
    // A minute and more for a join with each key.
    #expect(start.duration(to: clock.now) < .seconds(60))
    #expect(try Self.lines(job).dropFirst().sorted() == Self.copy(job, sql).sorted())
  }

  // MARK: What is refused

  @Test(arguments: [
    ("SELECT id FROM items; DROP TABLE items", "a semicolon"),
    ("DELETE FROM items RETURNING id", "there is no SELECT"),
    (
      "WITH gone AS (DELETE FROM items RETURNING id) SELECT id FROM gone",
      "must be at the top level"
    ),
    ("SELECT id FROM items FOR UPDATE", "not allowed"),
    ("SELECT id FROM items) AS x, (SELECT 1", "no opening one"),
    ("SELECT id FROM items ORDER BY id", "source.orderBy"),
    ("SELECT id FROM items LIMIT 5", "source.limit"),
    ("SELECT id FROM items OFFSET 5", "source.limit"),
    ("SELECT id, random() AS r FROM items", "changes from call to call"),
    ("SELECT id FROM items WHERE now() > '2000-01-01'", "$runStartedAt"),
    ("SELECT id, 'now'::timestamptz AS t FROM items", "$runStartedAt"),
    ("SELECT id FROM items WHERE timestamp 'today' > '2000-01-01'", "$runStartedAt"),
    ("SELECT id, ('{now}'::timestamptz[])[1] AS t FROM items", "$runStartedAt"),
    ("SELECT id, id FROM items", "two columns are called \"id\""),
    ("SELECT pg_sleep(1), id FROM items", "pg_sleep"),
    ("SELECT id FROM items TABLESAMPLE SYSTEM (5)", "not allowed"),
    ("SELECT oid AS id FROM pg_class", "may not be read"),
    ("SELECT id FROM itemz", "itemz"),
    ("SELECT owner AS id FROM items", "the same id"),
    ("SELECT label FROM items", "no attribute \"id\""),
    ("SELECT", "id"),
    ("SELECT id INTO other FROM items", "INTO"),
    ("SELECT id FROM items WHERE id = :nothing", "no parameter"),
    ("SELECT query_to_xml('DELETE FROM items', true, true, '')::text AS id", "query_to_xml"),
  ])
  func `a query that is no plain SELECT with a key is refused`(sql: String, words: String) throws {
    let job = try SharedJob(rows: 0, Self.schema)
    try Self.write(job, ["query": sql, "key": ["id"]])
    for command in ["plan", "run"] {
      let result = try job.batch(command, "job.json")
      #expect(result.status == 2 || words == "the same id" && result.status == 1, "\(result)")
      #expect(result.errors.contains(words), "\(result.errors)")
      #expect(!FileManager.default.fileExists(atPath: job.directory.file("out.csv")))
    }
    #expect(try job.database.session().integer("SELECT count(*) FROM items") == 2_000)
  }

  @Test func `a column that the query reads and that changes ends the run with one clear line`()
    throws
  {
    let job = try SharedJob(rows: 0, Self.schema)
    let source: [String: Any] = ["query": Self.queries[0].sql, "key": ["id"]]
    try Self.write(job, source, adding: Self.slowly)
    let process = try Self.begun(job)
    try job.database.run("ALTER TABLE owners RENAME COLUMN name TO title")
    let run = process.wait()
    #expect(run.status != 0 && run.errors.contains("owners"), "\(run.errors)")
    try job.database.run(
      "ALTER TABLE owners RENAME COLUMN title TO name; ALTER TABLE owners ADD COLUMN more int"
    )
    try Self.write(job, source)
    #expect(try job.start().wait().status == 0)
    #expect(
      try Self.lines(job).dropFirst().sorted() == Self.copy(job, Self.queries[0].sql).sorted()
    )
  }
}
#endif
