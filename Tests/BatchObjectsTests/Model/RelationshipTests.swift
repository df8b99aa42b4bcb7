import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct RelationshipTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Market.make(in: directory)
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  private func rows(_ sql: String) throws -> [[SQLValue]] { try TestDatabase.rows(path, sql) }

  @Test func `a change of one side of a relationship changes the other`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customers = try context.fetch(Customer.self)
    let purchases = try context.fetch(Purchase.self)
    #expect(customers[0].purchases == [purchases[0], purchases[1]])
    #expect(purchases[2].customer === customers[1])
    purchases[0].customer = customers[1]
    #expect(customers[0].purchases == [purchases[1]])
    #expect(customers[1].purchases == [purchases[2], purchases[0]])
    customers[0].purchases = [purchases[2]]
    #expect(purchases.map { $0.customer?.name } == ["Bob", nil, "Ada"])
    customers[0].purchases.append(purchases[1])
    #expect(context.changedModelsArray.count == 2)
    try context.save()
    #expect(customers[0].purchases == [purchases[1], purchases[2]])
    #expect(
      try rows("SELECT customer_id FROM purchases ORDER BY id").map(\.[0])
        == [.integer(2), .integer(1), .integer(1)]
    )
  }

  @Test func `a rollback restores both sides of a relationship`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customers = try context.fetch(Customer.self)
    let purchases = try context.fetch(Purchase.self)
    purchases[0].customer = nil
    purchases[0].tags = []
    let new = Purchase(1)
    new.customer = customers[0]
    context.insert(new)
    #expect(customers[0].purchases == [purchases[1], new])
    context.rollback()
    #expect(customers[0].purchases == [purchases[0], purchases[1]])
    #expect(purchases[0].tags.count == 2)
    #expect(!context.hasChanges)
  }

  @Test func `new objects refer to each other before they have keys`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customer = Customer("Carol")
    let (first, second) = (Purchase(1), Purchase(2))
    // What a new object is related to comes into the context with it.
    first.customer = customer
    first.tags = [Tag("fresh")]
    customer.purchases = [first]
    context.insert(customer)
    #expect(context.insertedModelsArray.count == 3)
    context.insert(second)
    second.customer = customer
    #expect(customer.purchases == [first, second])
    #expect(first.tags.map(\.name) == ["fresh"])
    try context.save()
    #expect(customer.persistentModelID.primaryKey == "p3")
    #expect(customer.purchases == [first, second])
    #expect(
      try rows("SELECT customer_id FROM purchases WHERE id > 3") == [[.integer(3)], [.integer(3)]]
    )
    #expect(try rows("SELECT * FROM purchase_tags WHERE tag = 3") == [[.integer(4), .integer(3)]])
    #expect(try context.fetch(Tag.self).last?.purchases == [first])
  }

  @Test func `a to-many relationship is read once, by one statement`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customer = try context.fetch(Customer.self)[0]
    let purchases = customer.purchases
    #expect(purchases.allSatisfy { !$0.isFault })
    try TestDatabase.make("market.db", in: directory, "DROP TABLE purchases")
    #expect(customer.purchases == purchases)
    #expect(purchases[0].customer === customer)
    // A released object must be read again, and cannot be.
    context.refresh(customer, mergeChanges: false)
    #expect(code { try customer.relatedObjects(forKey: "purchases") } == .invalidSQL)
  }

  @Test func `a to-one relationship gives a fault of the key without reading`() async throws {
    let context = ModelContext(try await Market.open(path))
    let purchase = try context.fetch(Purchase.self)[0]
    try TestDatabase.make("market.db", in: directory, "DROP TABLE customers")
    let customer = try #require(purchase.customer)
    #expect(customer.isFault && customer.persistentModelID.primaryKey == "p1")
  }

  @Test func `pairs are joined and parted from either side`() async throws {
    let context = ModelContext(try await Market.open(path))
    let purchases = try context.fetch(Purchase.self)
    let tags = try context.fetch(Tag.self)
    #expect(purchases.map { $0.tags.count } == [2, 0, 1])
    #expect(tags[1].purchases == [purchases[0], purchases[2]])
    purchases[1].tags = tags
    tags[1].purchases = [purchases[1]]
    #expect(context.hasChanges)
    #expect(purchases.map { $0.tags } == [[tags[0]], tags, []])
    #expect(tags[0].purchases == [purchases[0], purchases[1]])
    // Somebody else may have joined them already.
    try TestDatabase.make("market.db", in: directory, "INSERT INTO purchase_tags VALUES (2, 1)")
    try context.save()
    #expect(!context.hasChanges)
    #expect(
      try rows("SELECT purchase, tag FROM purchase_tags ORDER BY 1, 2")
        == [[1, 1], [2, 1], [2, 2]].map { $0.map { .integer($0) } }
    )
    #expect(purchases.map { $0.tags } == [[tags[0]], tags, []])
    context.delete(tags[0])
    try context.save()
    #expect(purchases.map { $0.tags } == [[], [tags[1]], []])
    #expect(try rows("SELECT * FROM purchase_tags").count == 1)
  }

  @Test func `a one-to-one partner is taken from its previous owner`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customers = try context.fetch(Customer.self)
    let (first, second) = (Card(), Card())
    context.insert(first)
    context.insert(second)
    first.customer = customers[0]
    #expect(customers[0].card === first)
    customers[0].card = second
    #expect(first.customer == nil && second.customer === customers[0])
    first.customer = customers[0]
    #expect(customers[0].card === first && second.customer == nil)
    try context.save()
    customers[1].card = first
    try context.save()
    #expect(customers.map { $0.card } == [nil, first])
    context.delete(customers[1])
    context.delete(try context.fetch(Purchase.self)[2])
    try context.save()
    #expect(first.customer == nil)
    #expect(try rows("SELECT customer_id FROM cards") == [[.null], [.null]])
  }

  @Test func `a deleted object is related to nobody`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customer = try context.fetch(Customer.self)[0]
    context.delete(customer.purchases[0])
    #expect(customer.purchases.count == 1)
    let new = Purchase(5)
    customer.purchases.append(new)
    context.delete(new)
    #expect(customer.purchases.count == 1)
    // A forgotten new customer is nobody's customer.
    let forgotten = Customer("Eve")
    context.insert(forgotten)
    customer.purchases[0].customer = forgotten
    let purchase = forgotten.purchases[0]
    context.delete(forgotten)
    #expect(purchase.customer == nil)
    try context.save()
    #expect(try rows("SELECT id, customer_id FROM purchases").count == 2)
    #expect(purchase.customer == nil)
  }

  @Test func `relationships changed by another context show once they are merged`() async throws {
    let container = try await Market.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    second.automaticallyMergesChangesFromParent = true
    let one = try first.fetch(Customer.self)
    let two = try second.fetch(Customer.self)
    let (purchases, tags) = (two[0].purchases, try second.fetch(Tag.self))
    #expect(purchases.count == 2 && tags[0].purchases.count == 1)
    one[1].purchases.append(contentsOf: one[0].purchases)
    try first.fetch(Tag.self)[0].purchases = []
    try first.save()
    #expect(two[0].purchases.count == 2)
    // Had they been released, as optimized code may do, they would have been read again.
    withExtendedLifetime(purchases) {}
    _ = try second.fetchCount(FetchRequest(entity: "Tag"))
    #expect(two[0].purchases.isEmpty && two[1].purchases.count == 3)
    #expect(tags[0].purchases.isEmpty)
  }

  @Test func `relating objects of wrong classes or contexts is an error`() async throws {
    let container = try await Market.open(path)
    let (context, other) = (ModelContext(container), ModelContext(container))
    let purchase = try context.fetch(Purchase.self)[0]
    let foreign = try other.fetch(Customer.self)[0]
    purchase.customer = foreign
    #expect(code { try context.save() } == .noContext)
    let tag = try context.fetch(Tag.self)[0]
    #expect(
      code { try purchase.setRelatedObject(tag, forKey: "customer") } == .modelTypeMismatch
    )
    let customers = try context.fetch(Customer.self)
    #expect(
      code { try purchase.setRelatedObjects(customers, forKey: "customer") } == .modelTypeMismatch
    )
    let error = #expect(throws: BatchError.self) { try purchase.relatedObjects(forKey: "custome") }
    #expect(error?.code == .unknownRelationship && error?.remedy?.contains("customer") == true)
    #expect(purchase.customer === customers[0] && !context.hasChanges)
  }

  @Test func `related objects are added and removed without reading the others`() async throws {
    let context = ModelContext(try await Market.open(path))
    let customers = try context.fetch(Customer.self)
    let purchases = try context.fetch(Purchase.self)
    try customers[0].addRelatedObject(purchases[2], forKey: "purchases")
    #expect(purchases[2].customer === customers[0])
    try customers[0].removeRelatedObject(purchases[0], forKey: "purchases")
    // Removing what belongs to another takes nothing from it.
    try customers[1].removeRelatedObject(purchases[1], forKey: "purchases")
    #expect(purchases.map { $0.customer } == [nil, customers[0], customers[0]])
    try purchases[0].addRelatedObject(customers[1], forKey: "customer")
    try purchases[1].removeRelatedObject(customers[1], forKey: "customer")
    #expect(purchases.map { $0.customer } == [customers[1], customers[0], customers[0]])
  }

  @Test func `a relationship that fits no table is refused at opening`() async throws {
    let other = try TestDatabase.make(
      "other.db",
      in: directory,
      "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)",
      "CREATE TABLE purchases (id INTEGER PRIMARY KEY, total INTEGER, customer_id INTEGER)"
    )
    for types in [[Customer.self, Purchase.self], [Customer.self], [Purchase.self, Tag.self]]
      as [[any PersistentModel.Type]]
    {
      let error = await #expect(throws: BatchError.self) {
        try await ModelContainer(for: types, configurations: [ModelConfiguration(path: other)])
      }
      #expect(error?.code == .invalidMapping)
    }
  }

  @Test func `a forgotten new object leaves no pairs to save`() async throws {
    let context = ModelContext(try await Market.open(path))
    let purchase = try context.fetch(Purchase.self)[0]
    let (first, second) = (Tag("first"), Tag("second"))
    purchase.tags += [first, second]
    first.purchases.append(Purchase(5))
    context.delete(first)
    #expect(purchase.tags.map(\.name) == ["new", "old", "second"])
    context.delete(second)
    for new in context.insertedModelsArray { context.delete(new) }
    #expect(!context.hasChanges)
    #expect(purchase.tags.map(\.name) == ["new", "old"])
  }
}
