import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import CSQLite
import Testing

@testable import BatchSQLite

/// Chunks in which some rows cannot be changed.
@Suite struct BisectionTests {
  /// Tables `t` with 1,024 rows, the number `i` of each from 0 on, in the order of their keys.
  static let tables = [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, i, n CHECK (n < 5000))":
      "INSERT INTO t SELECT i + 1, i, 0 FROM c",
    "CREATE TABLE t (id INTEGER PRIMARY KEY , i, n CHECK (n < 5000))":
      "INSERT INTO t SELECT i * 3, i, 0 FROM c",
    "CREATE TABLE t (id INTEGER PRIMARY KEY  , i, n CHECK (n < 5000))":
      "INSERT INTO t SELECT i * 1000, i, 0 FROM c",
    "CREATE TABLE t (key TEXT PRIMARY KEY, i, n CHECK (n < 5000))":
      "INSERT INTO t SELECT printf('order %04d', i), i, 0 FROM c",
    "CREATE TABLE t (a TEXT, b, i, n CHECK (n < 5000), PRIMARY KEY (a, b)) WITHOUT ROWID":
      "INSERT INTO t SELECT 'part ' || (i / 100 + 10), i, i, 0 FROM c",
  ]

  private struct Chunk {
    /// Kept as long as the database is used.
    let directory: TemporaryDirectory
    let connection: Connection
    let change: BulkChange
    let keys: ChunkKeys
  }

  private func makeChunk(_ table: String, _ rows: String, setting n: String) async throws -> Chunk {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      table,
      "WITH c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 1023) \(rows)"
    )
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "t"))
    let connection = try Connection(path: path)
    let query = try IdentifierQuery(
      FetchRequest(entity: "t"),
      schema: store.schema,
      connection: connection
    )
    let change = BulkChange(
      entity: query.entity,
      key: query.key,
      action: .update([("n", SQLExpression(n))]),
      predicate: nil,
      recheck: .skip,
      parameters: [:]
    )
    let keys = try ChunkKeys(list.packed, 0..<list.count, key: query.key)
    return Chunk(directory: directory, connection: connection, change: change, keys: keys)
  }

  @Test(arguments: tables.keys.sorted())
  func `the error names the first row beyond the failure limit`(table: String) async throws {
    let rows = try #require(Self.tables[table])
    let chunk = try await makeChunk(table, rows, setting: "n + iif(i % 100 = 7, 9999, 1)")
    for (policy, row) in [
      (.failChunk, 7), (.skip(upTo: 0), 7), (.skip(upTo: 1), 107), (.skip(upTo: 9), 907),
    ] as [(FailurePolicy, Int)] {
      let error = #expect(throws: BatchError.self) {
        try chunk.connection.transaction(.immediate) { () throws(BatchError) in
          try chunk.change.write(to: chunk.keys, onFailure: policy, in: chunk.connection)
        }
      }
      #expect(error?.message.contains("identifier \(chunk.keys.key(at: row)): ") == true)
      #expect(error?.message.contains("(setting n)") == true)
      #expect(
        (error?.remedy?.contains("more identifiers have failed") == true) == (policy != .failChunk)
      )
    }
  }

  @Test(arguments: tables.keys.sorted(), [[0], [1023], [511, 512], [7, 300, 301, 900]])
  func `failing rows are found by halving, and the other rows are changed`(
    table: String,
    poison: [Int]
  ) async throws {
    let rows = try #require(Self.tables[table])
    let list = poison.map(String.init).joined(separator: ", ")
    let chunk = try await makeChunk(table, rows, setting: "n + iif(i IN (\(list)), 9999, 1)")
    let written = try chunk.connection.transaction(.immediate) {
      () throws(BatchError) in
      try chunk.change.write(
        to: chunk.keys,
        onFailure: .skip(upTo: 10),
        in: chunk.connection
      )
    }
    #expect(written.failures.map(\.number) == poison)
    #expect(
      written.failures.allSatisfy {
        $0.error.code == .constraint && $0.error.message.contains("n < 5000")
      }
    )
    #expect(written.outcomes.failed == poison.count)
    #expect(written.succeeded == 1024 - poison.count)
    let unchanged = try chunk.connection.texts("SELECT i FROM t WHERE n <> 1 ORDER BY i")
    #expect(unchanged == poison.map(String.init))
    #expect(
      try chunk.connection.value("SELECT sum(n) FROM t") == .integer(Int64(1024 - poison.count))
    )
  }

  @Test func `a failing row costs two statements per halving`() async throws {
    for poison in [0, 1, 500, 1023] {
      let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, i, n CHECK (n < 5000))"
      let rows = try #require(Self.tables[table])
      let chunk = try await makeChunk(table, rows, setting: "n + iif(i = \(poison), 9999, 1)")
      let count = try Self.updates(of: chunk.connection) {
        try chunk.connection.transaction(.immediate) { () throws(BatchError) in
          _ = try chunk.change.write(
            to: chunk.keys,
            onFailure: .skip(upTo: 1),
            in: chunk.connection
          )
        }
      }
      #expect(count == 1 + 2 * 10)
    }
  }

  /// How many UPDATE statements a connection runs in `body`.
  private static func updates(of connection: Connection, _ body: () throws -> Void) throws -> Int {
    let count = UnsafeMutablePointer<Int>.allocate(capacity: 1)
    count.initialize(to: 0)
    defer { count.deallocate() }
    sqlite3_trace_v2(
      connection.database,
      UInt32(SQLITE_TRACE_STMT),
      { _, context, _, text in
        let sql = text.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
        if sql?.hasPrefix("UPDATE") == true {
          context?.assumingMemoryBound(to: Int.self).pointee += 1
        }
        return 0
      },
      count
    )
    defer { sqlite3_trace_v2(connection.database, 0, nil, nil) }
    try body()
    return count.pointee
  }

  @Test func `a chunk with more failures than allowed is rolled back`() async throws {
    let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, i, n CHECK (n < 5000))"
    let rows = try #require(Self.tables[table])
    let chunk = try await makeChunk(table, rows, setting: "n + iif(i IN (3, 9, 700), 9999, 1)")
    for limit in [0, 1, 2] {
      let error = #expect(throws: BatchError.self) {
        try chunk.connection.transaction(.immediate) { () throws(BatchError) in
          _ = try chunk.change.write(
            to: chunk.keys,
            onFailure: .skip(upTo: limit),
            in: chunk.connection
          )
        }
      }
      #expect(error?.code == .constraint)
      #expect(try chunk.connection.value("SELECT count(*) FROM t WHERE n <> 0") == .integer(0))
      #expect(chunk.connection.isAutocommit)
    }
  }

  @Test(
    arguments: [
      // Each fails for the row 10 alone.
      ("abs(iif(i = 10, -9223372036854775807 - 1, 1))", nil, true),
      ("iif(i = 10, json('{'), 1)", nil, true),
      ("1", "RAISE(ABORT, 'no')", true), ("1", "RAISE(FAIL, 'no')", true),
      // A transaction that a trigger has ended cannot continue.
      ("1", "RAISE(ROLLBACK, 'no')", false),
    ] as [(String, String?, Bool)]
  )
  func `errors of expressions and triggers are attributed to their row`(
    n: String,
    trigger: String?,
    isAboutRow: Bool
  ) async throws {
    let rows = "INSERT INTO t SELECT i + 1, i, 0 FROM c"
    let chunk = try await makeChunk(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, i, n)",
      rows,
      setting: n
    )
    if let trigger {
      try chunk.connection.execute(
        "CREATE TRIGGER u AFTER UPDATE ON t WHEN new.i = 10 BEGIN SELECT \(trigger); END"
      )
    }
    var failed: [(number: Int, error: BatchError)] = []
    do throws(BatchError) {
      failed = try chunk.connection.transaction(.immediate) { () throws(BatchError) in
        try chunk.change.write(
          to: chunk.keys,
          onFailure: .skip(upTo: 5),
          in: chunk.connection
        ).failures
      }
    } catch {
      #expect(!isAboutRow, "\(error)")
    }
    #expect(failed.map(\.number) == (isAboutRow ? [10] : []))
    let changed = try chunk.connection.value("SELECT count(*) FROM t WHERE n = 1")
    #expect(changed == .integer(isAboutRow ? 1023 : 0))
  }

  @Test func `a failure that does not concern a row is not retried in halves`() async throws {
    let rows = "INSERT INTO t SELECT i + 1, i, 0 FROM c"
    let chunk = try await makeChunk(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, i, n)",
      rows,
      setting: "zeroblob(4096)"
    )
    try chunk.connection.execute("PRAGMA max_page_count = 40")
    let error = #expect(throws: BatchError.self) {
      try chunk.connection.transaction(.immediate) { () throws(BatchError) in
        _ = try chunk.change.write(
          to: chunk.keys,
          onFailure: .skip(upTo: 2000),
          in: chunk.connection
        )
      }
    }
    #expect(error?.code == .diskFull)
    #expect(try chunk.connection.value("SELECT count(*) FROM t WHERE n = 0") == .integer(1024))
  }
}
