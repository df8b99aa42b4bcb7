import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct DeleteRuleTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func market() async throws -> (path: String, context: ModelContext) {
    let path = try Market.make(in: directory)
    return (path, ModelContext(try await Market.open(path)))
  }

  @Test func `cascade deletes related objects and the pairs of both sides`() async throws {
    let (path, context) = try await market()
    let ada = try context.fetch(Customer.self)[0]
    let purchases = ada.purchases
    // What is new goes with it too.
    ada.purchases.append(Purchase(99))
    context.delete(ada)
    #expect(context.deletedModelsArray == [ada])
    try context.save()
    #expect(!context.hasChanges)
    #expect(purchases.allSatisfy { $0.modelContext == nil })
    #expect(try TestDatabase.texts(path, "SELECT id FROM purchases") == ["3"])
    #expect(try TestDatabase.texts(path, "SELECT purchase FROM purchase_tags") == ["3"])
  }

  @Test func `a refreshed object is undeleted with the objects its deletion took`() async throws {
    let (path, context) = try await market()
    let ada = try context.fetch(Customer.self)[0]
    for isDecided in [false, true] {
      context.delete(ada)
      if isDecided { _ = try context.fetchCount(FetchDescriptor<Purchase>()) }
      #expect(context.deletedModelsArray.count == (isDecided ? 3 : 1))
      context.refresh(ada, mergeChanges: true)
      #expect(ada.isDeleted)
      context.refresh(ada, mergeChanges: false)
      #expect(!ada.isDeleted && !context.hasChanges && ada.purchases.count == 2)
    }
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM purchases") == ["3"])
  }

  @Test func `a cascade spares an object that was first related to another owner`() async throws {
    let (path, context) = try await market()
    let customers = try context.fetch(Customer.self)
    let kept = customers[0].purchases[0]
    kept.customer = customers[1]
    context.delete(customers[0])
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT id FROM purchases") == ["1", "3"])
    #expect(customers[1].purchases.first === kept)
  }

  @Test func `deny refuses while related objects remain, and leaves no marks`() async throws {
    let (path, context) = try await market()
    let ada = try context.fetch(Customer.self)[0]
    let purchases = ada.purchases
    let complaint = Complaint()
    complaint.customer = ada
    context.insert(complaint)
    try context.save()
    context.delete(ada)
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .deleteDenied)
    #expect(error.message.contains("\"complaints\""))
    #expect(context.deletedModelsArray == [ada])
    #expect(purchases.allSatisfy { !$0.isDeleted && !$0.hasChanges })
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM purchases") == ["3"])
    // Deleted together they may go.
    context.delete(complaint)
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT name FROM customers") == ["Bob"])
  }

  @Test func `a cascade includes rows that another context has just added`() async throws {
    let (path, context) = try await market()
    let ada = try context.fetch(Customer.self)[0]
    #expect(ada.purchases.count == 2)
    context.delete(ada)
    try TestDatabase.make("market.db", in: directory, "INSERT INTO purchases VALUES (9, 1, 1)")
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT id FROM purchases") == ["3"])
  }

  @Test(arguments: [MergePolicy.error, .mergeByPropertyObjectTrump, .rollback])
  func `a fault whose row was deleted elsewhere is deleted without a cascade`(
    policy: MergePolicy
  ) async throws {
    let path = try Market.make(in: directory)
    try TestDatabase.make(
      "market.db",
      in: directory,
      "CREATE TABLE contracts (id INTEGER PRIMARY KEY, customer_id, witness_id)",
      "INSERT INTO contracts VALUES (1, 1, 2), (2, 2, NULL)"
    )
    let container = try await ModelContainer(
      for: Customer.self,
      Purchase.self,
      Tag.self,
      Complaint.self,
      Card.self,
      Contract.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    context.mergePolicy = policy
    for key in [1, 2] as [Int64] {
      context.delete(
        context.model(
          for: PersistentIdentifier(
            storeIdentifier: container.stores[0].identity.uuid,
            entityName: "Contract",
            key: .integer(key)
          )
        )
      )
    }
    try TestDatabase.make("market.db", in: directory, "DELETE FROM contracts WHERE id = 1")
    try context.save()
    #expect(!context.hasChanges)
    #expect(try TestDatabase.texts(path, "SELECT id FROM customers") == ["1"])
    #expect(try TestDatabase.texts(path, "SELECT id FROM contracts").isEmpty)
  }

  /// Tables of three kinds of actions, which objects without a class follow.
  private func plain() async throws -> (path: String, context: ModelContext) {
    let path = try TestDatabase.make(
      "plain.db",
      in: directory,
      "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
      "CREATE TABLE a (id INTEGER PRIMARY KEY, parent_id REFERENCES parents ON DELETE CASCADE)",
      "CREATE TABLE b (id INTEGER PRIMARY KEY, parent_id REFERENCES parents ON DELETE SET NULL)",
      "CREATE TABLE c (id INTEGER PRIMARY KEY, parent_id REFERENCES parents ON DELETE RESTRICT)",
      "CREATE TABLE d (id INTEGER PRIMARY KEY, parent_id REFERENCES parents)",
      """
      CREATE TABLE nodes (id INTEGER PRIMARY KEY,
        next INTEGER REFERENCES nodes (id) ON DELETE CASCADE)
      """,
      "INSERT INTO parents VALUES (1), (2), (3), (4)",
      "INSERT INTO a VALUES (1, 1), (2, 1), (3, 4)",
      "INSERT INTO b VALUES (1, 1)",
      "INSERT INTO c VALUES (1, 2), (2, 4)",
      "INSERT INTO d VALUES (1, 3)",
      "INSERT INTO nodes VALUES (1, 3), (2, 1), (3, 2), (4, 4)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    return (path, ModelContext(container))
  }

  @Test func `objects without a class follow the rules of their foreign keys`() async throws {
    let (path, context) = try await plain()
    let parents = try context.fetch(FetchRequest(entity: "parents"))
    let child = try parents[0].relatedObjects(forKey: "b")[0]
    let sent = context.container.savedChanges()
    context.delete(parents[0])
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT id FROM a") == ["3"])
    #expect(child["parent_id"] == .null)
    var iterator = sent.makeAsyncIterator()
    let changes = await iterator.next()
    #expect(changes?.deleted.count == 3 && changes?.updated == [child.persistentModelID])
    for (parent, code) in [(parents[1], BatchError.Code.deleteDenied), (parents[2], .constraint)] {
      context.delete(parent)
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.code == code)
      context.rollback()
    }
    // Children go first, since RESTRICT does not wait, whatever the order of the deletions.
    let restricted = [parents[1], parents[3]].map { try? $0.relatedObject(forKey: "c") }
    for object in [restricted[0], parents[1], parents[3], restricted[1]] {
      context.delete(try #require(object))
    }
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT id FROM parents") == ["3"])
    #expect(try TestDatabase.texts(path, "SELECT id FROM a").isEmpty)
  }

  @Test func `a cascade through a cycle ends`() async throws {
    let (path, context) = try await plain()
    let nodes = try context.fetch(FetchRequest(entity: "nodes"))
    #expect(try nodes[3].relatedObject(forKey: "next") === nodes[3])
    context.delete(nodes[0])
    context.delete(nodes[3])
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT id FROM nodes").isEmpty)
    // New ones may refer to each other in a circle as well.
    let new = try (0..<3).map { _ in try context.insertNewObject(ofEntity: "nodes") }
    for index in 0..<3 { try new[index].setRelatedObject(new[(index + 1) % 3], forKey: "next") }
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT next FROM nodes ORDER BY id") == ["6", "7", "5"])
    weak var last: ManagedObject?
    do {
      let forgotten = ModelContext(context.container)
      let one = try forgotten.insertNewObject(ofEntity: "nodes")
      let two = try forgotten.insertNewObject(ofEntity: "nodes")
      try one.setRelatedObject(two, forKey: "next")
      try two.setRelatedObject(one, forKey: "next")
      last = two
    }
    #expect(last == nil)
  }
}

/// A class whose own column says what is deleted with its objects, and what keeps them.
private final class Contract: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Contract.self,
    entity: "Contract",
    table: "contracts",
    properties: [
      .toOne("customer", \.customer, column: "customer_id", onDelete: .cascade),
      .toOne("witness", \.witness, column: "witness_id", onDelete: .deny),
    ]
  )

  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }
  var witness: Customer? {
    get { self[\.witness] }
    set { self[\.witness] = newValue }
  }
}

extension DeleteRuleTests {
  @Test func `customers deleted in one save take their purchases along`() async throws {
    let (path, context) = try await market()
    let (count, kept) = (1_000, 7)
    try TestDatabase.make(
      "market.db",
      in: directory,
      "DELETE FROM purchase_tags",
      "DELETE FROM purchases",
      "DELETE FROM customers",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO customers (id, name) SELECT i, 'c' || i FROM n
      """,
      "INSERT INTO purchases (total, customer_id) SELECT id, id FROM customers",
      "INSERT INTO purchases (total, customer_id) SELECT -id, id FROM customers WHERE id < 50",
      "INSERT INTO cards (customer_id) SELECT id FROM customers"
    )
    let customers = try context.fetch(Customer.self)
    for customer in customers.dropFirst(kept) { context.delete(customer) }
    try context.save()
    let left = "SELECT customer_id || ' ' || total FROM purchases ORDER BY total"
    #expect(
      try TestDatabase.texts(path, left)
        == (-kept...kept).filter { $0 != 0 }.map { "\(abs($0)) \($0)" }
    )
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM customers") == ["\(kept)"])
    #expect(try TestDatabase.texts(path, "SELECT count(customer_id) FROM cards") == ["\(kept)"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM cards") == ["\(count)"])
  }
}
