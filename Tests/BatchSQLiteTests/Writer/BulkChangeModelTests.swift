import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Chunks of changes against the plain SQL statement on the selected rows.
@Suite struct BulkChangeModelTests {
  private struct Trial {
    let table: KeyedTable
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let store: Store
    /// The database of the same rows, in which plain SQL does what is expected.
    let model: Connection

    init(_ table: KeyedTable, seed: UInt64) async throws {
      self.table = table
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      let path = try table.make(in: directory)
      let connection = try Connection(path: path)
      // The archive has an additional column, its own key, and ordinary columns for generated ones.
      try connection.execute(
        """
        CREATE TABLE archive (
          \(table.columns.map { "\"\($0)\"" }.joined(separator: ", ")), s, r, n, g,
          at TEXT DEFAULT 'now', "archived id" INTEGER PRIMARY KEY)
        """
      )
      try connection.execute("CREATE TABLE log (what, n)")
      try connection.execute("CREATE TABLE bystander (id INTEGER PRIMARY KEY, n)")
      try connection.execute("INSERT INTO bystander (n) VALUES (1), (2)")
      try connection.execute(
        "CREATE TRIGGER u AFTER UPDATE ON t BEGIN INSERT INTO log VALUES ('u', old.n); END"
      )
      try connection.execute(
        "CREATE TRIGGER d AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('d', old.n); END"
      )
      for _ in 0..<Int.random(in: 1...90, using: &random) {
        let (sql, values) = table.insertion(using: &random)
        try connection.run(sql, values)
      }
      try FileManager.default.copyItem(atPath: path, toPath: directory.file("model.db"))
      model = try Connection(path: directory.file("model.db"))
      store = try await Store(path: path)
    }

    /// Changes the same rows of both databases, as another process might between two chunks.
    mutating func interfere() throws {
      let other = try Connection(path: store.path)
      for _ in 0..<Int.random(in: 0...15, using: &random) {
        let (sql, values): (String, [SQLValue])
        let key = table.columns.map { "\"\($0)\" IS ?" }.joined(separator: " AND ")
        switch Int.random(in: 0..<4, using: &random) {
        case 0: (sql, values) = table.insertion(using: &random)
        case 1: (sql, values) = ("DELETE FROM t WHERE \(key)", table.randomKey(using: &random))
        case 2 where Int.random(in: 0..<8, using: &random) == 0:
          // Gives the rows of most tables other rowids.
          try other.execute("VACUUM")
          continue
        default:
          let n = Int.random(in: 0..<10, using: &random)
          (sql, values) = (
            "UPDATE t SET n = \(n) WHERE \(key)", table.randomKey(using: &random)
          )
        }
        try other.run(sql, values)
        try model.run(sql, values)
      }
    }

    /// Does to the model what the chunk should do to the store; nil if it should be refused.
    mutating func expect(
      _ keys: [[KeyComponent]],
      _ action: BulkChange.Action,
      _ condition: (sql: String, parameters: [String: SQLValue])?,
      _ recheck: Recheck
    ) throws -> Outcomes? {
      let columns = table.columns.indices.map { "k\($0)" }
      try model.execute("CREATE TEMP TABLE selected (\(columns.joined(separator: ", ")))")
      defer { try? model.execute("DROP TABLE selected") }
      for key in keys {
        let places = columns.map { _ in "?" }.joined(separator: ", ")
        try model.run("INSERT INTO selected VALUES (\(places))", key.map { SQLValue($0) })
      }
      let isSelected = zip(table.columns, columns)
        .map { "\"\($0)\" COLLATE BINARY IS \($1)" }.joined(separator: " AND ")
      let present = "EXISTS (SELECT 1 FROM selected WHERE \(isSelected))"
      let test = recheck == .off ? nil : condition?.sql
      let parameters = condition?.parameters ?? [:]
      var outcomes = Outcomes()
      guard
        case .integer(let found) = try model.value("SELECT count(*) FROM t WHERE \(present)")
      else { return nil }
      let matching = "\(present) AND (\(test ?? "1")\n)"
      let stored = (table.columns.map { "\"\($0)\"" } + ["n", "r", "s"]).joined(separator: ", ")
      try model.execute("SAVEPOINT chunk")
      switch action {
      case .update(let assignments):
        let sets = assignments.map { "\($0.column) = (\($0.value.text)\n)" }
        try model.run("UPDATE t SET \(sets.joined(separator: ", ")) WHERE \(matching)", parameters)
      case .delete(let archive):
        if archive != nil {
          try model.run(
            "INSERT INTO archive (\(stored)) SELECT \(stored) FROM t WHERE \(matching)",
            parameters
          )
        }
        try model.run("DELETE FROM t WHERE \(matching)", parameters)
      case .assign: preconditionFailure("transforms have a model of their own")
      }
      outcomes.succeeded = model.changes
      outcomes.noLongerMatching = Int(found) - outcomes.succeeded
      outcomes.vanished = keys.count - Int(found)
      let isRefused = recheck == .fail && outcomes.noLongerMatching > 0
      if isRefused { try model.execute("ROLLBACK TO chunk") }
      try model.execute("RELEASE chunk")
      return isRefused ? nil : outcomes
    }

    func dumps() throws -> (store: [String], model: [String]) {
      func dump(_ connection: Connection) throws -> [String] {
        try ["t", "log", "bystander"].flatMap {
          try TestDatabase.dump(connection, table: $0)
        }
          + connection.texts(
            """
            SELECT quote("\(table.columns[0])") || quote(n) || quote(r) || quote(s) || quote(at)
              || quote(g) AS line FROM archive ORDER BY line
            """
          )
      }
      return (try dump(Connection(path: store.path)), try dump(model))
    }
  }

  private func randomAction(
    _ trial: inout Trial,
    _ schema: Schema
  ) throws -> BulkChange.Action {
    let entity = try schema.entity(named: "t")
    switch Int.random(in: 0..<4, using: &trial.random) {
    case 0: return .delete(archive: nil)
    case 1: return .delete(archive: try .init(schema.entity(named: "archive"), for: entity))
    case 2:
      return .update([
        ("n", SQLExpression("coalesce(n, 0) + 1 -- one more")), ("s", SQLExpression("s || n")),
      ])
    default: return .update([("r", SQLExpression("CASE WHEN n > 4 THEN n ELSE r END"))])
    }
  }

  @Test(arguments: KeyedTable.allCases, 0..<8 as Range<UInt64>)
  func `a chunk has the effect of one statement over the selected rows`(
    table: KeyedTable,
    seed: UInt64
  ) async throws {
    var trial = try await Trial(table, seed: seed)
    let store = trial.store
    let condition = KeyedTable.condition(using: &trial.random)
    let recheck = Recheck.allCases.randomElement(using: &trial.random) ?? .skip
    let request = FetchRequest(
      entity: "t",
      where: condition?.sql,
      parameters: condition?.parameters ?? [:]
    )
    let liesInOrder = Bool.random(using: &trial.random)
    let list = try await store.connection(label: "fetch").perform {
      connection throws(BatchError) in
      let query = try IdentifierQuery(request, schema: store.schema, connection: connection)
      return try (liesInOrder ? query.inRowIDOrder() : query)
        .fetch(in: connection, store: store.identity)
    }
    let entity = try store.schema.entity(named: "t")
    var change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: try randomAction(&trial, store.schema),
      predicate: condition.map { SQLExpression($0.sql) },
      recheck: recheck,
      parameters: condition?.parameters ?? [:]
    )
    change.isIndependent = Int.random(in: 0..<4, using: &trial.random) > 0
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: list.count, startedAt: "now")
    )
    let processor = ChangeProcessor(
      list: list.packed,
      change: change,
      isRowByRow: !change.isIndependent,
      store: store,
      lane: lane,
      onFailure: .failChunk
    )
    let worker = store.makeConnection(label: "worker")
    var done = DoneRanges()
    for chunk in Chunks.random(of: list.count, using: &trial.random) {
      if Bool.random(using: &trial.random) { try trial.interfere() }
      let prepared = try await processor.prepare(chunk, Attempt(), in: worker).content
      if Bool.random(using: &trial.random) { try trial.interfere() }
      let keys = try chunk.map { try list.key(at: $0).components }
      let expected = try trial.expect(keys, change.action, condition, recheck)
      do {
        let outcomes = try await processor.commit(prepared, at: chunk).outcomes
        #expect(outcomes == expected)
        done.insert(.init(chunk, outcomes: outcomes, chunks: 1))
      } catch {
        #expect(error.code == .noLongerMatching)
        #expect(expected == nil)
      }
      let (stored, model) = try trial.dumps()
      #expect(stored == model)
      #expect(try await store.doneRanges(ofRun: "run") == done)
    }
  }
}
