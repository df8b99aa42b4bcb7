import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct ModelSnapshotTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  private func stored(_ table: String = "employees") throws -> [SQLValue] {
    try TestDatabase.rows(path, "SELECT name, salary FROM \(table) WHERE id = 1").first ?? []
  }

  @Test func `a snapshot is changed in another task and applied without reading the row`()
    async throws
  {
    let container = try await Staff.open(path)
    let snapshot = try await container.newBackgroundContext().perform { context in
      try ModelSnapshot(of: context.fetch(Employee.self)[0])
    }
    #expect(snapshot.name == "Alice" && snapshot["salary"] == .integer(10))
    let changed = await Task {
      var copy = snapshot
      copy.salary += 5
      return copy
    }.value
    #expect(changed != snapshot)
    let context = ModelContext(container)
    let employee = try context.apply(changed)
    #expect(employee.salary == 15 && employee.name == "Alice")
    #expect(employee.changedValues == ["salary": .integer(15)])
    try context.save()
    #expect(try stored() == [.text("Alice"), .integer(15)])
    // One that was not changed leaves nothing to save.
    #expect(try !context.apply(ModelSnapshot(of: employee)).hasChanges)
  }

  @Test
  func `applying a snapshot of a row changed since is a conflict, with and without a version`()
    async throws
  {
    let container = try await Staff.open(path)
    let reader = ModelContext(container)
    var snapshot = try ModelSnapshot(of: reader.fetch(Employee.self)[0])
    var versioned = try ModelSnapshot(of: reader.fetch(VersionedEmployee.self)[0])
    snapshot.salary = 99
    versioned.salary = 99
    let other = ModelContext(container)
    try other.fetch(Employee.self)[0].name = "Eve"
    try other.fetch(VersionedEmployee.self)[0].name = "Eve"
    try other.save()
    // Also where the context knows the row as it is now.
    for context in [ModelContext(container), other] {
      try context.apply(snapshot)
      try context.apply(versioned)
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.mergeConflicts.count == 2)
    }
    other.mergePolicy = .mergeByPropertyObjectTrump
    try other.save()
    #expect(try stored() == [.text("Eve"), .integer(99)])
    #expect(try stored("versioned") == [.text("Eve"), .integer(99)])
  }

  @Test func `a row is deleted only if it equals the snapshot`() async throws {
    let container = try await Staff.open(path)
    let snapshot = try ModelSnapshot(of: ModelContext(container).fetch(Employee.self)[0])
    try TestDatabase.make("staff.db", in: directory, "UPDATE employees SET salary = 11")
    let context = ModelContext(container)
    context.delete(try context.apply(snapshot))
    #expect(throws: BatchError.self) { try context.save() }
    #expect(try stored() == [.text("Alice"), .integer(11)])
  }

  @Test func `a snapshot value that does not fit is refused and leaves the object unchanged`()
    async throws
  {
    let container = try await Staff.open(path)
    let context = ModelContext(container)
    let employee = try context.fetch(Employee.self)[0]
    employee.name = "Eve"
    var snapshot = try ModelSnapshot(of: employee)
    #expect(snapshot.name == "Eve")
    snapshot.name = "Zoe"
    snapshot["salary"] = .text("much")
    let error = #expect(throws: BatchError.self) { try context.apply(snapshot) }
    #expect(error?.code == .valueMismatch)
    #expect(employee.name == "Eve" && employee.salary == 10 && employee.isUpdated)
    #expect(throws: BatchError.self) { try ModelSnapshot(of: Employee("New", salary: 1)) }
    let foreign = try await Staff.open(try Staff.make(in: directory, name: "other.db"))
    #expect(throws: BatchError.self) { try ModelContext(foreign).apply(snapshot) }
    context.delete(employee)
    #expect(throws: BatchError.self) { try ModelSnapshot(of: employee) }
    #expect(throws: BatchError.self) { try context.apply(snapshot) }
  }

  @Test func `objects without a class have snapshots by property names`() async throws {
    try TestDatabase.make("staff.db", in: directory, "INSERT INTO tags VALUES ('a', 1.5)")
    let context = ModelContext(try await Staff.open(path))
    var snapshot = try ModelSnapshot(of: context.fetch(FetchRequest(entity: "tags"))[0])
    snapshot["weight"] = .real(2.5)
    #expect(try context.apply(snapshot)["weight"] == .real(2.5))
    try context.save()
    #expect(try TestDatabase.value(path, "SELECT weight FROM tags") == .real(2.5))
  }
}
