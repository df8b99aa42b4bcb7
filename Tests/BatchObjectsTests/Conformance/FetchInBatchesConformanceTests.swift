import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct FetchInBatchesConformanceTests {
  let directory: TemporaryDirectory
  let path: String
  let container: ModelContainer

  init() async throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
    try TestDatabase.make(
      "staff.db",
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
      INSERT INTO employees SELECT i, 'name ' || i, i FROM c
      """
    )
    container = try await Staff.open(path)
  }

  private let byKey = FetchDescriptor<Employee>(predicate: #Predicate { $0.salary > 20 })

  @Test func `a collection fetched in batches creates its objects again after a reset`() throws {
    let context = ModelContext(container)
    let employees = try context.fetch(byKey, batchSize: 10)
    let first = employees[0]
    #expect(first.salary == 21)
    context.reset()
    #expect(employees[0] !== first)
    #expect(employees[0].salary == 21 && employees[979].salary == 1_000)
    #expect(context.registeredModels.count == 10)
  }

  @Test func `a call with the index of a missing store is an error`() throws {
    let context = ModelContext(container)
    for place in [-1, 1, .max] {
      let history = #expect(throws: BatchError.self) {
        try context.fetchHistory(inStore: place)
      }
      #expect(history?.description.contains("there is no store \(place)") == true)
      #expect(throws: BatchError.self) { try context.executeOnSave("SELECT 1", inStore: place) }
    }
  }

  @Test func `C50 a collection fetched in batches keeps only its last batch of objects`() throws {
    let context = ModelContext(container)
    let employees = try context.fetch(byKey, batchSize: 10)
    #expect(employees.count == 980)
    #expect(context.registeredModels.isEmpty)
    for position in [979, 0, 504] {
      #expect(employees[position].salary == position + 21)
      // Only the batch that contains the position, with its rows.
      let salaries = context.registeredModels.filter { !$0.isFault }.map { $0["salary"] }
      let batch = (position / 10 * 10)..<(position / 10 * 10 + 10)
      #expect(Set(salaries) == Set(batch.map { .integer(Int64($0 + 21)) }))
    }
    #expect(employees.map(\.salary) == Array(21...1_000))
    #expect(context.registeredModels.count <= 10)
    #expect(Array(employees.reversed().prefix(3)).map(\.salary) == [1_000, 999, 998])
  }

  @Test func `identifiers are fetched in batches too`() throws {
    let context = ModelContext(container)
    let identifiers = try context.fetchIdentifiers(byKey, batchSize: 7)
    #expect(identifiers.map(\.primaryKey) == (21...1_000).map { "p\($0)" })
    #expect(context.registeredModels.isEmpty)
    let error = #expect(throws: BatchError.self) { try context.fetch(byKey, batchSize: 0) }
    #expect(error?.code == .invalidParameter)
  }

  @Test func `a collection fetched in batches ends with the unsaved objects`() throws {
    let context = ModelContext(container)
    let new = Employee("new", salary: 5_000)
    context.insert(new)
    let changed = try #require(try context.fetch(FetchDescriptor<Employee>(fetchLimit: 1)).first)
    changed.salary = 4_000
    var descriptor = byKey
    descriptor.fetchOffset = 970
    var employees = try context.fetch(descriptor, batchSize: 4)
    #expect(employees.map(\.salary) == Array(991...1_000) + [4_000, 5_000])
    descriptor.fetchLimit = 11
    employees = try context.fetch(descriptor, batchSize: 4)
    #expect(employees.map(\.salary) == Array(991...1_000) + [4_000])
    descriptor.fetchOffset = 981
    employees = try context.fetch(descriptor, batchSize: 4)
    #expect(employees.count == 1)
    #expect(employees[0] === new)
  }

  @Test
  func `an object whose row was deleted since the fetch is a fault that reports the deletion`()
    throws
  {
    let context = ModelContext(container)
    let employees = try context.fetch(byKey, batchSize: 3)
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees WHERE id = 22")
    #expect(employees.prefix(3).map(\.salary) == [21, 0, 23])
    let error = #expect(throws: BatchError.self) { try context.fetchCount(byKey) }
    #expect(error?.code == .objectNotFound)
  }

  @Test func `an enumeration visits every object with at most two batches in memory`() throws {
    let context = ModelContext(container)
    var salaries: [Int] = []
    var greatest = 0
    try context.enumerate(byKey, batchSize: 10) { employee in
      salaries.append(employee.salary)
      greatest = max(greatest, context.registeredModels.count)
    }
    #expect(salaries == Array(21...1_000))
    #expect(greatest <= 20)
  }

  @Test func `an enumeration refuses unsaved changes unless they are allowed`() throws {
    let context = ModelContext(container)
    var count = 0
    let error = #expect(throws: BatchError.self) {
      try context.enumerate(byKey, batchSize: 10) { employee in
        count += 1
        employee.name = "changed"
      }
    }
    #expect(error?.code == .unsavedChanges)
    #expect(count == 10)
    context.rollback()
    try context.enumerate(byKey, batchSize: 10, allowEscapingMutations: true) { employee in
      employee.name = "changed"
    }
    #expect(context.changedModelsArray.count == 980)
    context.rollback()
    count = 0
    try context.enumerate(byKey, batchSize: 10) { employee in
      count += 1
      employee.name = "saved"
      if count.isMultiple(of: 10) { try context.save() }
    }
    let saved = FetchDescriptor<Employee>(predicate: #Predicate { $0.name == "saved" })
    #expect(try context.fetchCount(saved) == 980)
  }

  @Test func `an enumeration includes objects that are saved between two batches`() throws {
    let context = ModelContext(container)
    for number in 1...7 { context.insert(Employee("new \(number)", salary: 9_000 + number)) }
    let new = FetchDescriptor<Employee>(predicate: #Predicate { $0.salary > 9_000 })
    let collection = try context.fetch(new, batchSize: 2)
    var names: [String] = []
    try context.enumerate(new, batchSize: 2) { employee in
      names.append(employee.name)
      try context.save()
    }
    #expect(names.sorted() == (1...7).map { "new \($0)" })
    #expect(collection.map(\.name).sorted() == names.sorted())
  }

  @Test func `C53 resolving identifiers reports the number without a row unless told to skip them`()
    throws
  {
    let context = ModelContext(container)
    let list = try context.fetchIdentifierList(byKey)
    try TestDatabase.make("staff.db", in: directory, "DELETE FROM employees WHERE id IN (22, 24)")
    let error = #expect(throws: BatchError.self) {
      try context.fetch(list[0..<5], as: Employee.self)
    }
    #expect(error?.code == .objectNotFound)
    #expect(error?.message == "2 of 5 identifiers have no row")
    // Counts all that were requested, however many statements that takes.
    let many = #expect(throws: BatchError.self) {
      try context.fetch(Array(list[0..<600]) + list[0..<5], as: Employee.self)
    }
    #expect(many?.message == "4 of 605 identifiers have no row")
    let found = try context.fetch(list[0..<5], as: Employee.self, skippingMissing: true)
    #expect(found.map(\.salary) == [21, 23, 25])
    let reversed = try context.fetch(list[4..<700].reversed(), as: Employee.self)
    #expect(reversed.map(\.salary) == (25...720).reversed())
    #expect(context.registeredModels.count < 710)
  }
}
