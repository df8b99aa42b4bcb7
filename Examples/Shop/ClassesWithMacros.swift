#if Macros
import BatchMacros
import BatchObjects
import Foundation

@Model
final class Customer: ManagedObject {
  @Attribute(.unique) var email: String
  var name: String
  var tier: Tier = Tier.new
  var address: Address?
  var since: Date
  @Relationship(deleteRule: .deny, inverse: \Order.customer) var orders: [Order] = []
}

@Model
final class Category: ManagedObject {
  @Attribute(.unique) var name: String
  var parent: Category?
  @Relationship(inverse: \Category.parent) var children: [Category] = []
  @Relationship(inverse: \Product.category) var products: [Product] = []
}

@Model
final class Supplier: ManagedObject {
  @Attribute(.unique) var name: String
  var site: URL?
  @Relationship(inverse: \Product.supplier) var products: [Product] = []
}

@Model
final class Tag: ManagedObject {
  @Attribute(.unique) var name: String
  var products: [Product] = []
}

@Model
class Product: ManagedObject {
  #Index<Product>([\.title])

  @Attribute(.unique) var sku: String
  var title: String
  var price: Decimal
  var stock: Int = 0
  var category: Category?
  var supplier: Supplier?
  @Relationship(inverse: \Tag.products) var tags: [Tag] = []
  @Relationship(deleteRule: .deny, inverse: \OrderLine.product) var lines: [OrderLine] = []
}

@Model
final class DigitalProduct: Product {
  var download: URL?
}

@Model
final class PhysicalProduct: Product {
  @Attribute(originalName: "weight_grams") var weight: Int?
}

@Model
final class Order: ManagedObject {
  #Index<Order>([\.state, \.placed])

  @Attribute(.unique) var number: UUID
  var placed: Date
  var state: State = State.open
  var customer: Customer?
  @Relationship(deleteRule: .cascade, inverse: \OrderLine.order) var lines: [OrderLine] = []
}

@Model
final class OrderLine: ManagedObject {
  #Unique<OrderLine>([\.order, \.product])

  var quantity: Int
  var price: Decimal
  var order: Order?
  var product: Product?
}

/// A line of a supplier's nightly list: a product, its price and its quantity.
@Model
final class Offer: ManagedObject {
  var sku: String
  var title: String
  var price: String
  var quantity: Int
  var tag: String?
}
#endif
