import BatchRuns
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Testing

/// Runs in chunks against the one statement, with conditions that look at more than the row.
@Suite struct RecheckModelTests {
  /// A job of a table `c` beside a table `d`, and how it is run.
  private struct Trial: CustomStringConvertible {
    let seed: UInt64
    let condition: String
    let deletes: Bool
    let set: [(column: String, value: String)]
    let statements: [String]
    let chunk: Int
    let workers: Int
    let stops: Bool

    init(seed: UInt64) {
      self.seed = seed
      var random = SeededGenerator(seed: seed)
      stops = Bool.random(using: &random)
      let count = Int.random(in: 1...(stops ? 250 : 60), using: &random)
      var statements = [
        Bool.random(using: &random)
          ? "CREATE TABLE c (id INTEGER PRIMARY KEY, email TEXT, v, w, state TEXT)"
          : "CREATE TABLE c (id TEXT PRIMARY KEY NOT NULL, email TEXT, v, w, state TEXT)",
        "CREATE TABLE d (c_id, x)",
      ]
      if Bool.random(using: &random) { statements.append("CREATE INDEX by_email ON c (email)") }
      for id in 1...count where Int.random(in: 0..<5, using: &random) > 0 {
        let v = Int.random(in: 0..<8, using: &random)
        let email = Int.random(in: 0..<max(2, count / 3), using: &random)
        let state = ["'x'", "'y'", "NULL"].randomElement(using: &random) ?? "NULL"
        statements.append(
          "INSERT INTO c VALUES (\(id), 'e\(email)', \(v == 0 ? "NULL" : "\(v)"), \(id % 7), \(state))"
        )
        if Bool.random(using: &random) {
          statements.append("INSERT INTO d VALUES (\(id), \(v))")
        }
      }
      self.statements = statements
      condition = Self.condition(depth: 2, using: &random)
      deletes = Bool.random(using: &random)
      let values = ["v * 10", "coalesce(v, 0) + 1", "NULL", "w"]
      set = [
        ("v", values.randomElement(using: &random) ?? "w"),
        ("email", ["email || '!'", "'e1'"].randomElement(using: &random) ?? "email"),
        ("state", ["'x'", "NULL", "state"].randomElement(using: &random) ?? "state"),
      ].shuffled(using: &random).dropLast(Int.random(in: 0...2, using: &random))
      chunk = [1, 7, 1000].randomElement(using: &random) ?? 1
      workers = [1, 3].randomElement(using: &random) ?? 1
    }

    private static func condition(
      depth: Int,
      using random: inout SeededGenerator
    ) -> String {
      let terms = [
        "v > (SELECT avg(v) FROM c)", "v >= (SELECT max(v) FROM c AS o WHERE o.email = c.email)",
        "id NOT IN (SELECT min(id) FROM c GROUP BY email)", "id IN (SELECT c_id FROM d)",
        "id NOT IN (SELECT c_id FROM d WHERE x > 3)", "v IN (SELECT w FROM c WHERE state = 'x')",
        "EXISTS (SELECT 1 FROM d WHERE c_id = c.id AND x = c.v)",
        "EXISTS (SELECT 1 FROM c AS o WHERE o.email = c.email AND o.id < c.id)",
        "NOT EXISTS (SELECT 1 FROM c o WHERE o.state IS c.state AND o.v > c.v)",
        "(SELECT count(*) FROM c) > 10",
        "(SELECT count(*) FROM c o WHERE o.v = c.v) BETWEEN 1 AND 3",
        "v BETWEEN 2 AND 6", "v NOT BETWEEN (SELECT min(v) FROM c) AND 3", "state = 'x'",
        "state IS NULL", "v IN (1, 3, 5)", "NOT w = 3", "CASE WHEN v > 3 AND w THEN 1 ELSE w END",
        "CASE WHEN v > (SELECT avg(v) FROM c) THEN state = 'x' END", "w -- AND 0\n", "email > 'e1'",
      ]
      func term() -> String { terms.randomElement(using: &random) ?? "1" }
      guard depth > 0 else { return term() }
      switch Int.random(in: 0..<8, using: &random) {
      case 0: return term()
      case 1: return "\(term()) OR \(condition(depth: depth - 1, using: &random))"
      case 2: return "NOT (\(condition(depth: depth - 1, using: &random)))"
      case 3: return "(\(condition(depth: depth - 1, using: &random)))"
      case 4:
        let first = condition(depth: depth - 1, using: &random)
        return "(\(first)) AND (\(condition(depth: depth - 1, using: &random)))"
      default: return "\(term()) AND \(condition(depth: depth - 1, using: &random))"
      }
    }

    /// What the job does, in one statement.
    ///
    /// A subquery finds its rows before any is changed: SQLite 3.40 updates rows while it still
    /// searches for others, even if the condition reads them, as with `NOT EXISTS (…)`.
    var statement: String {
      let rows = "id IN (SELECT id FROM c WHERE \(condition))"
      if deletes { return "DELETE FROM c WHERE \(rows)" }
      let set = set.map { "\($0.column) = \($0.value)" }.joined(separator: ", ")
      return "UPDATE c SET \(set) WHERE \(rows)"
    }

    var description: String {
      "seed \(seed): \(statement); chunks of \(chunk), \(workers) workers\(stops ? ", stopped" : "")"
    }

    func job(in directory: TemporaryDirectory) -> Job {
      .test(
        in: directory,
        .init(entity: "c", where: condition),
        deletes
          ? .delete(.init())
          : .update(.init(set: set.map { .init($0.column, to: $0.value) })),
        chunk: chunk,
        workers: workers
      )
    }
  }

  @Test func `a run in chunks has the effect of one statement`() async throws {
    let first = UInt64.random(in: 0..<1_000_000)
    print("RecheckModelTests: seeds from \(first)")
    var changed = 0
    for seed in first..<first + 40 {
      let trial = Trial(seed: seed)
      let directory = try TemporaryDirectory()
      for name in ["test.db", "twin.db"] {
        let path = try TestDatabase.make(name, in: directory)
        let connection = try Connection(path: path)
        for statement in trial.statements { try connection.execute(statement) }
      }
      let twin = try Connection(path: directory.file("twin.db"))
      try twin.execute(trial.statement)
      let expected = twin.changes

      let run = BatchRun(trial.job(in: directory), options: .telling)
      var summary = try await run.run { event in
        if trial.stops, case .progress = event { run.stop() }
      }
      while summary.state == .stopped {
        summary = try await BatchRun(trial.job(in: directory)).run()
      }
      let store = try Connection(path: directory.file("test.db"))
      #expect(summary.outcomes.succeeded == expected && summary.total == expected, "\(trial)")
      #expect(
        try TestDatabase.dump(store, table: "c") == TestDatabase.dump(twin, table: "c"),
        "\(trial)"
      )
      changed += expected
    }
    #expect(changed > 0)
  }

  @Test func `a row that no longer satisfies its own terms is left unchanged`() async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(600, in: directory)
    let condition = "n = 0 AND id > (SELECT avg(id) FROM numbers)"
    func job(_ recheck: Recheck, _ name: String) -> Job {
      .test(
        name,
        in: directory,
        .init(entity: "numbers", where: condition, recheck: recheck),
        chunk: 5,
        workers: 1,
        path: directory.file("\(name).batch")
      )
    }
    let run = BatchRun(job(.row, "first"), options: .telling)
    let stopped = try await run.run { event in if case .progress = event { run.stop() } }
    #expect(stopped.state == .stopped)
    // A row still to do is touched, another goes, and the average rises above all.
    let connection = try Connection(path: path)
    try connection.execute("UPDATE numbers SET n = 7 WHERE id = 600")
    try connection.execute("DELETE FROM numbers WHERE id = 599")
    try connection.execute("INSERT INTO numbers VALUES (1000000, 1, NULL)")
    let summary = try await BatchRun(job(.row, "first")).run()
    #expect(summary.state == .completed && summary.total == 300)
    #expect(summary.outcomes.succeeded == 298)
    #expect(summary.outcomes.noLongerMatching == 1 && summary.outcomes.vanished == 1)
    #expect(try connection.value("SELECT n FROM numbers WHERE id = 600") == .integer(7))
  }

  @Test func `recheck skip and fail apply the whole condition to each row again`() async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE c (id INTEGER PRIMARY KEY, v)",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      INSERT INTO c SELECT i, i FROM n
      """
    )
    func run(_ recheck: Recheck) async throws -> RunSummary {
      try await BatchRun(
        .test(
          in: directory,
          .init(entity: "c", where: "v > (SELECT avg(v) FROM c)", recheck: recheck),
          .update(.init(set: [.init("v", to: "v * 10")]))
        )
      ).run()
    }
    let skipped = try await run(.skip)
    #expect(skipped.total == 500 && skipped.outcomes.noLongerMatching > 0)
    try Connection(path: path).execute("UPDATE c SET v = id")
    #expect(try await run(.row).outcomes.succeeded == 500)
    try Connection(path: path).execute("UPDATE c SET v = id")
    let failed = try await run(.fail)
    #expect(failed.state == .failed && failed.error?.contains("no longer satisfy") == true)
  }

  @Test func `an export and a transform recheck only a row's own terms`() async throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(40, in: directory)
    let condition = "n = 0 AND id > (SELECT avg(id) + 0 * sum(n) FROM numbers)"
    for recheck in [Recheck.row, .skip] {
      let export = Job.test(
        "export-\(recheck)",
        in: directory,
        .init(entity: "numbers", where: condition, recheck: recheck),
        .exporting(directory, "\(recheck).ndjson"),
        path: directory.file("export-\(recheck).batch")
      )
      #expect(try await BatchRun(export).run().outcomes.succeeded == 20)
    }
    let doubling = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { row in try row.set(n, to: 100 * (row[id] ?? 0)) }
    }
    let transform = Job.test(
      "transform",
      in: directory,
      .init(entity: "numbers", where: "n = 0 AND id > (SELECT avg(id + n) FROM numbers)"),
      .transform(.init(columns: ["id"], writes: ["n"], program: .handler("double"))),
      path: directory.file("transform.batch")
    )
    let summary = try await BatchRun(transform, handlers: ["double": doubling]).run()
    #expect(summary.total == 20 && summary.outcomes.succeeded == 20)
  }
}
