import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Somebody puts another file in the place of a database that contexts use.
@Suite struct ReplacedFileTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
    try TestDatabase.make("staff.db", in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
  }

  private func replace() throws {
    try #require(rename(directory.file("backup.db"), path) == 0)
  }

  private func rows() throws -> [String] {
    try TestDatabase.texts(path, "SELECT name || salary FROM employees ORDER BY id")
  }

  @Test func `a save into a removed file is refused`() async throws {
    let container = try await Staff.open(path)
    let context = ModelContext(container)
    let employees = try context.fetch(FetchDescriptor<Employee>(sortBy: [.forward(\.name)]))
    employees[0].salary = 11
    try context.save()
    try replace()
    employees[1].salary = 21
    #expect(throws: BatchError.self) { try context.save() }
    context.insert(Employee("Cleo", salary: 30))
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.code == .storeChanged)
    let cleo = Employee("Cleo", salary: 30)
    context.insert(cleo)
    #expect(throws: BatchError.self) { try context.obtainPermanentIdentifiers(for: [cleo]) }
    #expect(try rows() == ["Alice10", "Bob20"])
    // Another container has the new file.
    let other = ModelContext(try await Staff.open(path))
    other.insert(Employee("Cleo", salary: 30))
    try other.save()
    #expect(try rows() == ["Alice10", "Bob20", "Cleo30"])
  }

  @Test func `a save of objects that were read from the replaced file is refused`() async throws {
    let context = ModelContext(try await Staff.open(path))
    let employees = try context.fetch(FetchDescriptor<Employee>(sortBy: [.forward(\.name)]))
    try replace()
    employees[0].salary = 11
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.code == .storeChanged)
    #expect(try rows() == ["Alice10", "Bob20"])
  }

  @Test func `a batch request against a replaced file is refused`() async throws {
    let context = ModelContext(try await Staff.open(path))
    context.insert(Employee("Cleo", salary: 30))
    try context.save()
    try replace()
    func code(_ body: () throws -> BatchResult) -> BatchError.Code? {
      #expect(throws: BatchError.self) { try body() }?.code
    }
    let row = BatchInsertRequest<Employee>(1...1) { _, row in row.set(\.name, to: "Dee") }
    #expect(code { try context.execute(row) } == .storeChanged)
    #expect(code { try context.execute(BatchDeleteRequest<Employee>()) } == .storeChanged)
    let update = BatchUpdateRequest<Employee>([.set(\.salary, to: 1)])
    #expect(code { try context.execute(update) } == .storeChanged)
    #expect(try rows() == ["Alice10", "Bob20"])
  }

  @Test func `a history token expires when a backup is restored, whatever is saved afterwards`()
    async throws
  {
    func container() async throws -> ModelContainer {
      var configuration = ModelConfiguration(path: path)
      configuration.tracksHistory = true
      return try await ModelContainer(for: Employee.self, configurations: configuration)
    }
    func save(_ count: Int, _ container: ModelContainer) throws -> HistoryToken {
      let context = ModelContext(container)
      for number in 0..<count {
        context.insert(Employee("e\(number)", salary: number))
        try context.save()
      }
      return try #require(try context.fetchHistory().last).token
    }
    let first = try await container()
    let early = try save(2, first)
    let backup = directory.file("early.db")
    try TestDatabase.make("staff.db", in: directory, "VACUUM INTO '\(backup)'")
    let token = try save(4, first)
    #expect(try ModelContext(first).fetchHistory(after: token).isEmpty)
    try #require(rename(backup, path) == 0)
    for end in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) }
    let second = try await container()
    for _ in 0..<3 {
      _ = try save(2, second)
      let error = #expect(throws: BatchError.self) {
        try ModelContext(second).fetchHistory(after: token)
      }
      #expect(error?.code == .historyTokenExpired)
    }
    // A token of what the backup has is valid, also when its own transaction is deleted.
    #expect(try ModelContext(second).fetchHistory(after: early).count == 6)
    let next = try ModelContext(second).fetchHistory(after: early)[0].token
    try ModelContext(second).deleteHistory(before: next)
    #expect(try ModelContext(second).fetchHistory(after: early).count == 6)
  }
}
