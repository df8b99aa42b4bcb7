#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// The bytes of a binary copy, cut anywhere, and damaged anywhere.
@Suite struct KeyCollectorTests {
  private let query: PostgresQuery
  private let bytes: [UInt8]
  private let expected: [PrimaryKey]

  init() throws {
    let database = try TestPostgres(
      """
      CREATE TABLE t (a bigint, b text, PRIMARY KEY (a, b));
      INSERT INTO t SELECT g - 50, repeat('x', g % 40) FROM generate_series(1, 100) AS g
      """
    )
    let session = try database.session()
    let table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: "t", in: session)
    }
    query = try PostgresQuery(
      table: table,
      key: table.requireKey(),
      path: SearchPath(of: session)
    )
    var copied: [UInt8] = []
    try session.copyOut("COPY (\(query.sql(.setting))) TO STDOUT (FORMAT binary)") {
      copied.append(copying: $0)
    }
    bytes = copied
    expected = (1...100).map {
      .encoded(
        EncodedKey([.integer(Int64($0 - 50)), .text(String(repeating: "x", count: $0 % 40))])
      )
    }
  }

  /// The result of pieces that end at some offsets.
  private func keys(_ bytes: [UInt8], cutAt ends: [Int]) throws -> [PrimaryKey]? {
    var keys = KeyCollector(query, store: "S", spill: BlockSpill())
    var start = 0
    for end in ends + [bytes.count] where end >= start {
      try keys.append(copied: bytes.span.extracting(start..<end))
      start = end
    }
    guard keys.isComplete else { return nil }
    let list = keys.finish()
    return try (0..<list.count).map { try list.key(at: $0) }
  }

  @Test func `a copy of keys is decoded however its bytes are cut`() throws {
    #expect(try keys(bytes, cutAt: []) == expected)
    for size in [1, 2, 3, 5, 7, 19, 64] {
      let ends = Array(stride(from: size, to: bytes.count, by: size))
      #expect(try keys(bytes, cutAt: ends) == expected, "pieces of \(size)")
    }
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<200 {
      let ends = (0..<20).map { _ in Int.random(in: 0...bytes.count, using: &generator) }.sorted()
      #expect(try keys(bytes, cutAt: ends) == expected, "seed \(seed)")
    }
  }

  @Test func `a truncated copy of keys is not accepted`() throws {
    for count in 0..<bytes.count {
      #expect(try keys(Array(bytes.prefix(count)), cutAt: []) == nil, "\(count) bytes")
    }
  }

  @Test func `damaged bytes of a copy never trap`() throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<3_000 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        damaged[Int.random(in: 0..<damaged.count, using: &generator)] = .random(
          in: 0...255,
          using: &generator
        )
      }
      do {
        _ = try keys(damaged, cutAt: [])
      } catch {
        #expect(error is BatchError, "seed \(seed)")
      }
    }
  }
}
#endif
