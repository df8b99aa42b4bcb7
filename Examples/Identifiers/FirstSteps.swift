import BatchPipeline
import Foundation

/// A row of table `orders`.
final class Order: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Order.self,
    entity: "Order",
    table: "orders",
    properties: [.attribute("price", \.price), .attribute("cents", \.cents, column: "price_cents")]
  )

  var price: Double {
    get { self[\.price] }
    set { self[\.price] = newValue }
  }
  var cents: Int? {
    get { self[\.cents] }
    set { self[\.cents] = newValue }
  }
}

enum FirstSteps: Example {
  static let summary = "identifiers first, and then their objects in chunks"

  static func run() async throws {
    _ = try await ModelContainer(
      configurations: ModelConfiguration(
        path: "shop.db",
        initialSchema: """
          CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL, price_cents INTEGER);
          WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
          INSERT INTO orders (price) SELECT i * 0.25 FROM n;
          """
      )
    )

    let container = try await ModelContainer(
      for: Order.self,
      configurations: ModelConfiguration(path: "shop.db")
    )
    let unpriced = FetchDescriptor<Order>(predicate: #Predicate { $0.cents == nil })
    let identifiers = try ModelContext(container).fetchIdentifierList(unpriced)

    for chunk in identifiers.chunks(ofCount: 1000) {
      // A context and a thread of its own for each chunk; what crosses over are identifiers.
      try await container.newBackgroundContext().perform { context in
        for order in try context.fetch(chunk, as: Order.self) {
          order.cents = Int((order.price * 100).rounded())
        }
        try context.save()
      }
    }
    print(
      "\(identifiers.count) were without cents, \(try ModelContext(container).fetchCount(unpriced)) are"
    )
  }
}
