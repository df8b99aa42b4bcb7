import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

/// Fetches whose condition has an index that SQLite ignores in favor of rowid order.
@Suite struct FewRowsTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let connection: Connection

  private static let count = 40_000

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, at INTEGER, kind TEXT, other INTEGER, pad TEXT)",
      """
      WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 39999)
      INSERT INTO t SELECT i * 3 - 60000, (i * 7919) % 40000, iif(i % 1000, 'a', 'b'), i % 10, hex(randomblob(40))
      FROM c
      """,
      "CREATE INDEX by_at ON t (at)",
      "CREATE INDEX by_kind ON t (kind)"
    )
    connection = try Connection(path: path)
  }

  private func query(_ condition: String, limit: Int? = nil) throws -> IdentifierQuery {
    try IdentifierQuery(
      FetchRequest(entity: "t", where: condition, limit: limit),
      schema: Schema(reading: connection),
      connection: connection
    )
  }

  private func few(_ condition: String) throws -> [Int64]? {
    let list = try query(condition).fetchFew(in: connection, store: .made())
    try list?.verify()
    return try list?.integers(in: 0..<(list?.count ?? 0))
  }

  private func rowIDs(_ condition: String) throws -> [Int64] {
    try connection.texts("SELECT id FROM t WHERE \(condition) ORDER BY id").compactMap(Int64.init)
  }

  @Test func `a fetch of few rows in an indexed range uses the index and keeps rowid order`() throws
  {
    for condition in [
      "at < 100", "at > 39950 AND other > 5", "at > 39999", "at < 0",
    ] {
      let found = try #require(try few(condition), "\(condition)")
      #expect(try found == rowIDs(condition), "\(condition)")
    }
    let plan = try query("at < 100").plan(forRows: 100, in: connection)
    #expect(plan.plan.lines == ["SEARCH t USING COVERING INDEX by_at (at<?)"])
    #expect(!plan.sql.contains("ORDER BY"))
  }

  @Test func `a fetch of many rows scans in rowid order`() async throws {
    for condition in ["at < 39000", "at >= 0"] {
      #expect(try few(condition) == nil, "\(condition)")
      let plan = try query(condition).plan(forRows: 39_000, in: connection)
      #expect(plan.plan.lines.allSatisfy { $0.hasPrefix("SCAN") } && plan.sql.contains("ORDER BY"))
      for readers in [1, 2] {
        let list = try await Store(path: path).fetchIdentifiers(
          FetchRequest(entity: "t", where: condition),
          readers: readers
        )
        #expect(try list.integers(in: 0..<list.count) == rowIDs(condition))
      }
    }
    // Each time again, though the statement is the same.
    for _ in 0..<50 { #expect(try few("at < 100")?.count == 100) }
  }

  @Test func `a fetch leaves the plan to SQLite where its own index search does not apply`() throws
  {
    for condition in [
      "kind = 'b'", "other = 3", "id > 59000", "+at < 100", "at < 100 OR other = 3",
    ] {
      #expect(try few(condition) == nil, "\(condition)")
    }
    #expect(try query("at < 100", limit: 5).fetchFew(in: connection, store: .made()) == nil)
  }

  @Test(arguments: 0..<4 as Range<UInt64>)
  func `a random condition selects the rows of a plain query`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let store = try await Store(path: path)
    for _ in 0..<25 {
      let first = Int.random(in: -10..<Self.count, using: &random)
      let length = [1, 30, 800, 5_000, 30_000].randomElement(using: &random) ?? 1
      let more = ["", " AND other < 4", " AND kind = 'a'", " OR at = 7"].randomElement(
        using: &random
      )
      let condition = "at >= \(first) AND at < \(first + length)\(more ?? "")"
      let list = try await store.fetchIdentifiers(FetchRequest(entity: "t", where: condition))
      #expect(
        try list.integers(in: 0..<list.count) == rowIDs(condition),
        "\(condition), seed \(seed)"
      )
    }
  }
}
