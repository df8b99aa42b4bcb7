import BatchPipeline
import Foundation
import SystemPackage

/// The nightly import: each delivery makes a product, or changes the one that has its number.
struct Import {
  let shop: ModelContainer
  let checkpoint: FilePath

  /// Runs it, or goes on where it was killed.
  func run() async throws -> RunSummary {
    let run = BatchRun(
      shop,
      named: "import",
      fetching: FetchDescriptor<Delivery>(),
      // What cannot be imported is recorded with the reason, and the rest is.
      policy: RunPolicy(skip: .init(limit: 100_000), checkpoint: .init(path: checkpoint))
    ) { context, identifiers in
      let deliveries = try context.fetch(identifiers, as: Delivery.self)
      let numbers = deliveries.map(\.sku)
      let known = try context.fetch(
        FetchDescriptor<Product>(predicate: #Predicate { numbers.contains($0.sku) })
      )
      var products = Dictionary(uniqueKeysWithValues: known.map { ($0.sku, $0) })
      let tags = try context.fetch(FetchDescriptor<Tag>())
      for delivery in deliveries {
        guard let price = Decimal(string: delivery.price), price > 0 else {
          throw BadDelivery(reason: "the price of \(delivery.sku) is \(delivery.price)")
        }
        let product = products[delivery.sku] ?? PhysicalProduct()
        if product.modelContext == nil {
          product.sku = delivery.sku
          context.insert(product)
          products[delivery.sku] = product
        }
        product.title = delivery.title
        product.price = price
        product.stock += delivery.quantity
        if let tag = tags.first(where: { $0.name == delivery.tag }), !product.tags.contains(tag) {
          product.tags.append(tag)
        }
      }
    }
    return try await run.run()
  }
}

/// Why a delivery is not imported.
struct BadDelivery: Error, CustomStringConvertible {
  let reason: String
  var description: String { reason }
}
