import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct RelationshipPredicateTests {
  let directory: TemporaryDirectory
  let context: ModelContext

  init() async throws {
    directory = try TemporaryDirectory()
    let path = try Market.make(in: directory)
    try TestDatabase.make(
      "market.db",
      in: directory,
      "INSERT INTO customers VALUES (3, 'Eve'), (4, 'Ada')",
      "INSERT INTO purchases VALUES (4, 40, NULL), (5, 50, 4)",
      "INSERT INTO cards VALUES (1, 1), (2, 4), (3, NULL)"
    )
    context = ModelContext(try await Market.open(path))
  }

  private func check<Model: PersistentModel>(
    _ predicate: Predicate<Model>,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let all = try context.fetch(FetchDescriptor<Model>())
    let expected = try all.filter { try predicate.evaluate($0) }.map(\.persistentModelID)
    let found = try context.fetch(FetchDescriptor(predicate: predicate)).map(\.persistentModelID)
    #expect(found == expected, sourceLocation: location)
    #expect(!expected.isEmpty && expected.count < all.count, sourceLocation: location)
  }

  @Test func `a predicate compares an attribute of a related object like the row's own`() throws {
    try check(#Predicate<Purchase> { $0.customer?.name == "Ada" })
    try check(#Predicate<Purchase> { $0.customer?.name != "Ada" })
    try check(#Predicate<Purchase> { ($0.customer?.name ?? "B") < "C" && $0.total > 10 })
    try check(#Predicate<Purchase> { $0.customer.flatMap { $0.name.contains("d") } ?? false })
    try check(#Predicate<Purchase> { $0.customer?.card == nil })
    try check(#Predicate<Purchase> { $0.customer?.card?.customer?.name == "Ada" })
  }

  @Test func `a predicate can ask whether a related object exists`() throws {
    try check(#Predicate<Purchase> { $0.customer == nil })
    try check(#Predicate<Purchase> { $0.customer != nil })
    try check(#Predicate<Customer> { $0.card == nil })
    let ada = try #require(try context.fetch(FetchDescriptor<Customer>(fetchLimit: 1)).first)
    let identifier = ada.persistentModelID
    try check(#Predicate<Purchase> { $0.customer?.persistentModelID == identifier })
    try check(#Predicate<Purchase> { $0.customer?.persistentModelID != identifier })
  }

  @Test func `a predicate counts and searches a to-many relationship`() throws {
    try check(#Predicate<Customer> { $0.purchases.isEmpty })
    try check(#Predicate<Customer> { $0.purchases.count > 1 })
    try check(#Predicate<Customer> { $0.purchases.contains { $0.total > 20 } })
    try check(#Predicate<Customer> { $0.purchases.allSatisfy { $0.total > 20 } })
    try check(
      #Predicate<Customer> { customer in
        customer.purchases.contains { $0.total > 10 && customer.name == "Ada" }
      }
    )
    try check(#Predicate<Purchase> { $0.tags.contains { $0.name == "old" } })
    try check(#Predicate<Purchase> { $0.tags.count == 2 })
    try check(#Predicate<Customer> { $0.purchases.contains { $0.tags.isEmpty } })
    try check(#Predicate<Tag> { $0.purchases.contains { $0.customer?.name == "Bob" } })
    try check(
      #Predicate<Customer> { customer in
        customer.purchases.contains { $0.total > 15 && 100 / ($0.total - 10) > 5 }
      }
    )
  }

  @Test func `a predicate that filters related objects finds what Swift finds`() async throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let path = directory.file("market.db")
    let connection = try Connection(path: path)
    for id in 100..<160 {
      let customer = Int.random(in: 0...4, using: &generator)
      let total = Int.random(in: 0...40, using: &generator)
      try connection.execute(
        "INSERT INTO purchases VALUES (\(id), \(total), nullif(\(customer), 0))"
      )
      for tag in 1...2 where Bool.random(using: &generator) {
        try connection.execute("INSERT INTO purchase_tags VALUES (\(id), \(tag))")
      }
    }
    let all = try context.fetch(FetchDescriptor<Customer>())
    for _ in 0..<40 {
      let least = Int.random(in: 0...40, using: &generator)
      let count = Int.random(in: 0...12, using: &generator)
      let predicates: [Predicate<Customer>] = [
        #Predicate { $0.purchases.filter { $0.total > least }.count > count },
        #Predicate { $0.purchases.filter { $0.total > least }.isEmpty },
        #Predicate { $0.purchases.filter { $0.tags.count == 1 }.count == count },
        #Predicate { $0.purchases.filter { $0.total > least }.allSatisfy { !$0.tags.isEmpty } },
      ]
      for (number, predicate) in predicates.enumerated() {
        let expected = try all.filter { try predicate.evaluate($0) }.map(\.persistentModelID)
        let found = try context.fetchIdentifiers(FetchDescriptor(predicate: predicate))
        #expect(found == expected, "seed \(seed), \(number): \(least), \(count)")
      }
    }
  }
  @Test func `a force-unwrapped related object is refused`() throws {
    let error = #expect(throws: BatchError.self) {
      try context.fetch(
        FetchDescriptor<Purchase>(predicate: #Predicate { $0.customer!.name == "Ada" })
      )
    }
    #expect(error?.code == .unsupportedPredicate && error?.remedy?.contains("?.") == true)
  }
}
