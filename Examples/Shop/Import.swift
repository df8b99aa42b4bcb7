import BatchObjects
import Foundation
import SystemPackage

/// The nightly import: each offer creates a product, or changes the one with its number.
struct Import {
  let shop: ModelContainer
  let checkpoint: FilePath

  /// Runs it, or resumes it after a kill.
  func run() async throws -> RunSummary {
    let run = BatchRun(
      shop,
      named: "import",
      fetching: FetchDescriptor<Offer>(),
      // What cannot be imported is recorded with the reason, and the rest is.
      policy: RunPolicy(skip: .init(limit: 100_000), checkpoint: .init(path: checkpoint))
    ) { context, identifiers in
      for offer in try context.fetch(identifiers, as: Offer.self) {
        guard let price = Decimal(string: offer.price), price > 0 else {
          throw BadOffer(reason: "the price of \(offer.sku) is \(offer.price)")
        }
        // Numbers are unique: if the product exists, saving turns this object into that product,
        // with its existing category, supplier and weight.
        let product = PhysicalProduct()
        context.insert(product)
        product.sku = offer.sku
        product.title = offer.title
        product.price = price
        product.stock = offer.quantity
        guard let name = offer.tag else { continue }
        // So are the names of tags; a product keeps those that it has.
        let tag = Tag()
        tag.name = name
        product.tags = [tag]
      }
    }
    return try await run.run()
  }
}

/// Why an offer is not imported.
struct BadOffer: Error, CustomStringConvertible {
  let reason: String
  var description: String { reason }
}
