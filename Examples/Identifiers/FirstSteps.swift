import BatchObjects
import Foundation
import SystemPackage

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
    let run = BatchRun(
      container,
      named: "reprice",
      fetching: FetchDescriptor<Order>(predicate: #Predicate { $0.cents == nil }),
      policy: RunPolicy(checkpoint: .init(path: "reprice.batch"))
    ) { context, identifiers in
      // A fresh context for each chunk; its changes commit with the record that the chunk is done.
      for order in try context.fetch(identifiers, as: Order.self) {
        order.cents = Int((order.price * 100).rounded())
      }
    }
    let summary = try await run.run().get()  // throws unless all is done

    let unpriced = FetchDescriptor<Order>(predicate: #Predicate { $0.cents == nil })
    print(
      "\(summary.total) were without cents, \(try ModelContext(container).fetchCount(unpriced)) are"
    )
  }
}
