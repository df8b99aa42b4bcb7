import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Failing saves: nothing is written, and everything stays unsaved.
@Suite struct SaveFailureTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Staff.make(in: directory)
  }

  /// The objects of a context with all that can be seen of them.
  private func state(of context: ModelContext) -> [String] {
    (context.insertedModelsArray + context.changedModelsArray + context.deletedModelsArray).map {
      object in
      "\(object.persistentModelID) \(object.isInserted) \(object.isUpdated) \(object.isDeleted) "
        + "\(object.changedValues.sorted { $0.key < $1.key })"
    }
  }

  @Test func `a failing write leaves the store and the context unchanged`() async throws {
    let writer = try Connection(path: path)
    try writer.execute("CREATE TABLE fuse (n INTEGER)")
    try writer.execute("INSERT INTO fuse VALUES (0)")
    for event in ["INSERT", "UPDATE", "DELETE"] {
      try writer.execute(
        """
        CREATE TRIGGER fuse_\(event) BEFORE \(event) ON employees BEGIN
          UPDATE fuse SET n = n - 1;
          SELECT RAISE(ABORT, 'fuse') WHERE (SELECT n FROM fuse) = 0;
        END
        """
      )
    }
    let context = ModelContext(try await Staff.open(path))
    let employees = try context.fetch(Employee.self)
    employees[0].salary = 99
    context.delete(employees[1])
    for number in 0..<3 { context.insert(Employee("E\(number)", salary: number)) }
    let before = state(of: context)
    #expect(before.count == 5)
    var failures = 0
    while true {
      try writer.execute("UPDATE fuse SET n = ?", .integer(Int64(failures + 1)))
      let dump = try TestDatabase.dump(writer)
      do {
        try context.save()
        break
      } catch {
        #expect(error.code == .constraint)
        #expect(try TestDatabase.dump(writer) == dump)
        #expect(state(of: context) == before)
        failures += 1
      }
    }
    #expect(failures == 5)
    #expect(!context.hasChanges)
    #expect(
      try writer.texts("SELECT name || salary FROM employees ORDER BY id")
        == ["Alice99", "E00", "E11", "E22"]
    )
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test func `a failing commit leaves all objects unsaved`() async throws {
    let path = try TestDatabase.make(
      "keys.db",
      in: directory,
      "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
      """
      CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents)
      """
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let child = try context.insertNewObject(ofEntity: "children")
    child["parent"] = .integer(1)
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .constraint)
    #expect(child.isInserted && child.persistentModelID.isTemporary)
    // The parent may come after the child.
    let parent = try context.insertNewObject(ofEntity: "parents")
    try context.save()
    #expect(parent["id"] == .integer(1) && child["parent"] == .integer(1))
  }

  @Test(arguments: [MergePolicy.error, .mergeByPropertyStoreTrump])
  func `a changed object whose row is gone conflicts before its class validates it`(
    policy: MergePolicy
  ) async throws {
    let rows = """
      INSERT INTO badges VALUES (1, 7, 0, NULL);
      INSERT INTO people VALUES (1, 'Ada', NULL);
      """
    let container = try await Family.open(rows: rows)
    let (context, other) = (ModelContext(container), ModelContext(container))
    context.mergePolicy = policy
    let badge = try context.fetch(Badge.self)[0]
    badge.keeper = try context.fetch(Person.self)[0]
    other.delete(try other.fetch(Badge.self)[0])
    try other.save()
    // A fault with changes, for which validation reads another property.
    context.refreshAllObjects()
    var code: BatchError.Code?
    do throws(BatchError) { try context.save() } catch { code = error.code }
    #expect(code == (policy == .error ? .mergeConflict : nil))
    context.rollback()
    #expect(try context.fetchCount(FetchDescriptor<Badge>()) == 0)
  }

  @Test func `a save to a locked database reports it as busy and succeeds later`() async throws {
    let container = try await ModelContainer(
      for: Employee.self,
      configurations: ModelConfiguration(path: path, busyTimeout: .zero)
    )
    let context = ModelContext(container)
    let carol = Employee("Carol", salary: 30)
    context.insert(carol)
    let other = try Connection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    #expect(throws: BatchError.self) { try context.save() }
    #expect(carol.isInserted)
    #expect(throws: BatchError.self) { try context.obtainPermanentIdentifiers(for: [carol]) }
    #expect(carol.persistentModelID.isTemporary)
    try other.execute("ROLLBACK")
    try context.save()
    #expect(carol.persistentModelID.primaryKey == "p3")
  }

  @Test func `a save to two stores writes neither if one refuses`() async throws {
    let other = try TestDatabase.make(
      "other.db",
      in: directory,
      "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)",
      "INSERT INTO notes VALUES (1, 'taken')"
    )
    for paths in [[path, other], [other, path]] {
      let container = try await ModelContainer(
        for: [Employee.self],
        configurations: paths.map { ModelConfiguration(path: $0) }
      )
      let context = ModelContext(container)
      context.insert(Employee("Carol", salary: 30))
      let note = try context.insertNewObject(ofEntity: "notes")
      note["text"] = .text("taken")
      #expect(throws: BatchError.self) { try context.save() }
      #expect(context.insertedModelsArray.count == 2)
      #expect(try TestDatabase.value(path, "SELECT count(*) FROM employees") == .integer(2))
      context.rollback()
    }
  }

  @Test func `a transaction that throws is rolled back`() async throws {
    struct Cancelled: Error {}
    let context = ModelContext(try await Staff.open(path))
    let alice = try #require(try context.fetch(Employee.self, limit: 1).first)
    #expect(throws: Cancelled.self) {
      try context.transaction {
        alice.salary = 99
        throw Cancelled()
      }
    }
    #expect(alice.salary == 10 && !context.hasChanges)
    try context.transaction { alice.salary = 99 }
    #expect(try TestDatabase.value(path, "SELECT salary FROM employees") == .integer(99))
  }

  @Test func `a row that a trigger ignores is an error`() async throws {
    try TestDatabase.make(
      "staff.db",
      in: directory,
      "CREATE TRIGGER i BEFORE INSERT ON employees BEGIN SELECT RAISE(IGNORE); END",
      "CREATE TRIGGER u BEFORE UPDATE ON employees BEGIN SELECT RAISE(IGNORE); END",
      "CREATE TRIGGER d BEFORE DELETE ON employees BEGIN SELECT RAISE(IGNORE); END"
    )
    let context = ModelContext(try await Staff.open(path))
    let employees = try context.fetch(Employee.self)
    let changes: [() -> Void] = [
      { context.insert(Employee("Carol", salary: 1)) }, { employees[0].salary = 3 },
      { context.delete(employees[1]) },
    ]
    for change in changes {
      change()
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.code == .constraint)
      context.rollback()
    }
  }

  @Test func `a save to a read-only store is refused`() async throws {
    let container = try await ModelContainer(
      for: Employee.self,
      configurations: ModelConfiguration(path: path, isReadOnly: true)
    )
    let context = ModelContext(container)
    let alice = try #require(try context.fetch(Employee.self, limit: 1).first)
    alice.salary = 99
    var error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .readOnly)
    context.rollback()
    context.insert(Employee("Carol", salary: 1))
    error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .readOnly)
    let coreData = try TestDatabase.make(
      "core.db",
      in: directory,
      "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_MAX INTEGER)",
      "CREATE TABLE ZCAR (Z_PK INTEGER PRIMARY KEY, ZMAKER VARCHAR)"
    )
    let other = ModelContext(
      try await ModelContainer(configurations: ModelConfiguration(path: coreData))
    )
    #expect(throws: BatchError.self) { try other.insertNewObject(ofEntity: "ZCAR") }
  }
}
