import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

/// Fetches of all rows, of tables with and without gaps.
@Suite struct UnbrokenTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let connection: Connection

  private static let count = 20_000

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(Self.count, in: directory)
    connection = try Connection(path: path)
  }

  private func unbroken(_ request: FetchRequest) throws -> IdentifierList? {
    let schema = try Schema(reading: connection)
    let query = try IdentifierQuery(request, schema: schema, connection: connection)
    return try query.fetchUnbroken(in: connection, store: .made())
  }

  @Test(arguments: [-3_000, 0, Int.max - 20_000, Int.min])
  func `a table without gaps is fetched without reading its rows`(first: Int) throws {
    try connection.execute("DELETE FROM numbers")
    try connection.execute(
      """
      WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 19999)
      INSERT INTO numbers (id) SELECT ? + i FROM c
      """,
      .integer(Int64(first))
    )
    let list = try #require(try unbroken(FetchRequest(entity: "numbers")))
    #expect(try list.integers(in: 0..<list.count) == (0..<20_000).map { Int64(first + $0) })
    try list.verify()
  }

  @Test(arguments: [1, 2, 4_096, 4_097, 10_000, 19_999, 20_000])
  func `a single missing row is noticed, wherever it is`(missing: Int) async throws {
    try connection.execute("DELETE FROM numbers WHERE id = ?", .integer(Int64(missing)))
    let list = try await Store(path: path).fetchIdentifiers(FetchRequest(entity: "numbers"))
    #expect(list.count == Self.count - 1)
    #expect(try !list.integers(in: 0..<list.count).contains(Int64(missing)))
  }

  @Test func `a fetch with a condition, another order or a limit reads the rows`() throws {
    #expect(try unbroken(FetchRequest(entity: "numbers")) != nil)
    for request in [
      FetchRequest(entity: "numbers", where: "n = 0"),
      FetchRequest(entity: "numbers", orderBy: [.init("id", descending: true)]),
      FetchRequest(entity: "numbers", orderBy: [.init("n")]),
      FetchRequest(entity: "numbers", limit: 15_000),
      FetchRequest(entity: "numbers", predicate: nil, key: ["label"]),
    ] { #expect(try unbroken(request) == nil, "\(request)") }
    try connection.execute("DELETE FROM numbers")
    #expect(try unbroken(FetchRequest(entity: "numbers")) == nil)
  }
}
