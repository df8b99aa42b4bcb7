import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Many contexts that write to one store at the same time.
@Suite struct ContentionTests {
  @Test(arguments: ["wal", "delete"])
  func `C71 eight contexts lose no update`(journalMode: String) async throws {
    let directory = try TemporaryDirectory()
    let path = try Staff.make(in: directory)
    try TestDatabase.make("staff.db", in: directory, "PRAGMA journal_mode = \(journalMode)")
    let container = try await Staff.open(path)
    let conflicts = try await withThrowingTaskGroup(of: Int.self) { group in
      for worker in 0..<8 {
        let background = container.newBackgroundContext()
        group.addTask {
          try await background.perform { context throws(BatchError) in
            context.automaticallyMergesChangesFromParent = worker.isMultiple(of: 2)
            context.stalenessInterval = 0
            var conflicts = 0
            for _ in 0..<20 {
              let employee: Employee = try context.fetch(Employee.self, limit: 1)[0]
              context.insert(Employee("of \(worker)", salary: 1))
              employee.salary += 1
              while true {
                do throws(BatchError) {
                  try context.save()
                  break
                } catch {
                  guard error.code == .mergeConflict else { throw error }
                  conflicts += 1
                  context.refresh(employee, mergeChanges: false)
                  employee.salary += 1
                }
              }
            }
            return conflicts
          }
        }
      }
      return try await group.reduce(0, +)
    }
    print("\(journalMode): \(conflicts) conflicts")
    #expect(
      try TestDatabase.value(path, "SELECT salary FROM employees WHERE id = 1") == .integer(170)
    )
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM employees") == .integer(162))
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test func `several contexts write one store in memory`() async throws {
    let container = try await ModelContainer(
      configurations: ModelConfiguration(
        inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER)"
      )
    )
    try await withThrowingTaskGroup { group in
      for _ in 0..<4 {
        let background = container.newBackgroundContext()
        group.addTask {
          try await background.perform { context throws(BatchError) in
            for number in 0..<25 {
              try context.insertNewObject(ofEntity: "a")["n"] = .integer(Int64(number))
              try context.save()
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try ModelContext(container).fetchCount(FetchRequest(entity: "a")) == 100)
  }
}
