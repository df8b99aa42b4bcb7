import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct SettingTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  @Test func `properties of each kind are stored in their columns' form`() async throws {
    let path = try Shop.make(in: directory)
    let context = ModelContext(try await Shop.open(path))
    let order = Order()
    order.price = 5
    order.note = "new"
    order.created = Date(timeIntervalSince1970: 1.5)
    order.shipped = Date(timeIntervalSince1970: 86400)
    order.state = .paid
    order.address = Order.Address(city: "Ulm")
    order.isGift = true
    #expect(order.price == 5 && order.state == .paid && order.address?.city == "Ulm")
    context.insert(order)
    try context.save()
    let row = try TestDatabase.rows(path, "SELECT * FROM orders WHERE id = 5")
    let expected: [SQLValue] = [
      .integer(5), .integer(5), .text("new"), .text("1970-01-01T00:00:01.500Z"), .real(86400),
      .text("paid"), .text("{\"city\":\"Ulm\"}"), .integer(1), .null,
    ]
    #expect(row == [expected])
    order.note = nil
    order.address = nil
    #expect(order.changedValues == ["note": .null, "address": .null])
    try context.save()
    #expect(order.note == nil && order.changedValues.isEmpty)
    #expect(try order.committedValues()["price"] == .integer(5))
  }

  @Test func `a save writes only the properties that were set`() async throws {
    let path = try Staff.make(in: directory)
    try TestDatabase.make(
      "staff.db",
      in: directory,
      "CREATE TABLE log (name)",
      """
      CREATE TRIGGER name AFTER UPDATE OF name ON employees
      BEGIN INSERT INTO log VALUES (new.name); END
      """
    )
    let context = ModelContext(try await Staff.open(path))
    let employees = try context.fetch(Employee.self)
    employees[0].salary = 1
    employees[1].name = "Bert"
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT name FROM log") == ["Bert"])
  }

  @Test func `setting a property back leaves nothing to save`() async throws {
    let context = ModelContext(try await Staff.open(try Staff.make(in: directory)))
    let alice = try #require(try context.fetch(Employee.self, limit: 1).first)
    alice.salary = 11
    #expect(context.changedModelsArray == [alice])
    alice.salary = 10
    #expect(!alice.hasChanges && !context.hasChanges)
  }

  @Test func `columns that were not set get their defaults and the results of triggers`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a DEFAULT 'x', b AS (a || '!'), c INTEGER, at TEXT)
      """,
      "CREATE TRIGGER i AFTER INSERT ON t BEGIN UPDATE t SET at = 'now' WHERE id = new.id; END",
      "CREATE TRIGGER u AFTER UPDATE OF c ON t BEGIN UPDATE t SET at = 'then'; END"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let object = try context.insertNewObject(ofEntity: "t")
    #expect(object["a"] == .text("x"))
    object["c"] = .text("5")
    try context.save()
    #expect(["a", "b", "c", "at"].map { object[$0] == .null } == [false, false, false, false])
    #expect(object["b"] == .text("x!") && object["at"] == .text("now"))
    #expect(object["c"] == .integer(5))
    // A trigger's change does not count as somebody else's.
    object["c"] = .integer(6)
    try context.save()
    object["a"] = .text("y")
    try context.save()
    #expect(object["at"] == .text("then") && object["b"] == .text("y!"))
  }

  @Test func `a value that does not fit is refused immediately or by the next throwing call`()
    async throws
  {
    let context = ModelContext(try await Staff.open(try Staff.make(in: directory)))
    let alice = try #require(try context.fetch(Employee.self, limit: 1).first)
    #expect(code { try alice.setValue(.text("x"), forKey: "salary") } == .valueMismatch)
    alice["salary"] = .null
    #expect(alice.salary == 10 && !alice.hasChanges)
    #expect(code { try context.save() } == .valueMismatch)
    try context.save()
    #expect(code { try alice.setValue(.null, forKey: "salry") } == .unknownAttribute)
    let new = Employee()
    #expect(code { try new.setValue(.null, forKey: "salry") } == .unknownAttribute)
    new["salry"] = .integer(1)
    context.insert(new)
    #expect(code { try context.save() } == .unknownAttribute)
    new["salary"] = .text("x")
    #expect(code { try context.save() } == .valueMismatch)
  }

  @Test func `a new object without a value that its class requires is refused`() async throws {
    let path = try Staff.make(in: directory)
    let context = ModelContext(try await Staff.open(path))
    context.insert(Employee())
    #expect(code { try context.save() } == .valueMismatch)
    #expect(context.insertedModelsArray.count == 1)
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM employees") == .integer(2))
  }

  @Test func `keys, generated columns and views cannot be set`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b AS (a))",
      "INSERT INTO t VALUES (1, 'a')",
      "CREATE VIEW v AS SELECT id, a FROM t"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let stored = try context.fetch(FetchRequest(entity: "t"))[0]
    #expect(code { try stored.setValue(.integer(2), forKey: "id") } == .immutableAttribute)
    #expect(code { try stored.setValue(.integer(2), forKey: "b") } == .immutableAttribute)
    let shown = try context.fetch(FetchRequest(entity: "v"))[0]
    #expect(code { try shown.setValue(.integer(2), forKey: "a") } == .immutableAttribute)
    context.delete(shown)
    #expect(code { try context.save() } == .readOnly)
    #expect(code { try context.insertNewObject(ofEntity: "v") } == .readOnly)
    // A new object may have its own key, until it has a permanent identifier.
    let new = try context.insertNewObject(ofEntity: "t")
    new["id"] = .integer(40)
    try context.save()
    #expect(new.persistentModelID.primaryKey == "p40")
    #expect(code { try new.setValue(.integer(2), forKey: "id") } == .immutableAttribute)
  }

  @Test func `text keys are set, UUID keys are generated, and missing keys are errors`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE tags (name TEXT PRIMARY KEY, weight REAL) WITHOUT ROWID",
      "CREATE TABLE things (id UUID PRIMARY KEY, n INTEGER)",
      "CREATE TABLE pairs (a INTEGER, b TEXT, n, PRIMARY KEY (a, b))"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let tag = try context.insertNewObject(ofEntity: "tags")
    #expect(code { try context.save() } == .missingKey)
    tag["name"] = .text("a/b")
    let thing = try context.insertNewObject(ofEntity: "things")
    let pair = try context.insertNewObject(ofEntity: "pairs")
    pair["a"] = .integer(1)
    #expect(code { try context.save() } == .missingKey)
    pair["b"] = .integer(2)
    try context.save()
    #expect(tag.persistentModelID.primaryKey == "p=a%2Fb")
    guard case .text(let uuid) = thing["id"] else {
      Issue.record("the key is \(thing["id"])")
      return
    }
    #expect(UUID(uuidString: uuid) != nil)
    // The identifier is the stored row's, in which 2 became '2'.
    let fetched = try context.fetch(FetchRequest(entity: "pairs"))
    #expect(fetched == [pair])
    // A key that becomes free is free in the same save.
    context.delete(tag)
    let again = try context.insertNewObject(ofEntity: "tags")
    again["name"] = .text("a/b")
    again["weight"] = .real(.nan)
    try context.save()
    #expect(again["weight"] == .null)
    #expect(context.registeredModel(for: again.persistentModelID) === again)
    #expect(tag.modelContext == nil)
  }

  @Test func `a value that the database cannot store is refused and never stored as nil`()
    async throws
  {
    let path = try TestDatabase.make(
      "measurements.db",
      in: directory,
      "CREATE TABLE measurements (id INTEGER PRIMARY KEY, ratio REAL, date REAL, point TEXT)",
      "INSERT INTO measurements VALUES (1, 1.5, 2, '{\"x\":3}')"
    )
    let context = ModelContext(
      try await ModelContainer(
        for: Measurement.self,
        configurations: ModelConfiguration(path: path)
      )
    )
    let noDate = Date(timeIntervalSince1970: .nan)
    let stored = try #require(try context.fetch(Measurement.self).first)
    let settings: [(Measurement) -> Void] = [
      { $0.ratio = .nan }, { $0.date = noDate }, { $0.point = Measurement.Point(x: .infinity) },
    ]
    for set in settings {
      set(stored)
      #expect(code { try context.save() } == .valueMismatch)
      let new = Measurement()
      set(new)
      context.insert(new)
      #expect(code { try context.save() } == .valueMismatch)
      context.rollback()
      #expect(stored.ratio == 1.5 && stored.date != nil && stored.point?.x == 3)
    }
    stored.point = Measurement.Point(x: .infinity)
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.message.hasSuffix("and was set to a TEXT that is none") == true)
    context.rollback()
    var snapshot = try ModelSnapshot(of: stored)
    snapshot.ratio = .nan
    #expect(code { try context.apply(snapshot) } == .valueMismatch)
    #expect(
      code { try context.execute(BatchUpdateRequest<Measurement>([.set(\.ratio, to: .nan)])) }
        == .valueMismatch
    )
    stored.ratio = nil
    try context.save()
    let rows = try TestDatabase.rows(path, "SELECT * FROM measurements")
    #expect(rows == [[.integer(1), .null, .real(2), .text("{\"x\":3}")]])
  }

  @Test func `a deleted object's key may be given to another object before the save`() async throws
  {
    let path = try Staff.make(in: directory)
    let context = ModelContext(try await Staff.open(path))
    let old = try context.insertNewObject(ofEntity: "tags")
    old["name"] = .text("a")
    try context.save()
    func replace() throws -> ManagedObject {
      context.delete(old)
      let new = try context.insertNewObject(ofEntity: "tags")
      new["name"] = .text("a")
      new["weight"] = .real(2)
      try context.obtainPermanentIdentifiers(for: [new])
      return new
    }
    _ = try replace()
    context.rollback()
    #expect(try context.fetch(FetchRequest(entity: "tags")) == [old])
    let new = try replace()
    #expect(new.persistentModelID == old.persistentModelID)
    #expect(context.deletedModelsArray == [old] && context.insertedModelsArray == [new])
    try context.save()
    #expect(old.modelContext == nil && !context.hasChanges)
    #expect(context.registeredModel(for: new.persistentModelID) === new)
    #expect(try TestDatabase.rows(path, "SELECT * FROM tags") == [[.text("a"), .real(2)]])
  }

  @Test func `objects of another context or of none are refused`() async throws {
    let container = try await Staff.open(try Staff.make(in: directory))
    let (first, second) = (ModelContext(container), ModelContext(container))
    let alice = try #require(try first.fetch(Employee.self, limit: 1).first)
    second.insert(alice)
    #expect(code { try second.save() } == .noContext)
    second.delete(alice)
    #expect(code { try second.save() } == .noContext)
    let new = Employee("Carol", salary: 30)
    first.insert(new)
    #expect(code { try second.obtainPermanentIdentifiers(for: [new]) } == .noContext)
    let never = #expect(throws: BatchError.self) {
      try second.obtainPermanentIdentifiers(for: [Employee("Dave", salary: 1)])
    }
    #expect(never?.code == .noContext && never?.remedy == "insert it first")
    first.reset()
    #expect(!first.hasChanges)
    first.insert(alice)
    #expect(code { try first.save() } == .noContext)
    // A new object keeps its values, and may enter another context.
    #expect(new.name == "Carol" && new.modelContext == nil)
    second.insert(new)
    try second.save()
    #expect(new.salary == 30)
    second.insert(try second.insertNewObject(ofEntity: "tags"))
    second.rollback()
    second.insert(ManagedObject())
    #expect(code { try second.save() } == .unknownEntity)
  }

  @Test func `an object whose context is gone throws if its values must be read`() async throws {
    let container = try await Staff.open(try Staff.make(in: directory))
    var context: ModelContext? = ModelContext(container)
    let employees = try context?.fetch(Employee.self) ?? []
    context?.refresh(employees[0], mergeChanges: false)
    context = nil
    #expect(employees[0].modelContext == nil)
    #expect(code { try employees[0].value(forKey: "salary") } == .noContext)
    #expect(code { try employees[0].setValue(.integer(1), forKey: "salary") } == .noContext)
    #expect(employees[1].salary == 20)
  }

  @Test func `an object whose context is gone traps instead of answering`() async {
    await #expect(processExitsWith: .failure) {
      let container = try await ModelContainer(
        configurations: ModelConfiguration(
          inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY, n); INSERT INTO a VALUES (1, 1)"
        )
      )
      let object = try ModelContext(container).fetch(FetchRequest(entity: "a"))[0]
      object["n"] = .integer(2)
    }
    await #expect(processExitsWith: .failure) {
      let container = try await Family.open()
      let people = try ModelContext(container).fetch(FetchDescriptor<Person>())
      print(people.filter(\.pets.isEmpty).count)
    }
  }

  @Test func `a rollback forgets a refused value but not a failed read`() async throws {
    let container = try await Staff.open(try Staff.make(in: directory))
    let context = ModelContext(container)
    let alice = try #require(try context.fetch(Employee.self, limit: 1).first)
    alice["salary"] = .text("x")
    context.insert(ManagedObject())
    context.rollback()
    try context.save()
    let missing = PersistentIdentifier(
      storeIdentifier: container.stores[0].identity.uuid,
      entityName: "Employee",
      key: .integer(99)
    )
    #expect(context.model(for: missing)["name"] == .null)
    alice["salary"] = .text("x")
    context.rollback()
    #expect(code { try context.save() } == .objectNotFound)
    try context.save()
  }

  @Test func `a row with 1,900 columns is compared for conflicts`() async throws {
    let columns = (0..<1_900).map { "c\($0)" }.joined(separator: ", ")
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE wide (id INTEGER PRIMARY KEY, \(columns))",
      "INSERT INTO wide (id) VALUES (1)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let object = try context.fetch(FetchRequest(entity: "wide"))[0]
    object["c7"] = .integer(1)
    try context.save()
    try TestDatabase.make(in: directory, "UPDATE wide SET c1899 = 2")
    object["c7"] = .integer(2)
    #expect(code { try context.save() } == .mergeConflict)
  }

  @Test func `an object of an unknown store cannot be deleted`() async throws {
    let context = ModelContext(try await Staff.open(try Staff.make(in: directory)))
    let foreign = PersistentIdentifier(storeIdentifier: "X", entityName: "Y", key: .integer(1))
    context.delete(context.model(for: foreign))
    #expect(!context.hasChanges)
    #expect(code { try context.save() } == .foreignIdentifier)
    try context.save()
  }

  @Test func `a new row of a hierarchy gets its entity's discriminator`() async throws {
    let path = try Shop.make(in: directory)
    let context = ModelContext(try await Shop.open(path))
    let car = ExpensiveSportCar()
    car["maker"] = .text("Lotus")
    context.insert(car)
    try context.save()
    #expect(
      try TestDatabase.rows(path, "SELECT kind, maker FROM cars WHERE id = 5")
        == [[.integer(3), .text("Lotus")]]
    )
    #expect(try context.fetch(Car.self).last === car)
  }
}

private final class Measurement: ManagedObject, PersistentModel {
  struct Point: Codable { var x: Double }

  static let mapping = ModelMapping(
    Measurement.self,
    entity: "Measurement",
    table: "measurements",
    properties: [
      .attribute("ratio", \.ratio),
      .attribute("date", \.date, as: .unixSeconds),
      .attribute("point", \.point, as: .json(placeholder: Point(x: 0))),
    ]
  )

  var ratio: Double? {
    get { self[\.ratio] }
    set { self[\.ratio] = newValue }
  }
  var date: Date? {
    get { self[\.date] }
    set { self[\.date] = newValue }
  }
  var point: Point? {
    get { self[\.point] }
    set { self[\.point] = newValue }
  }
}
