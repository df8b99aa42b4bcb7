import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Ranges of keys that have many other rows, or rows elsewhere.
@Suite(.timeLimit(.minutes(2))) struct KeyRangeTests {
  /// A table of texts, the rows selected from it, and a change of them.
  private struct Trial {
    let directory: TemporaryDirectory
    let store: Store
    let list: IdentifierList
    let lane: WriterLane
    let worker: StoreConnection
    let change: BulkChange

    init(
      _ rows: [String],
      options: String = "",
      where condition: String,
      _ action: BulkChange.Action
    ) async throws {
      directory = try TemporaryDirectory()
      let path = try TestDatabase.make(
        in: directory,
        "CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY, n INTEGER) \(options)"
      )
      let connection = try Connection(path: path)
      try connection.execute("BEGIN")
      for (number, id) in rows.enumerated() {
        try connection.execute("INSERT INTO t VALUES (?, ?)", .text(id), .integer(Int64(number)))
      }
      try connection.execute("COMMIT")
      let store = try await Store(path: path)
      self.store = store
      let entity = try store.schema.entity(named: "t")
      list = try await store.connection(label: "fetch").perform { connection throws(BatchError) in
        try IdentifierQuery(
          FetchRequest(entity: "t", where: condition),
          schema: store.schema,
          connection: connection
        ).inRowIDOrder().fetch(in: connection, store: store.identity)
      }
      var change = BulkChange(
        entity: entity,
        key: try entity.requireKey(),
        action: action,
        predicate: nil,
        recheck: .skip,
        parameters: [:]
      )
      change.isIndependent = true
      self.change = change
      lane = try store.makeWriterLane(WriterConfiguration())
      _ = try await lane.prepareStore()
      try await lane.begin(
        RunDescription(identifier: "run", job: "job", total: list.count, startedAt: "now")
      )
      worker = store.makeConnection(label: "worker")
    }

    /// Changes the rows, in chunks of a size; `meanwhile` is called before each commit.
    func run(
      chunk size: Int,
      meanwhile: (Connection) throws -> Void = { _ in }
    ) async throws -> Outcomes {
      let processor = ChangeProcessor(
        list: list.packed,
        change: change,
        isRowByRow: false,
        store: store,
        lane: lane,
        onFailure: .failChunk
      )
      var outcomes = Outcomes()
      for start in stride(from: 0, to: list.count, by: size) {
        let positions = start..<min(start + size, list.count)
        let prepared = try await processor.prepare(positions, Attempt(), in: worker).content
        try meanwhile(Connection(path: store.path))
        outcomes += try await processor.commit(prepared, at: positions).outcomes
      }
      return outcomes
    }

    func values(_ sql: String) throws -> [String] { try Connection(path: store.path).texts(sql) }
  }

  private static func texts(_ count: Int, using random: inout SeededGenerator) -> [String] {
    (0..<count).map { _ in "\(UInt64.random(in: 0 ... .max, using: &random))" }
  }

  @Test(arguments: [2, 20, 100]) func `unselected rows within a key range stay unchanged`(
    distance: Int
  ) async throws {
    var random = SeededGenerator(seed: UInt64(distance))
    let rows = Self.texts(3_000, using: &random)
    for options in ["", "WITHOUT ROWID"] {
      let trial = try await Trial(
        rows,
        options: options,
        where: "n % \(distance) = 0",
        .update([("n", SQLExpression("-n - 1"))])
      )
      let outcomes = try await trial.run(chunk: 20)
      #expect(outcomes.succeeded == trial.list.count && outcomes.passedOver == 0)
      let changed = try trial.values("SELECT id FROM t WHERE n < 0 ORDER BY -n")
      let expected = stride(from: 0, to: rows.count, by: distance).map { rows[$0] }
      #expect(changed == expected, "\(options)")
    }
  }

  @Test func `rows that have left a key range are found by their keys`() async throws {
    var random = SeededGenerator(seed: 7)
    let rows = Self.texts(500, using: &random)
    let trial = try await Trial(rows, where: "1", .delete(archive: nil))
    // Some of each chunk go to the end of the table, and some go for good.
    let outcomes = try await trial.run(chunk: 50) { connection in
      try connection.execute("CREATE TEMP TABLE moved AS SELECT * FROM t WHERE n % 10 = 3")
      try connection.execute("DELETE FROM t WHERE n % 10 IN (3, 4)")
      try connection.execute("INSERT INTO t SELECT * FROM moved")
    }
    #expect(outcomes.succeeded == 450 && outcomes.vanished == 50)
    #expect(try trial.values("SELECT id FROM t") == [])
  }

  @Test(arguments: 1...8) func `a few missing rows far apart do not split a chunk`(
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let rows = Self.texts(2_000, using: &random)
    let gone = (0..<Int.random(in: 1...6, using: &random)).map { _ in
      Int.random(in: 0..<rows.count, using: &random)
    }
    let list = Set(gone).map(String.init).joined(separator: ", ")
    for options in ["", "WITHOUT ROWID"] {
      let trial = try await Trial(
        rows,
        options: options,
        where: "1",
        .update([("n", SQLExpression("-n - 1"))])
      )
      let outcomes = try await trial.run(chunk: 1_000) { connection in
        try connection.execute("DELETE FROM t WHERE n IN (\(list))")
      }
      // Those of a chunk that was done before they went are gone all the same.
      let left = try trial.values("SELECT count(*) FROM t WHERE n < 0")
      #expect(left == ["\(outcomes.succeeded)"] && outcomes.total == rows.count, "\(options)")
      #expect(outcomes.vanished == Set(gone).count, "\(options)")
      #expect(try trial.values("SELECT count(*) FROM t WHERE n >= 0") == ["0"])
    }
  }

  @Test func `a writer notices scattered pages and changes exactly the selected rows`() async throws
  {
    var random = SeededGenerator(seed: 9)
    let rows = Self.texts(20_000, using: &random)
    for options in ["", "WITHOUT ROWID"] {
      let trial = try await Trial(
        rows,
        options: options,
        where: "n % 2",
        .delete(archive: nil)
      )
      let index = options.isEmpty ? "SELECT 1" : "CREATE INDEX by_half ON t (n * 7919 % 20011)"
      try Connection(path: trial.store.path).execute(index)
      #expect(try await trial.run(chunk: 100).succeeded == rows.count / 2)
      #expect(trial.lane.changesScatteredPages)
      #expect(try trial.values("SELECT n FROM t WHERE n % 2") == [])
      #expect(try trial.values("SELECT count(*) FROM t") == ["10000"])
      #expect(try trial.values("PRAGMA integrity_check") == ["ok"])
    }
  }
}
