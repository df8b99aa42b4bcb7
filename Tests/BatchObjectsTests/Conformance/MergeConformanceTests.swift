import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Two contexts that change the same row: the cases and numbers of Core Data's merge policies.
@Suite struct MergeConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  private func alice(in context: ModelContext) throws -> Employee {
    try #require(try context.fetch(Employee.self, where: "id = 1").first)
  }

  private func stored() throws -> [SQLValue] {
    try TestDatabase.rows(path, "SELECT name, salary FROM employees WHERE id = 1").first ?? []
  }

  @Test func `C60 the error policy fails the second writer with one conflict and both snapshots`()
    async throws
  {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let (one, two) = (try alice(in: first), try alice(in: second))
    one.name = "FromCtx1"
    two.name = "FromCtx2"
    try first.save()
    let error = try #require(throws: BatchError.self) { try second.save() }
    #expect(error.code == .mergeConflict)
    let conflict = try #require(error.mergeConflicts.first)
    #expect(error.mergeConflicts.count == 1)
    #expect(conflict.identifier == two.persistentModelID)
    #expect(conflict.objectSnapshot == ["name": .text("Alice"), "salary": .integer(10)])
    #expect(conflict.changedValues == ["name": .text("FromCtx2")])
    #expect(conflict.persistedSnapshot == ["name": .text("FromCtx1"), "salary": .integer(10)])
    #expect(two.isUpdated && two.name == "FromCtx2")
    #expect(try stored() == [.text("FromCtx1"), .integer(10)])
    // After a refresh, the same change can be saved, whatever the staleness interval.
    one.salary = 50
    try first.save()
    second.refresh(two, mergeChanges: true)
    two.salary += 1
    try second.save()
    #expect(try stored() == [.text("FromCtx2"), .integer(51)])
  }

  /// The outcome for Alice, whose name two contexts set, when the second one saves after the first; they also set
  /// these salaries.
  private func expect(
    _ name: String,
    _ salary: Int,
    of policy: MergePolicy,
    salaries: (Int?, Int?)
  ) async throws {
    try TestDatabase.make(
      "staff.db",
      in: directory,
      "UPDATE employees SET name = 'Alice', salary = 10 WHERE id = 1"
    )
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    second.mergePolicy = policy
    let (one, two) = (try alice(in: first), try alice(in: second))
    one.name = "FromCtx1"
    two.name = "FromCtx2"
    if let salary = salaries.0 { one.salary = salary }
    if let salary = salaries.1 { two.salary = salary }
    try first.save()
    try second.save()
    #expect(two.name == name && two.salary == salary)
    #expect(two.changedValues.isEmpty && !second.hasChanges)
    #expect(try stored() == [.text(name), .integer(Int64(salary))])
  }

  @Test func `C61 store trump keeps the store's value where both changed, and saves the rest`()
    async throws
  {
    try await expect("FromCtx1", 99, of: .mergeByPropertyStoreTrump, salaries: (nil, 99))
    try await expect("FromCtx1", 50, of: .mergeByPropertyStoreTrump, salaries: (50, nil))
  }

  @Test func `C62 object trump keeps the object's value where both changed, and the store's rest`()
    async throws
  {
    try await expect("FromCtx2", 50, of: .mergeByPropertyObjectTrump, salaries: (50, nil))
    try await expect("FromCtx2", 99, of: .mergeByPropertyObjectTrump, salaries: (50, 99))
  }

  @Test func `C63 overwrite keeps the object's values everywhere, even unchanged ones`()
    async throws
  {
    try await expect("FromCtx2", 10, of: .overwrite, salaries: (50, nil))
    try await expect("FromCtx2", 99, of: .overwrite, salaries: (nil, 99))
  }

  @Test func `C64 rollback keeps the store's values everywhere and leaves nothing to save`()
    async throws
  {
    try await expect("FromCtx1", 10, of: .rollback, salaries: (nil, 99))
    try await expect("FromCtx1", 50, of: .rollback, salaries: (50, nil))
  }

  @Test func `C65 changes of different rows never conflict`() async throws {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    try alice(in: first).salary = 1
    let bob = try #require(try second.fetch(Employee.self, where: "id = 2").first)
    bob.salary = 2
    try first.save()
    try second.save()
    #expect(
      try TestDatabase.rows(path, "SELECT salary FROM employees") == [[.integer(1)], [.integer(2)]]
    )
  }

  @Test(arguments: [
    MergePolicy.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite,
    .rollback,
  ])
  func `the merge policy resolves a row deleted elsewhere and changed here`(policy: MergePolicy)
    async throws
  {
    let container = try await Staff.open(path)
    let context = ModelContext(container)
    context.mergePolicy = policy
    let alice = try alice(in: context)
    alice.salary = 99
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees WHERE id = 1")
    switch policy {
    case .error:
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.mergeConflicts.map { $0.persistedSnapshot } == [nil])
      #expect(alice.isUpdated)
    case .mergeByPropertyObjectTrump, .overwrite:
      try context.save()
      #expect(try stored() == [.text("Alice"), .integer(99)])
      #expect(alice.salary == 99 && !alice.isDeleted)
    case .mergeByPropertyStoreTrump, .rollback:
      try context.save()
      #expect(try stored().isEmpty)
      #expect(alice.isDeleted && !context.hasChanges)
    }
  }

  @Test(arguments: [MergePolicy.mergeByPropertyObjectTrump, .overwrite])
  func `a restored row has all its values, or conflicts if they are unknown`(
    policy: MergePolicy
  ) async throws {
    let container = try await Staff.open(path)
    let context = ModelContext(container)
    context.mergePolicy = policy
    let alice = try alice(in: context)
    alice.salary = 99
    context.refresh(alice, mergeChanges: true)
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees WHERE id = 1")
    try context.save()
    #expect(try stored() == [.text("Alice"), .integer(99)])

    alice.salary = 100
    context.mergeChanges(updated: [alice.persistentModelID])
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees WHERE id = 1")
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.mergeConflicts.map { $0.persistedSnapshot } == [nil])
    #expect(error.mergeConflicts.map { $0.changedValues } == [["salary": .integer(100)]])
    #expect(try stored().isEmpty && alice.isUpdated)
  }

  @Test(arguments: [
    MergePolicy.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite,
    .rollback,
  ])
  func `the merge policy resolves a row changed elsewhere and deleted here`(policy: MergePolicy)
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    context.mergePolicy = policy
    let alice = try alice(in: context)
    context.delete(alice)
    try TestDatabase.make("staff.db", in: directory, "UPDATE employees SET salary = 5")
    switch policy {
    case .error:
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.mergeConflicts.map(\.isDeletion) == [true])
      #expect(alice.isDeleted)
    case .mergeByPropertyObjectTrump, .overwrite:
      try context.save()
      #expect(try stored().isEmpty)
    case .mergeByPropertyStoreTrump, .rollback:
      try context.save()
      #expect(alice.salary == 5 && !alice.isDeleted && !context.hasChanges)
    }
  }

  @Test func `a row that both contexts delete is no conflict`() async throws {
    let context = ModelContext(try await Staff.open(path))
    context.delete(try alice(in: context))
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees")
    try context.save()
    #expect(!context.hasChanges)
  }

  @Test func `a version column detects changes anywhere in the row and is incremented`()
    async throws
  {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let one = try first.fetch(VersionedEmployee.self)
    let two = try second.fetch(VersionedEmployee.self)
    one[0].salary = 11
    one[1].salary = 21
    two[0].name = "Eve"
    try first.save()
    #expect(one.map(\.revision) == [2, 2])
    #expect(throws: BatchError.self) { try second.save() }
    second.mergePolicy = .mergeByPropertyObjectTrump
    try second.save()
    #expect(two[0].revision == 3 && two[0].salary == 11)
    #expect(throws: BatchError.self) { try two[0].setValue(.integer(9), forKey: "revision") }
    // A change to something that the version does not cover is not a conflict.
    two[0].salary = 12
    try TestDatabase.make("staff.db", in: directory, "UPDATE versioned SET name = 'Zoe'")
    try second.save()
    #expect(two[0].name == "Zoe" && two[0].salary == 12)
    let new = VersionedEmployee()
    new.name = "Carol"
    new.salary = 30
    second.insert(new)
    try second.save()
    #expect(new.revision == 1)
  }

  @Test func `C66 merged changes show updates, register inserts and mark deleted objects`()
    async throws
  {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let one = try first.fetch(Employee.self)
    let two = try second.fetch(Employee.self)
    one[0].name = "Eve"
    first.delete(one[1])
    let carol = Employee("Carol", salary: 30)
    first.insert(carol)
    let deleted = one[1].persistentModelID
    try first.save()
    #expect(two[0].name == "Alice")
    let inserted = second.mergeChanges(
      inserted: [carol.persistentModelID],
      updated: [one[0].persistentModelID],
      deleted: [deleted]
    )
    #expect(two[0].isFault && two[0].name == "Eve")
    #expect(second.registeredModel(for: carol.persistentModelID) === inserted[0])
    #expect((inserted[0] as? Employee)?.salary == 30)
    #expect(two[1].isDeleted && two[1].name == "Bob" && !second.hasChanges)
    #expect(second.registeredModel(for: deleted) === two[1])
    #expect(try second.fetch(Employee.self, where: "id = 2").isEmpty)
    #expect(throws: BatchError.self) { try second.existingModel(for: deleted) }
  }

  @Test func `C67 changes are merged by ids or URIs into several contexts`() async throws {
    let container = try await Staff.open(path)
    let contexts = [ModelContext(container), ModelContext(container)]
    let employees = try contexts.map { try alice(in: $0) }
    try TestDatabase.make("staff.db", in: directory, "UPDATE employees SET salary = 5")
    let identifier = employees[0].persistentModelID
    contexts[0].mergeChanges(updated: [identifier.uriRepresentation])
    #expect(employees.map(\.salary) == [5, 10])
    ModelContext.mergeChanges(ModelChanges(updated: [identifier]), into: contexts)
    #expect(employees.map(\.salary) == [5, 5])
    contexts[0].mergeChanges(deleted: [try #require(URL(string: "x-coredata://other/Employee/p1"))])
    #expect(!employees[0].isDeleted)
  }

  @Test func `C68 a context sees another's save at the next perform only with automatic merging`()
    async throws
  {
    let container = try await Staff.open(path)
    let (merging, other) = (Reader(container), Reader(container))
    try await merging.begin(merging: true)
    try await other.begin(merging: false)
    let writer = ModelContext(container)
    try alice(in: writer).name = "😀"
    try writer.save()
    #expect(await merging.name == "😀")
    #expect(await other.name == "Alice")
  }

  @Test func `a context without an executor merges automatically at its next fetch`() async throws {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    second.automaticallyMergesChangesFromParent = true
    let employees = try second.fetch(Employee.self)
    employees[1].salary = 77
    for employee in try first.fetch(Employee.self) { employee.name = "😀" }
    try first.save()
    // Not while the object is in use.
    #expect(employees.map(\.name) == ["Alice", "Bob"])
    _ = try second.fetchCount(FetchRequest(entity: "Employee"))
    #expect(employees.map(\.name) == ["😀", "😀"])
    #expect(employees[1].salary == 77)
    // A change to another attribute than the one changed there is not a conflict.
    try second.save()
    #expect(
      try TestDatabase.rows(path, "SELECT name, salary FROM employees WHERE id = 2")
        == [[.text("😀"), .integer(77)]]
    )
    first.delete(try alice(in: first))
    try first.save()
    _ = try second.fetchCount(FetchRequest(entity: "Employee"))
    #expect(employees[0].name == "😀" && employees[0].isDeleted)
    second.automaticallyMergesChangesFromParent = false
    try first.fetch(Employee.self)[0].salary = 1
    try first.save()
    _ = try second.fetchCount(FetchRequest(entity: "Employee"))
    #expect(employees[1].salary == 77)
  }

  @Test func `merging does not overwrite the context's own change of an attribute`() async throws {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    for reads in [true, false] {
      let (one, two) = (try alice(in: first), try alice(in: second))
      first.refresh(one, mergeChanges: false)
      two.salary += 1
      one.salary += 10
      try first.save()
      second.mergeChanges(updated: [one.persistentModelID])
      if reads { #expect(two.name == "Alice") }
      let error = try #require(throws: BatchError.self) { try second.save() }
      #expect(error.mergeConflicts.count == 1)
      second.mergePolicy = .mergeByPropertyStoreTrump
      try second.save()
      #expect(two.salary == one.salary && !second.hasChanges)
      second.mergePolicy = .error
    }
    #expect(try stored() == [.text("Alice"), .integer(30)])
  }

  @Test func `C69 refresh shows the old row until the staleness interval is 0`() async throws {
    let context = ModelContext(try await Staff.open(path))
    let alice = try alice(in: context)
    try TestDatabase.make("staff.db", in: directory, "UPDATE employees SET salary = 5")
    context.refresh(alice, mergeChanges: false)
    #expect(alice.isFault && alice.salary == 10)
    context.refreshAllObjects()
    #expect(alice.salary == 10)
    context.stalenessInterval = 1_000_000
    context.refreshAllObjects()
    #expect(alice.salary == 10)
    context.stalenessInterval = 0
    context.refreshAllObjects()
    #expect(alice.salary == 5)
  }

  @Test func `more merged changes than an inbox holds refresh all objects`() async throws {
    let container = try await Staff.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    second.automaticallyMergesChangesFromParent = true
    let employees = try second.fetch(Employee.self)
    employees[1].salary = 99
    for number in 0..<10_001 { first.insert(Employee("E", salary: number)) }
    try first.save()
    // Nobody reported the change, but the context notices it.
    try TestDatabase.make("staff.db", in: directory, "UPDATE employees SET name = 'Eve'")
    _ = try second.fetchCount(FetchRequest(entity: "Employee"))
    #expect(employees[0].name == "Eve")
    #expect(employees[1].name == "Eve" && employees[1].salary == 99)
  }

  @Test func `listeners are notified of saves by identifiers`() async throws {
    let container = try await Staff.open(path)
    let stream = container.savedChanges()
    let context = ModelContext(container)
    let alice = try alice(in: context)
    alice.salary = 11
    let carol = Employee("Carol", salary: 30)
    context.insert(carol)
    try context.save()
    context.delete(carol)
    let identifier = carol.persistentModelID
    try context.save()
    try context.save()
    alice.salary = 12
    try context.save()
    var iterator = stream.makeAsyncIterator()
    let changes = [await iterator.next(), await iterator.next(), await iterator.next()]
    #expect(changes.map { $0?.inserted } == [[identifier], [], []])
    let updated = [[alice.persistentModelID], [], [alice.persistentModelID]]
    #expect(changes.map { $0?.updated } == updated)
    #expect(changes.map { $0?.deleted } == [[], [identifier], []])
  }
}

/// An actor that keeps an object of its context between calls.
private actor Reader: ModelActor {
  nonisolated let modelContainer: ModelContainer
  nonisolated let modelExecutor: any SerialModelExecutor
  private var employee: Employee?

  init(_ container: ModelContainer) {
    modelContainer = container
    modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  var name: String? { employee?.name }

  func begin(merging: Bool) throws {
    modelContext.automaticallyMergesChangesFromParent = merging
    employee = try modelContext.fetch(Employee.self, where: "id = 1").first
    #expect(name == "Alice")
  }
}
