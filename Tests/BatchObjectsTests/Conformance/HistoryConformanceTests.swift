import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// An employee whose name is preserved after deletion.
private final class Remembered: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Remembered.self,
    entity: "Remembered",
    table: "employees",
    properties: [
      .attribute("name", \.name).preservedOnDeletion(), .attribute("salary", \.salary),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var salary: Int {
    get { self[\.salary] }
    set { self[\.salary] = newValue }
  }
}

@Suite struct HistoryConformanceTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  private func open(tracksHistory: Bool = true) async throws -> ModelContainer {
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = tracksHistory
    return try await ModelContainer(for: Remembered.self, configurations: configuration)
  }

  /// Saves three times: an update of both employees, an insert, a delete.
  private func saveThrice(_ context: ModelContext) throws {
    for employee in try context.fetch(Remembered.self) { employee.salary += 1 }
    try context.save()
    let carol = Remembered()
    carol.name = "Carol"
    context.insert(carol)
    try context.save()
    context.author = "purge"
    context.delete(try #require(context.fetch(Remembered.self, where: "name = 'Alice'").first))
    try context.save()
  }

  @Test func `C80 each save is a transaction of the history, and earlier ones can be deleted`()
    async throws
  {
    let context = ModelContext(try await open())
    #expect(try context.fetchHistory().isEmpty)
    let start = Date()
    try saveThrice(context)
    try context.save()
    let history = try context.fetchHistory()
    #expect(history.count == 3)
    #expect(history.map(\.author) == [nil, nil, "purge"])
    #expect(history.allSatisfy { abs($0.timestamp.timeIntervalSince(start)) < 3600 })
    #expect(history.map { $0.changes.map(\.kind) } == [[.update, .update], [.insert], [.delete]])
    #expect(
      history.map { $0.changes.map(\.identifier.primaryKey) } == [["p1", "p2"], ["p3"], ["p1"]]
    )
    #expect(history[0].changes.map(\.updatedAttributes) == [["salary"], ["salary"]])

    // Another context of another container reads the same, also in parts.
    let other = ModelContext(try await open())
    #expect(try other.fetchHistory().map(\.changes) == history.map(\.changes))
    #expect(
      try other.fetchHistory(after: history[0].token, limit: 1).map(\.token) == [history[1].token]
    )
    #expect(try other.fetchHistory(after: history[2].token).isEmpty)

    try context.deleteHistory(before: history[0].token)
    #expect(try context.fetchHistory().count == 3)
    try context.deleteHistory(before: history[2].token)
    #expect(try context.fetchHistory().map(\.token) == [history[2].token])
    #expect(try context.fetchHistory(after: history[1].token).count == 1)
    let error = #expect(throws: BatchError.self) {
      try context.fetchHistory(after: history[0].token)
    }
    #expect(error?.code == .historyTokenExpired)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM _batch_history_value") == ["1"])
  }

  @Test func `C81 a tombstone has only the preserved attributes`() async throws {
    let context = ModelContext(try await open())
    try saveThrice(context)
    let deletion = try #require(context.fetchHistory().last?.changes.first)
    #expect(deletion.kind == .delete && deletion.updatedAttributes.isEmpty)
    #expect(deletion.tombstone == ["name": .text("Alice")])

    // A fault that is deleted before it is read leaves the same.
    let bob = try #require(context.fetchIdentifiers(FetchRequest(entity: "Remembered")).first)
    let fresh = ModelContext(context.container)
    fresh.delete(fresh.model(for: bob))
    try fresh.save()
    let last = try #require(context.fetchHistory().last?.changes.first)
    #expect(last.tombstone == ["name": .text("Bob")])
  }

  @Test(arguments: [1, 5_000])
  func `the history records each chunk of a batch request as a transaction`(
    _ chunkSize: Int
  ) async throws {
    let context = ModelContext(try await open())
    context.author = "bulk"
    var update = BatchUpdateRequest<Remembered>([.set(\.salary, toSQL: "salary + 1")])
    update.chunkSize = chunkSize
    update.resultType = .status
    try context.execute(update)
    var insert = BatchInsertRequest<Remembered>(["Carol", "Dave"]) { name, row in
      row.set(\.name, to: name)
      row.set(\.salary, to: 3)
    }
    insert.chunkSize = chunkSize
    try context.execute(insert)
    let alice = #Predicate<Remembered> { $0.name == "Alice" }
    try context.execute(BatchDeleteRequest(where: alice))
    // Nothing changes, so nothing is recorded.
    try context.execute(BatchDeleteRequest(where: alice))
    try context.execute(BatchInsertRequest<Remembered> { _ in true })

    let history = try context.fetchHistory()
    #expect(history.count == (chunkSize == 1 ? 5 : 3))
    #expect(history.allSatisfy { $0.author == "bulk" })
    let changes = history.flatMap(\.changes)
    #expect(changes.map(\.kind) == [.update, .update, .insert, .insert, .delete])
    #expect(changes.map(\.identifier.primaryKey) == ["p1", "p2", "p3", "p4", "p1"])
    #expect(changes.map(\.updatedAttributes) == [["salary"], ["salary"], [], [], []])
    #expect(changes.map(\.identifier.entityName) == Array(repeating: "Remembered", count: 5))
    #expect(changes[4].tombstone == ["name": .text("Alice")])
    let silent = ModelContext(try await open(tracksHistory: false))
    try silent.execute(update)
    #expect(try context.fetchHistory().count == history.count)
  }

  @Test func `the history records a batch insert that finds an existing row as an update`()
    async throws
  {
    let context = ModelContext(try await open())
    try TestDatabase.make("staff.db", in: directory, "CREATE UNIQUE INDEX n ON employees (name)")
    for conflict in [BatchInsertRequest<Remembered>.Conflict.update, .ignore] {
      var insert = BatchInsertRequest<Remembered>(["Alice", "Eve \(conflict)"]) { name, row in
        row.set(\.name, to: name)
        row.set(\.salary, to: 7)
      }
      insert.conflict = conflict
      insert.resultType = .identifiers
      #expect(try context.execute(insert).count == (conflict == .update ? 2 : 1))
    }
    let history = try context.fetchHistory()
    #expect(history.map { $0.changes.map(\.kind) } == [[.update, .insert], [.insert]])
    #expect(history[0].changes[0].identifier.primaryKey == "p1")
    #expect(history[0].changes[0].updatedAttributes == ["name", "salary"])
    #expect(
      try TestDatabase.texts(path, "SELECT salary FROM employees WHERE name = 'Alice'") == ["7"]
    )
  }

  @Test func `a store without history and a failing save record no history`() async throws {
    let silent = ModelContext(try await open(tracksHistory: false))
    try saveThrice(silent)
    #expect(try silent.fetchHistory().isEmpty)
    #expect(
      try TestDatabase.texts(path, "SELECT name FROM sqlite_schema WHERE name LIKE '%history%'")
        == []
    )

    let context = ModelContext(try await open())
    try context.fetch(Remembered.self).forEach { $0.salary += 1 }
    try TestDatabase.make(
      "staff.db",
      in: directory,
      "CREATE TRIGGER t BEFORE UPDATE ON employees BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    #expect(throws: BatchError.self) { try context.save() }
    #expect(try context.fetchHistory().isEmpty)
  }
}
