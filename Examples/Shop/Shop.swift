import BatchObjects
import Foundation
import SystemPackage

/// A shop's service: ten classes, a night's offers, and their results.
///
///     Shop make shop.db 100000     # the tables, and the offers of a night
///     Shop import shop.db          # imports them; again after a crash, it goes on
///     Shop report shop.db
@main
enum Shop {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    do {
      guard let command = arguments.first, let path = arguments.dropFirst().first else {
        throw Usage()
      }
      let shop = try await open(path)
      switch command {
      case "make": try make(Int(arguments.dropFirst(2).first ?? "") ?? 2_000, in: shop)
      case "import":
        let summary = try await Import(shop: shop, checkpoint: FilePath("\(path).batch")).run()
          .get(allowingFailures: true)
        print("imported \(summary.outcomes.succeeded), refused \(summary.outcomes.failed)")
      case "report": try report(shop)
      default: throw Usage()
      }
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }

  private struct Usage: Error, CustomStringConvertible {
    let description = "usage: Shop make|import|report DATABASE [OFFERS]"
  }

  /// Opens the shop, and creates its tables in a new file.
  private static func open(_ path: String) async throws -> ModelContainer {
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = true
    return try await ModelContainer(
      for: Customer.self,
      Category.self,
      Supplier.self,
      Tag.self,
      Product.self,
      DigitalProduct.self,
      PhysicalProduct.self,
      Order.self,
      OrderLine.self,
      Offer.self,
      configurations: configuration
    )
  }

  /// Fills the shop: a fifth of the products exist, and one offer in a hundred is invalid.
  private static func make(_ count: Int, in shop: ModelContainer) throws {
    let context = ModelContext(shop)
    let ada = Customer()
    ada.email = "ada@example.com"
    ada.name = "Ada"
    ada.address = Address(street: "Hauptstraße 1", city: "Bonn")
    ada.since = Date(timeIntervalSinceReferenceDate: 0)
    let order = Order()
    order.number = UUID()
    order.placed = Date()
    order.customer = ada
    let tools = Category()
    tools.name = "Tools"
    let hammers = Category()
    hammers.name = "Hammers"
    hammers.parent = tools
    let tags = ["new", "sale", "last"].map { name in
      let tag = Tag()
      tag.name = name
      return tag
    }
    for object in [ada, order, hammers] + tags { context.insert(object) }
    let manual = DigitalProduct()
    manual.sku = "manual"
    manual.title = "How to use a hammer"
    manual.price = 5
    manual.download = URL(string: "https://example.com/manual.pdf")
    context.insert(manual)
    let line = OrderLine()
    line.quantity = 1
    line.price = manual.price
    context.insert(line)
    line.product = manual
    line.order = order
    for number in 0..<count / 5 {
      let product = PhysicalProduct()
      product.sku = "product \(number)"
      product.title = "Hammer \(number)"
      product.price = 1
      product.weight = 500
      product.category = hammers
      context.insert(product)
    }
    for number in 0..<count {
      let offer = Offer()
      offer.sku = "product \(number)"
      offer.title = "Hammer no. \(number)"
      offer.price = number % 100 == 37 ? "n/a" : "\(number % 90 + 9).95"
      offer.quantity = number % 10 + 1
      offer.tag = number % 4 == 0 ? "new" : nil
      context.insert(offer)
    }
    try context.save()
  }

  private static func report(_ shop: ModelContainer) throws {
    let context = ModelContext(shop)
    let products = try context.fetch(FetchDescriptor<Product>())
    let (new, tier) = ("new", try context.fetch(FetchDescriptor<Customer>()).map(\.tier))
    let tagged = try context.fetch(
      FetchDescriptor<Tag>(predicate: #Predicate { $0.name == new })
    ).first?.products.count
    print(
      """
      products: \(products.count), of which digital: \(products.count { $0 is DigitalProduct })
      in stock: \(products.reduce(0) { $0 + $1.stock }), worth \
      \(products.reduce(Decimal(0)) { $0 + $1.price * Decimal($1.stock) })
      new: \(tagged ?? 0)
      customers: \(tier), with \(try context.fetchCount(FetchDescriptor<OrderLine>())) line
      """
    )
  }
}
