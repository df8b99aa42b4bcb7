import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Batch requests that set to-one relationships.
@Suite struct BatchRelationshipConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Market.make(in: directory)
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  private func owners() throws -> [String] {
    try TestDatabase.texts(path, "SELECT ifnull(customer_id, '-') FROM purchases ORDER BY id")
  }

  @Test func `C156 a batch update sets a to-one relationship by object, identifier, name or nil`()
    async throws
  {
    let context = ModelContext(try await Market.open(path))
    let customers = try context.fetch(Customer.self)
    func set(_ assignment: BatchAssignment<Purchase>) throws -> [String] {
      #expect(try context.execute(BatchUpdateRequest<Purchase>([assignment])).count == 3)
      return try owners()
    }
    #expect(try set(.set(\.customer, to: customers[1])) == ["2", "2", "2"])
    #expect(try set(.set(\.customer, to: customers[0].persistentModelID)) == ["1", "1", "1"])
    #expect(try set(.set(\.customer, to: nil)) == ["-", "-", "-"])
    let bob = customers[1].persistentModelID
    #expect(try set(.set(relationship: "customer", to: bob)) == ["2", "2", "2"])
    #expect(try set(.set(relationship: "customer", to: nil)) == ["-", "-", "-"])
    let some = BatchUpdateRequest<Purchase>(
      where: #Predicate { $0.total > 10 },
      [.set(\.customer, to: customers[0]), .set(\.total, to: 7)]
    )
    #expect(try context.execute(some).count == 2)
    #expect(try owners() == ["-", "1", "1"])
    context.refreshAllObjects()
    context.stalenessInterval = 0
    #expect(try context.fetch(Purchase.self).map(\.customer?.name) == [nil, "Ada", "Ada"])
  }

  @Test func `C157 a batch insert sets to-one relationships and records them in the history`()
    async throws
  {
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = true
    let container = try await ModelContainer(
      for: [Customer.self, Purchase.self, Tag.self, Complaint.self, Card.self],
      configurations: [configuration]
    )
    let context = ModelContext(container)
    let customers = try context.fetch(Customer.self)
    let bob = customers[1].persistentModelID
    let request = BatchInsertRequest<Purchase>(0..<4) { [ada = customers[0]] number, row in
      row.set(\.total, to: number)
      switch number {
      case 0: row.set(\.customer, to: ada)
      case 1: row.set(\.customer, to: bob)
      case 2: row.set(relationship: "customer", to: bob)
      default: row.set(\.customer, to: nil)
      }
    }
    #expect(try context.execute(request).count == 4)
    #expect(try owners().suffix(4) == ["1", "2", "2", "-"])
    try context.execute(BatchUpdateRequest<Purchase>([.set(\.customer, to: bob)]))
    let update = try #require(context.fetchHistory().flatMap(\.changes).last)
    #expect(update.kind == .update && update.updatedAttributes == ["customer"])
  }

  @Test func `C158 a batch request refuses objects that cannot be related`() async throws {
    let container = try await Market.open(path)
    let context = ModelContext(container)
    func code(_ assignment: BatchAssignment<Purchase>) -> BatchError.Code? {
      self.code { try context.execute(BatchUpdateRequest<Purchase>([assignment])) }
    }
    let new = Customer("New")
    context.insert(new)
    #expect(code(.set(\.customer, to: new)) == .objectNotFound)
    let customer = try #require(context.fetch(Customer.self).first)
    let gone = try #require(
      container.identifier(
        for: "\(customer.persistentModelID)".replacing("/p1", with: "/p99")
      )
    )
    #expect(code(.set(\.customer, to: gone)) == .objectNotFound)
    let tag = try #require(context.fetch(Tag.self).first).persistentModelID
    #expect(code(.set(\.customer, to: tag)) == .modelTypeMismatch)
    #expect(code(.set(relationship: "tags", to: tag)) == .immutableAttribute)
    #expect(code(.set(relationship: "custmer", to: tag)) == .unknownRelationship)
    let foreign = try await ModelContainer(
      for: Customer.self,
      Purchase.self,
      Tag.self,
      Complaint.self,
      Card.self,
      configurations: ModelConfiguration(
        path: TestDatabase.make(
          "copy.db",
          in: directory,
          "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)",
          "CREATE TABLE purchases (id INTEGER PRIMARY KEY, total INTEGER, customer_id INTEGER)",
          "CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT)",
          "CREATE TABLE purchase_tags (purchase REFERENCES purchases, tag REFERENCES tags)",
          "CREATE TABLE complaints (id INTEGER PRIMARY KEY, customer_id INTEGER)",
          "CREATE TABLE cards (id INTEGER PRIMARY KEY, customer_id INTEGER)",
          "INSERT INTO customers VALUES (1, 'Ada')"
        )
      )
    )
    let other = try #require(ModelContext(foreign).fetch(Customer.self).first)
    #expect(code(.set(\.customer, to: other)) == .foreignIdentifier)
    #expect(try owners() == ["1", "1", "2"])
    let insert = BatchInsertRequest<Purchase>(0..<1) { _, row in
      row.set(relationship: "customer", to: gone)
    }
    #expect(self.code { try context.execute(insert) } == .constraint)
  }
}
