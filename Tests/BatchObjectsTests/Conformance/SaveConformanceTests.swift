import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class that leaves its children to foreign keys.
private final class Parent: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Parent.self,
    entity: "Parent",
    table: "parents",
    properties: [.attribute("a", \.a)]
  )
  var a: Int { self[\.a] }
}

@Suite struct SaveConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  private func employee(_ name: String, in context: ModelContext) throws -> Employee {
    let found = try context.fetch(
      Employee.self,
      where: "name = :name",
      parameters: ["name": .text(name)]
    )
    return try #require(found.first)
  }

  private func rows(_ sql: String = "SELECT name, salary FROM employees ORDER BY id") throws
    -> [[SQLValue]]
  {
    try TestDatabase.rows(path, sql)
  }

  @Test func `C6 a new object's id is temporary, and the object isInserted`() async throws {
    let context = ModelContext(try await Staff.open(path))
    let employee = Employee("Carol", salary: 30)
    #expect(employee.persistentModelID.isTemporary)
    context.insert(employee)
    #expect(employee.persistentModelID.isTemporary)
    #expect(
      employee.isInserted && !employee.isUpdated && !employee.isDeleted && employee.hasChanges
    )
    #expect(!employee.isFault)
    #expect(context.insertedModelsArray == [employee])
    #expect(employee.name == "Carol")
  }

  @Test func `C7 a saved object's id is permanent, and the object has no unsaved changes`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let employee = Employee("Carol", salary: 30)
    context.insert(employee)
    let temporary = employee.persistentModelID
    try context.save()
    #expect(!employee.persistentModelID.isTemporary)
    #expect(employee.persistentModelID.primaryKey == "p3")
    #expect(!employee.isInserted && !employee.isUpdated && !employee.isDeleted)
    #expect(!employee.hasChanges && !context.hasChanges)
    #expect(context.registeredModel(for: employee.persistentModelID) === employee)
    let old: Employee? = context.registeredModel(for: temporary)
    #expect(old == nil)
    #expect(try rows().last == [.text("Carol"), .integer(30)])
  }

  @Test func `C8 obtainPermanentIdentifiers gives a permanent id that the save keeps`() async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let employee = Employee("Carol", salary: 30)
    context.insert(employee)
    let temporary = employee.persistentModelID
    try context.obtainPermanentIdentifiers(for: [employee])
    let permanent = employee.persistentModelID
    #expect(permanent != temporary && !permanent.isTemporary)
    #expect(employee.isInserted)
    #expect(try rows().count == 2)
    try context.save()
    #expect(employee.persistentModelID == permanent)
    #expect(try rows().count == 3)
    // A key that was set is stored as its columns convert it.
    try TestDatabase.make(
      "staff.db",
      in: directory,
      """
      CREATE TABLE keys (t TEXT, i INT, r REAL, n NUMERIC, b BLOB, x, PRIMARY KEY (t, i, r, n, b, x))
      """
    )
    let values: [[SQLValue]] = [
      Array(repeating: .integer(5), count: 6), Array(repeating: .real(5), count: 6),
      Array(repeating: .real(5.5), count: 6), Array(repeating: .text("5"), count: 6),
      Array(repeating: .text(" 5.0 "), count: 6), Array(repeating: .text("5x"), count: 6),
      Array(repeating: .blob([53]), count: 6),
    ]
    let container = try await Staff.open(path)
    for values in values {
      let context = ModelContext(container)
      let object = try context.insertNewObject(ofEntity: "keys")
      for (name, value) in zip(["t", "i", "r", "n", "b", "x"], values) { object[name] = value }
      try context.obtainPermanentIdentifiers(for: [object])
      let permanent = object.persistentModelID
      try context.save()
      #expect(object.persistentModelID == permanent, "\(values[0])")
      #expect(try ModelContext(container).existingModel(for: permanent)["x"] == values[5])
    }
  }

  @Test func `C9 obtainPermanentIdentifiers ignores objects that have a permanent id`() async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let alice = try employee("Alice", in: context)
    let carol = Employee("Carol", salary: 30)
    context.insert(carol)
    try context.obtainPermanentIdentifiers(for: [alice, carol])
    let identifier = carol.persistentModelID
    try context.obtainPermanentIdentifiers(for: [alice, carol])
    #expect(carol.persistentModelID == identifier)
    #expect(alice.persistentModelID.primaryKey == "p1")
  }

  @Test func `C25 keys are not reused after deleting, saving and reopening`() async throws {
    for key in ["p3", "p4"] {
      let context = ModelContext(try await Staff.open(path))
      let employee = Employee("Carol", salary: 30)
      context.insert(employee)
      try context.save()
      #expect(employee.persistentModelID.primaryKey == key)
      context.delete(employee)
      try context.save()
    }
    // The history also preserves values of a row that another program inserted, when it is deleted here.
    try TestDatabase.make("staff.db", in: directory, "INSERT INTO employees VALUES (50, 'Z', 1)")
    let context = ModelContext(try await Staff.open(path))
    context.delete(try employee("Z", in: context))
    try context.save()
    let last = Employee("Last", salary: 1)
    context.insert(last)
    try context.save()
    #expect(last.persistentModelID.primaryKey == "p51")
  }

  /// Parents whose children are deleted by foreign keys of one column and of two.
  private func family() throws -> String {
    try TestDatabase.make(
      "family.db",
      in: directory,
      "CREATE TABLE parents (id INTEGER PRIMARY KEY, a, b, UNIQUE (a, b))",
      "CREATE TABLE ones (id INTEGER PRIMARY KEY, parent REFERENCES parents ON DELETE CASCADE)",
      """
      CREATE TABLE twos (id INTEGER PRIMARY KEY, a, b,
        FOREIGN KEY (a, b) REFERENCES parents (a, b) ON DELETE CASCADE)
      """,
      "CREATE TABLE grandchildren (id INTEGER PRIMARY KEY, one REFERENCES ones ON DELETE CASCADE)",
      "INSERT INTO parents VALUES (1, 1, 1), (9, 9, 9)",
      "INSERT INTO ones VALUES (1, 1), (20, 9)",
      "INSERT INTO twos VALUES (1, 1, 1), (30, 9, 9)",
      "INSERT INTO grandchildren VALUES (1, 1), (40, 20)"
    )
  }

  /// The keys of new rows.
  private func nextKeys(_ path: String) async throws -> [String] {
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let objects = try ["parents", "ones", "twos", "grandchildren"].map {
      try context.insertNewObject(ofEntity: $0)
    }
    try context.save()
    return objects.map(\.persistentModelID.primaryKey)
  }

  @Test(arguments: [true, false])
  func `keys of rows deleted by a cascade are not reused`(_ isBatch: Bool) async throws {
    let path = try family()
    do {
      let container = try await ModelContainer(
        for: Parent.self,
        configurations: ModelConfiguration(path: path)
      )
      let context = ModelContext(container)
      let last = #Predicate<Parent> { $0.a == 9 }
      if isBatch {
        #expect(try context.execute(BatchDeleteRequest(where: last)).count == 1)
      } else {
        context.delete(try #require(context.fetch(FetchDescriptor(predicate: last)).first))
        try context.save()
      }
    }
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM twos") == ["1"])
    #expect(try await nextKeys(path) == ["p10", "p21", "p31", "p41"])
  }

  @Test(arguments: [true, false])
  func `keys of rows deleted by a job are not reused if contexts have written the store`(
    _ isManaged: Bool
  ) async throws {
    let path = try family()
    if isManaged { #expect(try await nextKeys(path) == ["p10", "p21", "p31", "p41"]) }
    // Another program inserts the rows that the job deletes.
    try TestDatabase.make(
      "family.db",
      in: directory,
      "INSERT INTO parents VALUES (50, 50, 50)",
      "INSERT INTO ones VALUES (60, 50)",
      "INSERT INTO twos VALUES (70, 50, 50)",
      "INSERT INTO grandchildren VALUES (80, 60)"
    )
    do {
      let store = try await Store(path: path)
      let list = try await store.fetchIdentifiers(FetchRequest(entity: "parents", where: "id > 1"))
      var configuration = WriterConfiguration()
      configuration.enforcesForeignKeys = true
      let lane = try store.makeWriterLane(configuration)
      let entity = try store.schema.entity(named: "parents")
      let key = try entity.requireKey()
      let change = BulkChange(
        entity: entity,
        key: key,
        action: .delete(archive: nil),
        predicate: nil,
        recheck: .off,
        parameters: [:]
      )
      _ = try await lane.commit(
        change,
        to: ChunkKeys(list.packed, 0..<list.count, key: key),
        at: 0..<list.count
      )
    }
    // A job creates no table for contexts that never existed.
    let sequences = try TestDatabase.texts(
      path,
      "SELECT name FROM sqlite_schema WHERE name = '_batch_sequence'"
    )
    #expect(sequences.isEmpty == !isManaged)
    #expect(
      try await nextKeys(path)
        == (isManaged ? ["p51", "p61", "p71", "p81"] : ["p2", "p2", "p2", "p2"])
    )
  }

  @Test func `C31 existingModel with an unsaved temporary id returns its object`() async throws {
    let context = ModelContext(try await Staff.open(path))
    let employee = Employee("Carol", salary: 30)
    context.insert(employee)
    #expect(try context.existingModel(for: employee.persistentModelID) === employee)
    #expect(context.registeredModel(for: employee.persistentModelID) === employee)
    #expect(context[employee.persistentModelID, as: Employee.self] === employee)
  }

  @Test func `C32 existingModel for a deleted, unsaved object returns it with isDeleted`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let alice = try employee("Alice", in: context)
    context.delete(alice)
    #expect(alice.isDeleted)
    #expect(context.deletedModelsArray == [alice])
    let found: Employee = try context.existingModel(for: alice.persistentModelID)
    #expect(found === alice)
  }

  @Test func `C33 reading a deleted id fails after the save and returns the object before`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let alice = try employee("Alice", in: context)
    let identifier = alice.persistentModelID
    context.delete(alice)
    #expect(context.model(for: identifier) === alice)
    try context.save()
    #expect(!alice.isDeleted)
    #expect(context.model(for: identifier) !== alice)
    #expect(code { try context.model(for: identifier).value(forKey: "name") } == .objectNotFound)
    #expect(try rows().count == 1)
    #expect(code { try alice.setValue(.integer(1), forKey: "salary") } == .noContext)
  }

  @Test func `C54 refresh(mergeChanges: false) discards edits and makes a fault that loads again`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let alice = try employee("Alice", in: context)
    alice.salary = 99
    #expect(alice.isUpdated)
    context.refresh(alice, mergeChanges: false)
    #expect(alice.isFault && !alice.hasChanges && !context.hasChanges)
    #expect(alice.salary == 10)
  }

  @Test func `C55 refresh(mergeChanges: true) keeps edits`() async throws {
    let context = ModelContext(try await Staff.open(path))
    context.stalenessInterval = 0
    let alice = try employee("Alice", in: context)
    alice.salary = 99
    try TestDatabase.make(
      "staff.db",
      in: directory,
      "UPDATE employees SET name = 'Eve', salary = 1"
    )
    context.refresh(alice, mergeChanges: true)
    #expect(alice.salary == 99)
    #expect(alice.name == "Eve")
    // A refreshed object does not conflict.
    try context.save()
    #expect(try rows().first == [.text("Eve"), .integer(99)])
  }

  @Test func `C56 refreshAllObjects keeps the edits of changed objects and makes others faults`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let (alice, bob) = (try employee("Alice", in: context), try employee("Bob", in: context))
    alice.salary = 99
    context.refreshAllObjects()
    #expect(!alice.isFault && alice.salary == 99)
    #expect(bob.isFault)
  }

  @Test func `C57 rollback restores values, undeletes, forgets inserts and reads nothing`()
    async throws
  {
    let context = ModelContext(try await Staff.open(path))
    let (alice, bob) = (try employee("Alice", in: context), try employee("Bob", in: context))
    alice.salary = 99
    context.delete(bob)
    let carol = Employee("Carol", salary: 30)
    context.insert(carol)
    let temporary = carol.persistentModelID
    try TestDatabase.make("staff.db", in: directory, "DROP TABLE employees")
    context.rollback()
    #expect(alice.salary == 10 && !alice.hasChanges)
    #expect(!bob.isDeleted && bob.name == "Bob")
    let forgotten: Employee? = context.registeredModel(for: temporary)
    #expect(forgotten == nil)
    #expect(!carol.isInserted && carol.modelContext == nil && carol.name == "Carol")
    #expect(!context.hasChanges)
    try context.save()
  }

  @Test func `C58 a save without changes succeeds and opens no transaction`() async throws {
    let context = ModelContext(try await Staff.open(path))
    let other = try Connection(path: path)
    try other.execute("BEGIN EXCLUSIVE")
    try context.save()
    try other.execute("ROLLBACK")
  }

  @Test func `C59 a completed save leaves no strong registrations`() async throws {
    let context = ModelContext(try await Staff.open(path))
    for number in 0..<100 { context.insert(Employee("E\(number)", salary: number)) }
    for employee in try context.fetch(Employee.self) { employee.salary += 1 }
    #expect(context.registeredModels.count == 102)
    try context.save()
    #expect(context.registeredModels.isEmpty)
    #expect(try rows().count == 102)
    #expect(try rows().first == [.text("Alice"), .integer(11)])
    let background = try await Staff.open(path).newBackgroundContext()
    let counts = try await background.perform { context throws(BatchError) in
      for employee in try context.fetch(Employee.self) { employee.salary += 1 }
      let before = context.registeredModels.count
      try context.save()
      return [before, context.registeredModels.count]
    }
    #expect(counts == [102, 0])
  }

  @Test func `C89 two writers never share a key`() async throws {
    let path = path
    let identifiers = try await withThrowingTaskGroup(of: [String].self) { group in
      for writer in 0..<4 {
        // Separate containers share nothing but the file.
        let background = try await Staff.open(path).newBackgroundContext()
        group.addTask {
          try await background.perform { context throws(BatchError) in
            var keys: [String] = []
            for number in 0..<10 {
              let employee = Employee("W\(writer)", salary: number)
              context.insert(employee)
              if number.isMultiple(of: 2) {
                try context.obtainPermanentIdentifiers(for: [employee])
              }
              try context.save()
              keys.append(employee.persistentModelID.primaryKey)
            }
            return keys
          }
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(identifiers).count == 40)
    #expect(try rows().count == 42)
  }
}
