import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Relationships of one context against a naive twin in memory.
@Suite struct RelationshipModelTests {
  /// The objects by test number, and their relationships.
  private struct World {
    var customers: Set<Int> = []
    var tags: Set<Int> = []
    /// The customer of each purchase.
    var purchases: [Int: Int?] = [:]
    /// Purchases and their tags.
    var pairs: Set<[Int]> = []

    mutating func remove(purchase: Int) {
      purchases[purchase] = nil
      pairs = pairs.filter { $0[0] != purchase }
    }
  }

  private struct Trial {
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let path: String
    let context: ModelContext
    var customers: [Int: Customer] = [:]
    var purchases: [Int: Purchase] = [:]
    var tags: [Int: Tag] = [:]
    var next = 0
    /// What is expected to show, and what is saved.
    var world = World()
    var saved = World()

    init(seed: UInt64) async throws {
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      path = try Market.make(in: directory)
      try TestDatabase.make(
        "market.db",
        in: directory,
        "DELETE FROM purchase_tags",
        "DELETE FROM purchases",
        "DELETE FROM customers",
        "DELETE FROM tags"
      )
      context = ModelContext(try await Market.open(path))
    }

    mutating func step() throws {
      let customer = world.customers.sorted().randomElement(using: &random)
      let purchase = world.purchases.keys.sorted().randomElement(using: &random)
      let tag = world.tags.sorted().randomElement(using: &random)
      switch Int.random(in: 0..<24, using: &random) {
      case 0..<2:
        next += 1
        customers[next] = Customer("\(next)")
        customers[next].map { context.insert($0) }
        world.customers.insert(next)
      case 2..<5: insertPurchase(of: customer)
      case 5..<7:
        next += 1
        tags[next] = Tag("\(next)")
        tags[next].map { context.insert($0) }
        world.tags.insert(next)
      case 7..<10:
        guard let purchase else { return }
        let owner = Bool.random(using: &random) ? customer : nil
        purchases[purchase]?.customer = owner.flatMap { customers[$0] }
        world.purchases[purchase] = .some(owner)
      case 10..<13:
        guard let customer else { return }
        let chosen = some(of: Set(world.purchases.keys))
        customers[customer]?.purchases = chosen.compactMap { purchases[$0] }
        for (purchase, owner) in world.purchases where owner == customer {
          world.purchases[purchase] = .some(nil)
        }
        for purchase in chosen { world.purchases[purchase] = .some(customer) }
      case 13..<15:
        guard let purchase else { return }
        let chosen = some(of: world.tags)
        purchases[purchase]?.tags = chosen.compactMap { tags[$0] }
        world.pairs = world.pairs.filter { $0[0] != purchase }
        for tag in chosen { world.pairs.insert([purchase, tag]) }
      case 15..<17:
        guard let tag else { return }
        let chosen = some(of: Set(world.purchases.keys))
        tags[tag]?.purchases = chosen.compactMap { purchases[$0] }
        world.pairs = world.pairs.filter { $0[1] != tag }
        for purchase in chosen { world.pairs.insert([purchase, tag]) }
      case 17: try delete(purchase: purchase, tag: tag, customer: customer)
      case 18: rollback()
      case 19: context.refreshAllObjects()
      case 20: try refetch()
      default: try save()
      }
      try compare()
    }

    private mutating func some(of numbers: Set<Int>) -> Set<Int> {
      var chosen: Set<Int> = []
      for number in numbers.sorted() where Int.random(in: 0..<3, using: &random) == 0 {
        chosen.insert(number)
      }
      return chosen
    }

    private mutating func insertPurchase(of customer: Int?) {
      next += 1
      let purchase = Purchase(next)
      purchases[next] = purchase
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        purchase.customer = customer.flatMap { customers[$0] }
        context.insert(purchase)
        world.purchases[next] = .some(customer)
      case 1:
        context.insert(purchase)
        world.purchases[next] = .some(nil)
      default:
        // Into the context through its relationships.
        guard let customer else {
          purchases[next] = nil
          return
        }
        customers[customer]?.purchases.append(purchase)
        world.purchases[next] = .some(customer)
      }
    }

    private mutating func delete(purchase: Int?, tag: Int?, customer: Int?) throws {
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        guard let purchase, let object = purchases[purchase] else { return }
        context.delete(object)
        world.remove(purchase: purchase)
      case 1:
        guard let tag, let object = tags[tag] else { return }
        context.delete(object)
        world.tags.remove(tag)
        world.pairs = world.pairs.filter { $0[1] != tag }
      default:
        guard let customer, let object = customers[customer] else { return }
        let isNew = object.isInserted
        context.delete(object)
        if isNew {
          world.customers.remove(customer)
          for (purchase, owner) in world.purchases where owner == customer {
            world.purchases[purchase] = .some(nil)
          }
        } else {
          // Their related objects go with them, immediately.
          for (purchase, owner) in world.purchases where owner == customer {
            world.remove(purchase: purchase)
          }
          world.customers.remove(customer)
        }
      }
    }

    private mutating func rollback() {
      context.rollback()
      world = saved
    }

    private mutating func save() throws {
      try context.save()
      saved = world
      customers = customers.filter { saved.customers.contains($0.key) }
      purchases = purchases.filter { saved.purchases[$0.key] != nil }
      tags = tags.filter { saved.tags.contains($0.key) }
      var owners: [String] = []
      for (purchase, owner) in saved.purchases {
        owners.append("\(purchase) \(owner.map { "\($0)" } ?? "-")")
      }
      let rows = try TestDatabase.texts(
        path,
        """
        SELECT total || ' ' || coalesce(name, '-') FROM purchases
        LEFT JOIN customers ON customers.id = customer_id
        """
      )
      #expect(rows.sorted() == owners.sorted())
      let pairs = try TestDatabase.texts(
        path,
        """
        SELECT total || ' ' || name FROM purchase_tags JOIN purchases ON purchases.id = purchase
        JOIN tags ON tags.id = tag
        """
      )
      #expect(pairs.sorted() == saved.pairs.map { "\($0[0]) \($0[1])" }.sorted())
    }

    /// Lets go of all objects that have nothing unsaved, so that others stand for their rows.
    private mutating func refetch() throws {
      guard !context.hasChanges else { return }
      customers = [:]
      purchases = [:]
      tags = [:]
      for object in try context.fetch(Customer.self) { customers[Int(object.name) ?? 0] = object }
      for object in try context.fetch(Purchase.self) { purchases[object.total] = object }
      for object in try context.fetch(Tag.self) { tags[Int(object.name) ?? 0] = object }
      #expect(Set(customers.keys) == saved.customers && Set(tags.keys) == saved.tags)
    }

    private func compare() throws {
      for customer in world.customers {
        let expected = world.purchases.filter { $0.value == customer }.keys.sorted()
        #expect(customers[customer]?.purchases.map(\.total).sorted() == expected)
      }
      for (purchase, owner) in world.purchases {
        let object = purchases[purchase]
        #expect(object?.customer === owner.flatMap { customers[$0] })
        let expected = world.pairs.filter { $0[0] == purchase }.map { $0[1] }.sorted()
        #expect(object?.tags.compactMap { Int($0.name) }.sorted() == expected)
      }
      for tag in world.tags {
        let expected = world.pairs.filter { $0[1] == tag }.map { $0[0] }.sorted()
        #expect(tags[tag]?.purchases.map(\.total).sorted() == expected)
      }
      // What a getter could not say would be said here.
      _ = try context.fetchCount(FetchRequest(entity: "Tag"))
    }
  }

  @Test(arguments: 0..<12)
  func `relationships agree with a naive twin`(seed: Int) async throws {
    var trial = try await Trial(seed: UInt64(seed))
    for _ in 0..<150 { try trial.step() }
    #expect(trial.saved.purchases.count > 0)
  }
}
