import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Dispatch
import Testing

/// Fetches that several connections share.
@Suite struct SeveralReadersTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A table whose rowids are far apart, a third of its rows chosen.
  private func makeTable(_ rowIDs: Set<Int64>) throws -> String {
    let path = try TestDatabase.make(
      in: directory,
      "PRAGMA journal_mode = WAL",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, chosen INTEGER NOT NULL, text TEXT)",
      "CREATE INDEX chosen ON t (chosen)",
      "CREATE INDEX texts ON t (text)"
    )
    let connection = try Connection(path: path)
    try connection.execute("BEGIN")
    for (index, id) in rowIDs.enumerated() {
      try connection.run(
        "INSERT INTO t VALUES (?, ?, ?)",
        [.integer(id), .integer(index % 3 == 0 ? 1 : 0), .text("\(index % 7)")]
      )
    }
    try connection.execute("COMMIT")
    return path
  }

  @Test(arguments: 0..<8 as Range<UInt64>)
  func `several readers fetch the list that one reader fetches`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let bounds: ClosedRange<Int64> = seed % 2 == 0 ? -5_000_000...5_000_000 : .min ... .max
    var rowIDs = Set((0..<500).map { _ in Int64.random(in: bounds, using: &random) })
    rowIDs.formUnion([bounds.lowerBound, bounds.upperBound])
    let path = try makeTable(rowIDs)
    let store = try await Store(path: path)
    for condition in [
      nil, "chosen = 1", "text > '3'", "+chosen = 1 OR text = '1'", "id > :from", "0",
      "id IN (SELECT id FROM t WHERE chosen)",
    ] {
      let request = FetchRequest(
        entity: "t",
        where: condition,
        parameters: condition == "id > :from" ? ["from": .integer(-1000)] : [:]
      )
      let one = try await store.fetchIdentifiers(request)
      for readers in [0, 2, 3] {
        let several = try await store.fetchIdentifiers(request, readers: readers)
        #expect(Array(several) == Array(one), "\(condition ?? "all") by \(readers)")
        #expect(several.isSorted && several.header.keyKind == one.header.keyKind)
        try several.verify()
      }
    }
  }

  @Test func `a range of integers is split into parts that cover every integer once`() {
    for range: ClosedRange<Int64> in [
      .min ... .max, 0...0, -1...1, .min ... -1, 5...104, .max - 3 ... .max,
    ] {
      for count in [1, 2, 7, 24] {
        let parts = range.split(into: count)
        #expect(parts.first?.lowerBound == range.lowerBound)
        #expect(parts.last?.upperBound == range.upperBound)
        #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.upperBound + 1 == $1.lowerBound })
        #expect(parts.count <= count)
      }
    }
  }

  @Test func `several readers see one snapshot while another connection commits`() async throws {
    let path = try makeTable(Set((0..<2000).map { Int64($0) * 1000 }))
    let store = try await Store(path: path)
    let request = FetchRequest(entity: "t", where: "+chosen = 1")
    let count = try await store.fetchCount(request)
    let isDone = Lock(false)
    let writer = DispatchQueue(label: "writer")
    // Each commit takes one row out and another one in, as far away as can be.
    writer.async {
      do {
        let connection = try Connection(path: path)
        // A bounded number of commits: while somebody reads, the log only grows.
        for _ in 0..<10_000 where !isDone.withLock({ $0 }) {
          try connection.execute(
            """
            UPDATE t SET chosen = 1 - chosen WHERE id IN (
              (SELECT min(id) FROM t WHERE chosen), (SELECT max(id) FROM t WHERE NOT chosen))
            """
          )
          try connection.execute(
            """
            UPDATE t SET chosen = 1 - chosen WHERE id IN (
              (SELECT max(id) FROM t WHERE chosen), (SELECT min(id) FROM t WHERE NOT chosen))
            """
          )
        }
      } catch {
        Issue.record(error)
      }
    }
    for _ in 0..<50 {
      #expect(try await store.fetchIdentifiers(request, readers: 3).count == count)
    }
    isDone.withLock { $0 = true }
    writer.sync {}
  }
}
