import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Chunks, however they are applied, against one statement per row, on tables of random schemas.
@Suite struct RandomSchemaTests {
  /// New values for a row, computed from its values, nil for one that stays; nil if the row is
  /// refused.
  private static func answer(
    _ a: SQLValue,
    _ b: SQLValue,
    salt: UInt64
  ) -> (a: SQLValue?, b: SQLValue?)? {
    var random = SeededGenerator(seed: salt ^ XXHash64.hash(Array("\(a) \(b)".utf8)))
    let values = (0..<2).map { _ -> SQLValue? in
      switch Int.random(in: 0..<10, using: &random) {
      case 0: .null
      case 1, 2: nil
      case 3: .text("x")
      default: .integer(.random(in: 0..<(salt % 2 == 0 ? 12 : 60), using: &random))
      }
    }
    return Int.random(in: 0..<15, using: &random) == 0 ? nil : (values[0], values[1])
  }

  private static func handler(salt: UInt64) -> TransformHandler {
    .rows { columns in
      let (a, b) = try (
        columns.input("a", as: SQLValue.self), columns.input("b", as: SQLValue.self)
      )
      let (newA, newB) = try (
        columns.output("a", as: SQLValue.self), columns.output("b", as: SQLValue.self)
      )
      return { row in
        guard let answer = answer(row[a], row[b], salt: salt) else {
          throw BatchError(.handlerFailed, "no answer")
        }
        if let a = answer.a { try row.set(newA, to: a) }
        if let b = answer.b { try row.set(newB, to: b) }
      }
    }
  }

  /// What a chunk does to its rows.
  enum Action: CaseIterable, Sendable {
    case transform, update, delete
  }

  /// What came of a chunk.
  fileprivate struct Result: Equatable {
    var succeeded = 0
    var unchanged = 0
    /// Rows that were gone or did not match: if a trigger removes rows, these cannot be
    /// distinguished.
    var passedOver = 0
    var failed: [Int] = []
  }

  private struct Trial {
    let table: RandomTable
    let salt: UInt64
    let directory: TemporaryDirectory
    let store: Store
    let model: Connection
    let predicate: String?
    let recheck: Recheck
    let skips: Bool
    let action: Action
    /// The expressions of an update.
    let set: (a: String, b: String)

    init(_ action: Action, seed: UInt64) async throws {
      self.action = action
      salt = seed
      var random = SeededGenerator(seed: seed)
      table = RandomTable(using: &random)
      predicate =
        [nil, nil, "a < 20", "c = 'x'", "b IS NOT NULL", "(SELECT count(*) FROM log) < 4"]
        .randomElement(using: &random) ?? nil
      recheck = [.skip, .skip, .off].randomElement(using: &random) ?? .skip
      skips = Bool.random(using: &random)
      set = (
        ["(a * 5 + 2) % 12", "a + 1", "a", "NULLIF(a, 3)"].randomElement(using: &random) ?? "a",
        ["b", "a", "(b + 3) % 8", "iif(a > 6, NULL, b)"].randomElement(using: &random) ?? "b"
      )
      directory = try TemporaryDirectory()
      let path = try TestDatabase.make(in: directory)
      let connection = try Connection(path: path)
      for statement in table.statements { try connection.execute(statement) }
      try FileManager.default.copyItem(atPath: path, toPath: directory.file("model.db"))
      model = try Connection(path: directory.file("model.db"))
      if table.enforcesForeignKeys { try model.execute("PRAGMA foreign_keys = ON") }
      store = try await Store(path: path)
    }

    private var test: String { recheck == .off ? "1" : predicate ?? "1" }
    private var isKey: String { table.key.map { "\($0) IS ?" }.joined(separator: " AND ") }

    /// Does to the model, row by row, what the chunk should do to the store; nil if it should be
    /// refused.
    func expect(_ keys: [[SQLValue]], at first: Int) throws -> Result? {
      try model.execute("BEGIN")
      var result = Result()
      for (number, key) in keys.enumerated() where action == .transform {
        guard let (a, b) = try read(key) else {
          result.passedOver += 1
          continue
        }
        guard let answer = RandomSchemaTests.answer(a, b, salt: salt) else {
          result.failed.append(first + number)
          continue
        }
        if answer.a == nil, answer.b == nil {
          result.unchanged += 1
          continue
        }
        // The columns that are set are the same for all rows: those without a value keep theirs.
        let sets = "a = \(answer.a == nil ? "a" : "?"), b = \(answer.b == nil ? "b" : "?")"
        let isAlive = try change(
          "UPDATE t SET \(sets)",
          [answer.a, answer.b].compactMap { $0 },
          key,
          at: first + number,
          &result
        )
        if !isAlive { return nil }
      }
      for (number, key) in keys.enumerated() where action != .transform {
        let sql = action == .delete ? "DELETE FROM t" : "UPDATE t SET a = \(set.a), b = \(set.b)"
        guard try change(sql, [], key, at: first + number, &result) else { return nil }
      }
      if !skips, !result.failed.isEmpty {
        try model.execute("ROLLBACK")
        return nil
      }
      do {
        try model.execute("COMMIT")
      } catch {
        try model.execute("ROLLBACK")
        return nil
      }
      return result.sorted
    }

    /// What a handler reads of a row of the model; nil if it is gone or does not match.
    private func read(_ key: [SQLValue]) throws -> (a: SQLValue, b: SQLValue)? {
      let statement = try model.prepare("SELECT a, b, (\(test)) IS TRUE FROM t WHERE \(isKey)")
      for (index, value) in key.enumerated() { try statement.bind(value, at: index + 1) }
      guard try statement.step(), statement.integer(at: 2) == 1 else { return nil }
      return (statement.value(at: 0), statement.value(at: 1))
    }

    /// Whether the handler refuses one of the rows as they are before the first is changed.
    func isRefused(_ keys: [[SQLValue]]) throws -> Bool {
      try keys.contains { key in
        try read(key).map { RandomSchemaTests.answer($0.a, $0.b, salt: salt) == nil } ?? false
      }
    }

    /// Changes a row of the model.
    ///
    /// - Returns: Whether the transaction continues: RAISE(ROLLBACK) and ON CONFLICT ROLLBACK end
    ///   it.
    private func change(
      _ sql: String,
      _ values: [SQLValue],
      _ key: [SQLValue],
      at position: Int,
      _ result: inout Result
    ) throws -> Bool {
      try model.execute("SAVEPOINT row")
      do {
        try model.run("\(sql) WHERE \(isKey) AND (\(test))", values + key)
        if model.changes == 1 {
          result.succeeded += 1
        } else if try isKept(key) {
          try model.execute("ROLLBACK TO row")
          result.failed.append(position)
        } else {
          result.passedOver += 1
        }
      } catch {
        if model.isAutocommit { return false }
        try model.execute("ROLLBACK TO row")
        result.failed.append(position)
      }
      try model.execute("RELEASE row")
      return true
    }

    /// Whether a row that was not changed is there and matches: a trigger or a conflict clause has kept it.
    private func isKept(_ key: [SQLValue]) throws -> Bool {
      let ignores = ["RAISE(IGNORE)", "ON CONFLICT IGNORE"]
      guard action != .delete,
        table.statements.contains(where: { sql in ignores.contains(where: sql.contains) })
      else { return false }
      let statement = try model.prepare("SELECT 1 FROM t WHERE \(isKey) AND (\(test))")
      for (index, value) in key.enumerated() { try statement.bind(value, at: index + 1) }
      return try statement.step()
    }

    /// Changes the same rows of both databases, as another process might at any moment.
    func interfere(using random: inout SeededGenerator) throws {
      let other = try Connection(path: store.path)
      if table.enforcesForeignKeys { try other.execute("PRAGMA foreign_keys = ON") }
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let (old, new) = (
          Int.random(in: 0..<12, using: &random), Int.random(in: 0..<40, using: &random)
        )
        let sql =
          Bool.random(using: &random)
          ? "DELETE FROM t WHERE a = \(old)" : "UPDATE OR ABORT t SET a = \(new) WHERE a = \(old)"
        try? other.execute(sql)
        try? model.execute(sql)
      }
    }

    func dump(_ connection: Connection) throws -> [String] {
      try TestDatabase.dump(
        connection,
        except: [
          "_batch_run", "_batch_ledger", "_batch_failure", "_batch_passed_over", "_batch_store",
          "sqlite_stat1",
        ]
      ).filter { !$0.contains("_batch") }
    }
  }

  @Test(arguments: Action.allCases, [UInt64](140..<160) + (290..<310))
  func `a chunk has the effect of one statement per row in random schemas`(
    action: Action,
    seed: UInt64
  ) async throws {
    let trial = try await Trial(action, seed: seed)
    var random = SeededGenerator(seed: ~seed)
    let store = trial.store
    let list = try await store.fetchIdentifiers(
      FetchRequest(entity: "t", where: trial.predicate)
    )
    let entity = try store.schema.entity(named: "t")
    let key = try entity.requireKey()
    let attributes = try ["a", "b"].map { name in try #require(entity.attribute(named: name)) }
    let worker = try Connection(path: store.path, options: .init(isReadOnly: true))
    let transform = try RowTransform(
      entity: entity,
      key: key,
      reads: attributes,
      writes: attributes,
      handler: Self.handler(salt: seed).handler(
        for: .init(reads: ["a", "b"], writes: ["a", "b"], parameters: [:], store: store)
      ),
      predicate: trial.predicate.map { SQLExpression($0) },
      recheck: trial.recheck,
      parameters: [:],
      enforcesForeignKeys: trial.table.enforcesForeignKeys,
      connection: worker
    )
    let (a, b) = (SQLExpression(trial.set.a), SQLExpression(trial.set.b))
    let change = BulkChange(
      entity: entity,
      key: key,
      action: action == .delete ? .delete(archive: nil) : .update([("a", a), ("b", b)]),
      predicate: trial.predicate.map { SQLExpression($0) },
      recheck: trial.recheck,
      parameters: [:]
    )
    let enforces = trial.table.enforcesForeignKeys
    let isRowByRow = try change.reach(enforcesForeignKeys: enforces, in: worker) != .nothing
    var configuration = WriterConfiguration()
    configuration.enforcesForeignKeys = trial.table.enforcesForeignKeys
    let lane = try store.makeWriterLane(configuration)
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: list.count, startedAt: "now")
    )
    let policy: FailurePolicy = trial.skips ? .skip(upTo: 1000) : .failChunk
    var failed: [Int] = []
    for positions in Chunks.random(of: list.count, using: &random) {
      let keys = try positions.map { try list.key(at: $0).components.map { SQLValue($0) } }
      var result: Result?
      var expected: Result?
      do throws(BatchError) {
        let chunkKeys = try ChunkKeys(list.packed, positions, key: key)
        let lookCount = lane.watch.lookCount
        let chunk: TransformedChunk?
        do throws(BatchError) {
          chunk =
            action == .transform
            ? try transform.prepare(
              chunkKeys,
              run: "run",
              lookCount: lookCount,
              onFailure: policy,
              in: worker
            ) : nil
        } catch {
          // Refused before anything is applied: the model has nothing to do.
          do { #expect(try policy == .failChunk && trial.isRefused(keys), "\(error)") } catch {
            Issue.record(error)
          }
          continue
        }
        do { try trial.interfere(using: &random) } catch { Issue.record(error) }
        do { expected = try trial.expect(keys, at: positions.lowerBound) } catch {
          Issue.record(error)
        }
        let commit =
          if let chunk {
            try await lane.commit(transform, chunk, at: positions, onFailure: policy)
          } else {
            try await lane.commit(
              change,
              to: isRowByRow ? chunkKeys.singly : chunkKeys,
              at: positions,
              onFailure: policy
            )
          }
        let all = try await store.failedIdentifiers(ofRun: "run").map(\.position)
        result = Result(
          succeeded: commit.outcomes.succeeded,
          unchanged: commit.outcomes.unchanged,
          passedOver: commit.outcomes.vanished + commit.outcomes.noLongerMatching,
          failed: all.filter { positions.contains($0) }
        )
        failed += result?.failed ?? []
      } catch {
        if expected == nil {
          #expect(error.code == .handlerFailed || error.code == .constraint, "\(error)")
        }
      }
      #expect(result == expected)
      try #require(
        try trial.dump(Connection(path: store.path)) == trial.dump(trial.model),
        "\(trial.table.statements.joined(separator: ";\n")) \(trial.predicate ?? "")"
      )
    }
    #expect(try await store.failedIdentifiers(ofRun: "run").map(\.position) == failed.sorted())
    let integrity = try TestDatabase.integrity(store.path)
    #expect(try integrity == trial.model.texts("PRAGMA integrity_check"))
  }
}

extension RandomSchemaTests.Result {
  fileprivate var sorted: Self {
    var copy = self
    copy.failed.sort()
    return copy
  }
}
