import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Exports of a query, against one statement that produces the same lines.
@Suite struct QueryExportTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE parts (id INTEGER PRIMARY KEY, kind TEXT, price REAL, maker INTEGER)",
      "CREATE TABLE makers (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE)",
      "CREATE VIEW dear AS SELECT id + 0 AS id, price FROM parts WHERE price > 10",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 800)
      INSERT INTO parts SELECT i, 'k' || (i % 7), i % 50 + 0.5, i * 7 % 40 FROM c
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 35)
      INSERT INTO makers SELECT i, 'maker ' || i FROM c
      """
    )
  }

  private func job(
    _ source: Job.Source,
    to file: String = "out.ndjson",
    chunk: Int = 7
  ) -> Job {
    .test(in: directory, source, .exporting(directory, file), chunk: chunk, workers: 3)
  }

  /// The lines that one statement produces for a query.
  private func expected(_ source: Job.Source, _ columns: [String]) throws -> String {
    let query = try #require(source.query)
    let values = columns.map { "'\($0)', \"\($0)\"" }.joined(separator: ", ")
    let order =
      source.orderBy.map { $0.column + ($0.descending ? " DESC" : "") } + (source.key ?? [])
    return try TestDatabase.texts(
      path,
      """
      SELECT json_object(\(values)) FROM (\(query)) AS query WHERE \(source.where ?? "1")
      ORDER BY \(order.joined(separator: ", ")) LIMIT \(source.limit ?? -1)
      """
    ).map { $0 + "\n" }.joined()
  }

  private func copies(_ job: Job) async throws -> Bool? {
    try await job.plan().lookUp?.isCopied
  }

  private struct Query {
    let sql: String
    let columns: [String]
    let key: [String]
    /// Whether SQLite finds a row by its key without looking at many.
    let isFast: Bool
  }

  private static let queries = [
    Query(
      sql: "SELECT p.id, p.kind, m.name FROM parts p JOIN makers m ON m.id = p.maker",
      columns: ["id", "kind", "name"],
      key: ["id"],
      isFast: true
    ),
    Query(
      sql: "SELECT p.id, p.kind, m.name FROM parts p LEFT JOIN makers m ON m.id = p.maker",
      columns: ["name", "id"],
      key: ["id"],
      isFast: true
    ),
    Query(
      sql: "SELECT kind, maker, count(*) AS n, sum(id) AS s FROM parts GROUP BY kind, maker",
      columns: ["kind", "maker", "n", "s"],
      key: ["maker", "kind"],
      isFast: false
    ),
    Query(
      sql: "SELECT kind || '/' || id AS code, id, maker FROM parts",
      columns: ["code", "maker", "id"],
      key: ["code"],
      isFast: false
    ),
    Query(
      sql: "SELECT id, row_number() OVER (ORDER BY kind, id) AS n FROM parts",
      columns: ["id", "n"],
      key: ["id"],
      isFast: false
    ),
    Query(
      sql: "SELECT id, 'part' AS sort FROM parts UNION ALL SELECT id, 'maker' FROM makers",
      columns: ["sort", "id"],
      key: ["id", "sort"],
      isFast: true
    ),
  ]

  @Test(arguments: queries.indices, [1, 3])
  func `a stopped and resumed export of a query has the rows of one statement`(
    number: Int,
    step: Int
  ) async throws {
    let query = Self.queries[number]
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    var source = Job.Source(query: query.sql, key: query.key)
    if Bool.random(using: &generator) {
      let column = try #require(query.columns.randomElement(using: &generator))
      source.orderBy = [.init(column, descending: .random(using: &generator))]
    }
    if Bool.random(using: &generator) { source.limit = .random(in: 1...300, using: &generator) }
    if Bool.random(using: &generator) {
      source.where = "length(\"\(query.columns[0])\") > 1 OR query.\"\(query.columns[1])\" > 'k3'"
    }
    var job = job(source, chunk: .random(in: 1...60, using: &generator))
    job.action = .export(
      .init(file: .init(directory.file("out.ndjson")), format: .ndjson, columns: query.columns)
    )
    let note: Comment = "seed \(seed), query \(number)"
    #expect(try await copies(job) == !query.isFast, note)
    let before = try TestDatabase.dump(Connection(path: path))

    for stops in 0..<1_000 {
      let run = BatchRun(job, options: .telling)
      let seen = Lock(0)
      let summary = try await run.run { event in
        guard case .progress = event else { return }
        let count = seen.withLock { count in
          count += 1
          return count
        }
        if count >= step, stops < 20 { run.stop() }
      }
      if summary.state == .completed { break }
      #expect(summary.state == .stopped, note)
    }
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(try lines == expected(source, query.columns), note)
    #expect(try TestDatabase.dump(Connection(path: path)) == before, note)
  }

  @Test func `an export of a query preserves every kind of value`() async throws {
    try Connection(path: path).execute("CREATE TABLE odd (k, v)")
    try Connection(path: path).execute(
      """
      INSERT INTO odd VALUES (1, '1'), ('1', 1), (1.5, x'00ff'), (x'31', 0.1), ('é', 1e300), ('', '')
      """
    )
    let source = Job.Source(query: "SELECT k, v AS v FROM odd GROUP BY k, v", key: ["k"])
    var looked = job(.init(entity: "odd", key: ["k"]), to: "table.ndjson")
    looked.name = "looked"
    // Six rows are found fast; behind the cross join they are not.
    let slow = Job.Source(
      query: "SELECT k, v FROM odd, (SELECT count(*) AS c FROM parts a, parts b) WHERE c > 0",
      key: ["k"]
    )
    #expect(try await copies(job(source)) == false)
    #expect(try await copies(job(slow)) == true)
    #expect(try await BatchRun(looked).run().state == .completed)
    #expect(try await BatchRun(job(slow)).run().state == .completed)
    #expect(try directory.read("out.ndjson") == directory.read("table.ndjson"))
  }

  @Test(arguments: [
    ("SELECT kind FROM parts", ["kind"], "two rows of \"query\" have the same kind"),
    ("SELECT m.id FROM parts p LEFT JOIN makers m ON m.id = p.id GROUP BY 1", ["id"], "NULL"),
  ])
  func `an export of a query refuses a key that does not identify its rows`(
    query: String,
    key: [String],
    says: String
  ) async throws {
    let job = job(.init(query: query, key: key))
    for error in [
      await #expect(throws: BatchError.self) { try await BatchRun(job).run() },
      await #expect(throws: BatchError.self) { try await copies(job) },
    ] {
      #expect(error?.code == .unstableKey)
      #expect(error?.message.contains(says) == true)
    }
    #expect(try directory.names() == ["test.db"])
  }

  @Test(arguments: queries.indices.prefix(3))
  func `an export of a query has the rows' current values, without vanished rows`(number: Int)
    async throws
  {
    let query = Self.queries[number]
    var source = Job.Source(query: query.sql, key: query.key)
    source.where = number == 2 ? "n > 0 AND s <> 77" : "kind <> 'gone'"
    let selected = try expected(source, query.columns).split(separator: "\n").count
    let path = path
    let summary = try await BatchRun(job(source)).run { event in
      guard case .started = event else { return }
      try? Connection(path: path).execute("DELETE FROM parts WHERE id % 280 % 3 = 0")
      try? Connection(path: path).execute("UPDATE parts SET kind = 'gone' WHERE id = 100")
    }
    #expect(summary.state == .completed)
    #expect(summary.outcomes.vanished > 0)
    #expect(summary.outcomes.total == selected)
    if number < 2 { #expect(summary.outcomes.noLongerMatching == 1) }
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    // Rows that appeared later were not selected.
    let now = try expected(source, columns(of: query))
    let isSubset = Set(lines.split(separator: "\n")).isSubset(of: now.split(separator: "\n"))
    #expect(isSubset)
  }

  private func columns(of query: Query) throws -> [String] {
    let statement = try Connection(path: path).prepare(query.sql)
    return (0..<statement.columnCount).map { statement.columnName(at: $0) }
  }

  @Test func `an unreadable row of a query fails alone`() async throws {
    var job = job(
      .init(
        query: """
          SELECT kind || '/' || id AS code, json_extract(iif(id IN (3, 200), '{', '{"n": 1}'), '$.n') AS n
          FROM parts
          """,
        key: ["code"]
      ),
      chunk: 100
    )
    job.skip = .init(limit: 2)
    #expect(try await copies(job) == true)
    let summary = try await BatchRun(job).run()
    #expect(summary.state == .completedWithFailures)
    #expect(summary.outcomes.failed == 2)
    #expect(summary.outcomes.succeeded == 798)
  }

  @Test func `a view without an index for its keys is exported from a copy`() async throws {
    let job = job(.init(entity: "dear", key: ["id"]))
    #expect(try await copies(job) == true)
    #expect(try await BatchRun(job).run().state == .completed)
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    let expected = try TestDatabase.texts(
      path,
      "SELECT json_object('id', id, 'price', price) FROM dear ORDER BY id"
    )
    #expect(lines == expected.map { $0 + "\n" }.joined())
  }

  @Test func `a job with another query does not resume the run`() async throws {
    let first = job(.init(query: Self.queries[0].sql, key: ["id"]))
    let run = BatchRun(first, options: .telling)
    let summary = try await run.run { event in if case .progress = event { run.stop() } }
    #expect(summary.state == .stopped)
    let other = job(.init(query: Self.queries[1].sql, key: ["id"]))
    let error = await #expect(throws: BatchError.self) { try await BatchRun(other).run() }
    #expect(error?.message.contains("query was") == true)
  }
}
