import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Chunks of transforms against one prepared statement a row, on tables whose triggers, constraints
/// and other writers get in the way.
@Suite struct RowTransformModelTests {
  /// A handler's result for a row: new values, nothing, or an error.
  private enum Answer {
    case set(n: SQLValue?, r: SQLValue?)
    case failure
  }

  /// Decides by the row's values alone, so that the same row has the same answer.
  private static func answer(n: SQLValue, r: SQLValue, s: SQLValue, salt: UInt64) -> Answer {
    var random = SeededGenerator(
      seed: salt ^ XXHash64.hash(Array("\(n) \(r) \(s)".utf8))
    )
    let small = SQLValue.integer(.random(in: 0..<14, using: &random))
    switch Int.random(in: 0..<14, using: &random) {
    case 0: return .failure
    case 1: return .set(n: nil, r: nil)
    case 2: return .set(n: small, r: nil)
    case 3: return .set(n: nil, r: .text("u\(Int.random(in: 0..<4, using: &random))"))
    case 4: return .set(n: .null, r: .blob([0, 1, 0xff]))
    case 5: return .set(n: small, r: .text(""))
    case 6: return .set(n: .text("12"), r: .blob([]))
    case 7: return .set(n: .real(2), r: .integer(.min))
    case 8: return .set(n: small, r: .text("a\0é🧵"))
    default: return .set(n: small, r: .real(.random(in: 0..<1, using: &random)))
    }
  }

  private static func handler(salt: UInt64) -> TransformHandler {
    .rows { columns in
      let n = try columns.input("n", as: SQLValue.self)
      let r = try columns.input("r", as: SQLValue.self)
      let s = try columns.input("S", as: SQLValue.self)
      let newN = try columns.output("n", as: SQLValue.self)
      let newR = try columns.output("r", as: SQLValue.self)
      return { row in
        switch answer(n: row[n], r: row[r], s: row[s], salt: salt) {
        case .failure: throw BatchError(.handlerFailed, "no answer")
        case .set(let n, let r):
          if let n { try row.set(newN, to: n) }
          if let r { try row.set(newR, to: r) }
        }
      }
    }
  }

  private struct Trial {
    let table: KeyedTable
    let salt: UInt64
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let store: Store
    let model: Connection

    init(_ table: KeyedTable, seed: UInt64) async throws {
      self.table = table
      salt = seed
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      let path = try table.make(in: directory)
      let connection = try Connection(path: path)
      try connection.execute("CREATE TABLE log (what, n, r)")
      try connection.execute(
        """
        CREATE TRIGGER u AFTER UPDATE ON t
        BEGIN INSERT INTO log VALUES ('u', old.n || ' ' || coalesce(new.n, ''), new.r); END
        """
      )
      try connection.execute(
        """
        CREATE TRIGGER seven BEFORE UPDATE ON t WHEN new.n = 7
        BEGIN SELECT RAISE(ABORT, 'seven'); END
        """
      )
      try connection.execute("CREATE UNIQUE INDEX ur ON t (r) WHERE r LIKE 'u%'")
      if seed % 3 == 0 {
        // The run's own changes reach other rows, of this chunk and of others.
        try connection.execute(
          """
          CREATE TRIGGER self AFTER UPDATE OF n ON t WHEN new.n = 5
          BEGIN UPDATE t SET s = s || '!' WHERE n = 3; END
          """
        )
      }
      for _ in 0..<Int.random(in: 1...90, using: &random) {
        let (sql, values) = table.insertion(using: &random)
        try connection.run(sql, values)
      }
      try FileManager.default.copyItem(atPath: path, toPath: directory.file("model.db"))
      model = try Connection(path: directory.file("model.db"))
      store = try await Store(path: path)
    }

    /// Changes the same rows of both databases, as another process might at any moment.
    mutating func interfere() throws {
      let other = try Connection(path: store.path)
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let key = table.columns.map { "\"\($0)\" IS ?" }.joined(separator: " AND ")
        let (sql, values): (String, [SQLValue])
        switch Int.random(in: 0..<3, using: &random) {
        case 0: (sql, values) = table.insertion(using: &random)
        case 1: (sql, values) = ("DELETE FROM t WHERE \(key)", table.randomKey(using: &random))
        default:
          let n = [0, 1, 3, 5, 9].randomElement(using: &random) ?? 0
          (sql, values) = (
            "UPDATE t SET n = \(n) WHERE \(key)", table.randomKey(using: &random)
          )
        }
        try other.run(sql, values)
        try model.run(sql, values)
      }
    }

    /// Does to the model, row by row, what the chunk should do to the store; nil if it should be
    /// refused.
    func expect(
      _ keys: [[SQLValue]],
      _ condition: (sql: String, parameters: [String: SQLValue])?,
      _ recheck: Recheck,
      skips: Bool
    ) throws -> Outcomes? {
      let isKey = table.columns.map { "\"\($0)\" COLLATE BINARY IS ?" }.joined(separator: " AND ")
      let test = recheck == .off ? nil : condition?.sql
      var outcomes = Outcomes()
      try model.execute("SAVEPOINT chunk")
      for key in keys {
        let sql = "SELECT n, r, s, (\(test ?? "1")\n) IS TRUE FROM t WHERE \(isKey)"
        guard let row = try row(sql, key, condition?.parameters ?? [:]) else {
          outcomes.vanished += 1
          continue
        }
        guard row[3] == .integer(1) else {
          outcomes.noLongerMatching += 1
          continue
        }
        switch RowTransformModelTests.answer(n: row[0], r: row[1], s: row[2], salt: salt) {
        case .failure: outcomes.failed += 1
        case .set(nil, nil): outcomes.unchanged += 1
        case .set(let n, let r):
          let sets = "n = \(n == nil ? "n" : "?1"), r = \(r == nil ? "r" : "?2")"
          let place = (0..<key.count).map { "?\($0 + 3)" }
          let isKey = zip(table.columns, place).map { "\"\($0)\" COLLATE BINARY IS \($1)" }
          do {
            try change(
              "UPDATE t SET \(sets) WHERE \(isKey.joined(separator: " AND ")) AND (\(test ?? "1")\n)",
              [n ?? .null, r ?? .null] + key,
              condition?.parameters ?? [:]
            )
            if model.changes == 1 {
              outcomes.succeeded += 1
            } else {
              // A trigger has made it no longer satisfy the condition.
              outcomes.noLongerMatching += 1
            }
          } catch let error as BatchError {
            guard error.code == .constraint else { throw error }
            outcomes.failed += 1
          }
        }
      }
      let isRefused =
        (!skips && outcomes.failed > 0) || (recheck == .fail && outcomes.noLongerMatching > 0)
      if isRefused { try model.execute("ROLLBACK TO chunk") }
      try model.execute("RELEASE chunk")
      return isRefused ? nil : outcomes
    }

    /// Whether the chunk is refused with its rows as they are before the first is changed.
    func isRefused(
      _ keys: [[SQLValue]],
      _ condition: (sql: String, parameters: [String: SQLValue])?,
      _ recheck: Recheck,
      skips: Bool
    ) throws -> Bool {
      let isKey = table.columns.map { "\"\($0)\" COLLATE BINARY IS ?" }.joined(separator: " AND ")
      let test = recheck == .off ? nil : condition?.sql
      let sql = "SELECT n, r, s, (\(test ?? "1")\n) IS TRUE FROM t WHERE \(isKey)"
      return try keys.contains { key in
        guard let row = try row(sql, key, condition?.parameters ?? [:]) else { return false }
        guard row[3] == .integer(1) else { return recheck == .fail }
        let answer = RowTransformModelTests.answer(n: row[0], r: row[1], s: row[2], salt: salt)
        if case .failure = answer { return !skips }
        return false
      }
    }

    private func row(
      _ sql: String,
      _ values: [SQLValue],
      _ parameters: [String: SQLValue]
    ) throws -> [SQLValue]? {
      // Numbered parameters come first, whatever names the condition adds.
      let numbered = numbering(sql, values.count)
      let statement = try model.prepare(numbered)
      try bind(statement, values, parameters)
      return try statement.step()
        ? (0..<statement.columnCount).map { statement.value(at: $0) } : nil
    }

    private func change(
      _ sql: String,
      _ values: [SQLValue],
      _ parameters: [String: SQLValue]
    ) throws {
      let statement = try model.prepare(sql)
      try bind(statement, values, parameters)
      try statement.run()
    }

    private func numbering(_ sql: String, _ count: Int) -> String {
      var (text, number) = ("", 0)
      for character in sql {
        if character == "?", number < count {
          number += 1
          text += "?\(number + 50)"
        } else {
          text.append(character)
        }
      }
      return text
    }

    private func bind(
      _ statement: borrowing Statement,
      _ values: [SQLValue],
      _ parameters: [String: SQLValue]
    ) throws {
      for (index, value) in values.enumerated() {
        let place =
          statement.parameterIndex("?\(index + 51)")
          ?? statement.parameterIndex("?\(index + 1)")
        if let place { try statement.bind(value, at: place) }
      }
      for (name, value) in parameters {
        if let index = statement.parameterIndex(":" + name) { try statement.bind(value, at: index) }
      }
    }

    func dump(_ connection: Connection) throws -> [String] {
      try ["t", "log"].flatMap { try TestDatabase.dump(connection, table: $0) }
    }
  }

  @Test(arguments: KeyedTable.allCases, 0..<8 as Range<UInt64>)
  func `a transformed chunk has the effect of one statement per row`(
    table: KeyedTable,
    seed: UInt64
  ) async throws {
    var trial = try await Trial(table, seed: seed)
    let store = trial.store
    let condition = KeyedTable.condition(using: &trial.random)
    let recheck = Recheck.allCases.randomElement(using: &trial.random) ?? .skip
    let skips = seed % 4 != 1
    let list = try await store.fetchIdentifiers(
      FetchRequest(entity: "t", where: condition?.sql, parameters: condition?.parameters ?? [:])
    )
    let entity = try store.schema.entity(named: "t")
    let key = try entity.requireKey()
    func attributes(_ names: [String]) throws -> [Attribute] {
      try names.map { name in try #require(entity.attribute(named: name)) }
    }
    let worker = try Connection(path: store.path, options: .init(isReadOnly: true))
    let transform = try RowTransform(
      entity: entity,
      key: key,
      reads: attributes(["s", "n", "r"]),
      writes: attributes(["n", "r"]),
      handler: Self.handler(salt: seed).handler(
        for: .init(reads: ["s", "n", "r"], writes: ["n", "r"], parameters: [:], store: store)
      ),
      predicate: condition.map { SQLExpression($0.sql) },
      recheck: recheck,
      parameters: condition?.parameters ?? [:],
      enforcesForeignKeys: false,
      connection: worker
    )
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: list.count, startedAt: "now")
    )
    let chunks = Chunks.random(of: list.count, using: &trial.random)
    var failed = 0
    let policy: FailurePolicy = skips ? .skip(upTo: 1000) : .failChunk
    // Up to three chunks are read before the first of them is applied, as several workers do.
    var next = 0
    while next < chunks.count {
      let some = chunks[
        next..<min(chunks.count, next + Int.random(in: 1...3, using: &trial.random))
      ]
      next += some.count
      var prepared: [(Range<Int>, TransformedChunk)] = []
      for chunk in some {
        do {
          prepared.append(
            (
              chunk,
              try transform.prepare(
                ChunkKeys(list.packed, chunk, key: key),
                run: "run",
                lookCount: lane.watch.lookCount,
                onFailure: policy,
                in: worker
              )
            )
          )
        } catch {
          // A chunk that cannot be computed is refused before it is applied.
          #expect(
            try trial.isRefused(keys(list, chunk), condition, recheck, skips: skips),
            "\(error)"
          )
        }
        if Int.random(in: 0..<2, using: &trial.random) == 0 { try trial.interfere() }
      }
      for (positions, chunk) in prepared {
        let expected = try trial.expect(
          keys(list, positions),
          condition,
          recheck,
          skips: skips
        )
        do {
          let outcomes = try await lane.commit(
            transform,
            chunk,
            at: positions,
            onFailure: policy
          ).outcomes
          #expect(outcomes == expected)
          failed += outcomes.failed
        } catch {
          #expect(expected == nil, "\(error)")
        }
        #expect(try trial.dump(Connection(path: store.path)) == trial.dump(trial.model))
      }
    }
    #expect(try await store.failedIdentifiers(ofRun: "run").count == failed)
  }

  private func keys(_ list: IdentifierList, _ positions: Range<Int>) throws -> [[SQLValue]] {
    try positions.map { try list.key(at: $0).components.map { SQLValue($0) } }
  }
}
