import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct ConcurrencyConformanceTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  // MARK: What the compiler refuses

  @Test func `C16 identifiers may cross tasks, but objects and contexts do not compile across`()
    throws
  {
    let (status, messages) = try SwiftCompiler.compile(
      objectImports + """
        func name(_ identifier: PersistentIdentifier, _ background: BackgroundContext) async throws -> String {
          try await background.perform { context in
            let object: ManagedObject = try context.existingModel(for: identifier)
            return "\\(object["name"])"
          }
        }
        func send(_ identifiers: [PersistentIdentifier]) async -> Int {
          await Task.detached { identifiers.count }.value
        }
        """,
      in: directory
    )
    #expect(status == 0 && !messages.contains("warning:"), "\(messages)")

    for source in [
      """
      func send(_ object: ManagedObject) async {
        await Task.detached { print(object.isFault) }.value
      }
      """,
      """
      func send(_ context: ModelContext) async {
        await Task.detached { context.reset() }.value
      }
      """,
      """
      func take(_ background: BackgroundContext) async throws -> ManagedObject {
        try await background.perform { context in try context.insertNewObject(ofEntity: "a") }
      }
      """,
      "struct Message: Sendable { let object: ManagedObject }",
    ] {
      let (status, messages) = try SwiftCompiler.compile(objectImports + source, in: directory)
      #expect(status != 0, "\(source)")
      #expect(
        messages.contains("Sendable") || messages.contains("data races"),
        "\(source)\n\(messages)"
      )
    }
  }

  // MARK: Several contexts

  @Test func `C71 several background contexts leave the same store as serial work`() async throws {
    try TestDatabase.make(
      "staff.db",
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM c WHERE i < 339)
      INSERT INTO employees (id, name, salary) SELECT i, 'employee ' || i, i FROM c
      """,
      "VACUUM INTO '\(directory.file("serial.db"))'"
    )
    var results: [[[SQLValue]]] = []
    for (path, workers) in [(path, 8), (directory.file("serial.db"), 1)] {
      let container = try await Staff.open(path)
      let context = ModelContext(container)
      let request = FetchRequest(entity: "Employee", where: "id >= 100")
      let identifiers = Array(try context.fetchIdentifiers(request))
      let chunks = stride(from: 0, to: identifiers.count, by: 10).map {
        Array(identifiers[$0..<min($0 + 10, identifiers.count)])
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for worker in 0..<workers {
          group.addTask {
            for number in stride(from: worker, to: chunks.count, by: workers) {
              try await container.newBackgroundContext().perform { context in
                for identifier in chunks[number] {
                  let employee = try context.existingModel(for: identifier, as: Employee.self)
                  employee.salary = employee.salary * 2 + 1
                  if employee.salary % 3 == 0 { context.delete(employee) }
                }
                try context.save()
              }
            }
          }
        }
        try await group.waitForAll()
      }
      results.append(try TestDatabase.rows(path, "SELECT * FROM employees ORDER BY id"))
    }
    #expect(results[0] == results[1])
    #expect(results[0].count == 2 + 240 - 80)
  }
}
