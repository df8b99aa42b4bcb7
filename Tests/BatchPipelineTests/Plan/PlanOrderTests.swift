import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Testing

/// A plan tries rows in the order of the run, and knows an order in which they do not fail.
@Suite struct PlanOrderTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let numbers = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)"
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE item (id INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE)",
      "\(numbers) INSERT INTO item SELECT i, i FROM c",
      """
      CREATE TABLE state (id INTEGER PRIMARY KEY, at INTEGER, old INTEGER REFERENCES state)
      """,
      "CREATE INDEX by_old ON state (old)",
      "\(numbers) INSERT INTO state SELECT i, i, nullif(i - 1, 0) FROM c"
    )
  }

  private func report(
    _ entity: String,
    _ action: Job.Action,
    where condition: String? = nil,
    orderBy order: [String] = []
  ) async throws -> PlanReport {
    var source = Job.Source(entity: entity, everything: condition == nil)
    source.where = condition
    source.orderBy = order.map(Job.OrderTerm.init(parsing:))
    var job = Job.test(in: directory, source, action)
    job.database.foreignKeys = true
    return try await job.plan()
  }

  @Test func `a plan of a shift under a unique index suggests the order that makes room`()
    async throws
  {
    for (change, order, other) in [("+", "-position", "position"), ("-", "position", "-position")] {
      let shift = Job.Action.update(.init(set: [.init("position", to: "position \(change) 1")]))
      #expect(
        try await report("item", shift, orderBy: [order]).warnings
          .filter { $0.contains("would fail") } == []
      )
      let warnings = try await report("item", shift, orderBy: [other]).warnings
        .filter { $0.contains("would fail") }
      #expect(warnings.count == 2)
      #expect(warnings.first?.contains("another row has the same item.position now") == true)
      #expect(warnings.last == "none of the first rows would fail with \"orderBy\": [\"\(order)\"]")
    }
  }

  @Test func `a plan suggests no order if none prevents the failures`() async throws {
    let warnings = try await report(
      "item",
      .update(.init(set: [.init("position", to: "7")]))
    ).warnings
    #expect(warnings.contains { $0.contains("would fail") })
    #expect(!warnings.contains { $0.contains("orderBy") })
  }

  @Test func `a plan deletes the newest rows of a self-referencing table first`() async throws {
    let purge = try await report("state", .delete(.init()))
    #expect(purge.sql.fetch.contains("ORDER BY `id` DESC"))
    #expect(purge.sample.first?.identifier == "2000")
    #expect(!purge.warnings.contains { $0.contains("would fail") || $0.contains("refer") })
  }

  @Test func `a plan of a delete in a failing order suggests one that does not fail`() async throws
  {
    let purge = try await report("state", .delete(.init()), orderBy: ["at"])
    let warnings = purge.warnings.filter { $0.contains("would fail") }
    #expect(
      warnings == [
        "1,000 of the first 1,000 rows would fail: another row of \"state\" still refers to it then;"
          + " the first one stops the run",
        "none of the first rows would fail with \"orderBy\": [\"-id\"]",
      ]
    )
    #expect(
      try await report("state", .delete(.init()), orderBy: ["-at"]).warnings
        .filter { $0.contains("would fail") } == []
    )
  }

  @Test func `a plan deletes rows that refer to newer ones in key order`() async throws {
    try TestDatabase.make(in: directory, "UPDATE state SET old = nullif(id + 1, 2001)")
    let purge = try await report("state", .delete(.init()))
    #expect(purge.sql.fetch.hasSuffix("ORDER BY `id`"))
    #expect(!purge.warnings.contains { $0.contains("would fail") })
  }
}
