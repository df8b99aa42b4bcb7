#if !Macros
import BatchObjects
import Foundation

final class Customer: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Customer.self,
    entity: "Customer",
    table: "Customer",
    properties: [
      .attribute("email", \.email),
      .attribute("name", \.name),
      .property("tier", \.tier, default: { .new }),
      .attribute("address", \.address, as: .json(placeholder: Address())),
      .attribute("since", \.since, as: .referenceSeconds),
      .toMany("orders", \.orders, inverse: "customer", onDelete: .deny),
      .unique("email"),
    ]
  )

  var email: String {
    get { self[\.email] }
    set { self[\.email] = newValue }
  }
  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var tier: Tier {
    get { self[\.tier] }
    set { self[\.tier] = newValue }
  }
  var address: Address? {
    get { self[\.address] }
    set { self[\.address] = newValue }
  }
  var since: Date {
    get { self[\.since] }
    set { self[\.since] = newValue }
  }
  var orders: [Order] {
    get { self[\.orders] }
    set { self[\.orders] = newValue }
  }
}

final class Category: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Category.self,
    entity: "Category",
    table: "Category",
    properties: [
      .attribute("name", \.name),
      .toOne("parent", \.parent, column: "parent_id", inverse: "children"),
      .toMany("children", \.children, inverse: "parent"),
      .toMany("products", \.products, inverse: "category"),
      .unique("name"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var parent: Category? {
    get { self[\.parent] }
    set { self[\.parent] = newValue }
  }
  var children: [Category] {
    get { self[\.children] }
    set { self[\.children] = newValue }
  }
  var products: [Product] {
    get { self[\.products] }
    set { self[\.products] = newValue }
  }
}

final class Supplier: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Supplier.self,
    entity: "Supplier",
    table: "Supplier",
    properties: [
      .attribute("name", \.name),
      .attribute("site", \.site),
      .toMany("products", \.products, inverse: "supplier"),
      .unique("name"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var site: URL? {
    get { self[\.site] }
    set { self[\.site] = newValue }
  }
  var products: [Product] {
    get { self[\.products] }
    set { self[\.products] = newValue }
  }
}

final class Tag: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Tag.self,
    entity: "Tag",
    table: "Tag",
    properties: [
      .attribute("name", \.name),
      .toMany("products", \.products, through: "Product_tags", from: "tag_id", to: "product_id"),
      .unique("name"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var products: [Product] {
    get { self[\.products] }
    set { self[\.products] = newValue }
  }
}

class Product: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { productMapping }

  var sku: String {
    get { self[\.sku] }
    set { self[\.sku] = newValue }
  }
  var title: String {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }
  var price: Decimal {
    get { self[\.price] }
    set { self[\.price] = newValue }
  }
  var stock: Int {
    get { self[\.stock] }
    set { self[\.stock] = newValue }
  }
  var category: Category? {
    get { self[\.category] }
    set { self[\.category] = newValue }
  }
  var supplier: Supplier? {
    get { self[\.supplier] }
    set { self[\.supplier] = newValue }
  }
  var tags: [Tag] {
    get { self[\.tags] }
    set { self[\.tags] = newValue }
  }
  var lines: [OrderLine] {
    get { self[\.lines] }
    set { self[\.lines] = newValue }
  }
}

private let productMapping = ModelMapping(
  Product.self,
  entity: "Product",
  table: "Product",
  discriminator: (column: "entity", value: .text("Product")),
  properties: [
    .attribute("sku", \.sku),
    .attribute("title", \.title),
    .attribute("price", \.price),
    .property("stock", \.stock, default: { 0 }),
    .toOne("category", \.category, column: "category_id", inverse: "products"),
    .toOne("supplier", \.supplier, column: "supplier_id", inverse: "products"),
    .toMany("tags", \.tags, through: "Product_tags", from: "product_id", to: "tag_id"),
    .toMany("lines", \.lines, inverse: "product", onDelete: .deny),
    .unique("sku"),
    .index("title"),
  ]
)

final class DigitalProduct: Product {
  override class var mapping: ModelMapping { digitalProductMapping }

  var download: URL? {
    get { self[\.download] }
    set { self[\.download] = newValue }
  }
}

private let digitalProductMapping = ModelMapping(
  DigitalProduct.self,
  entity: "DigitalProduct",
  extending: productMapping,
  discriminator: .text("DigitalProduct"),
  properties: [.attribute("download", \.download)]
)

final class PhysicalProduct: Product {
  override class var mapping: ModelMapping { physicalProductMapping }

  var weight: Int? {
    get { self[\.weight] }
    set { self[\.weight] = newValue }
  }
}

private let physicalProductMapping = ModelMapping(
  PhysicalProduct.self,
  entity: "PhysicalProduct",
  extending: productMapping,
  discriminator: .text("PhysicalProduct"),
  properties: [.attribute("weight", \.weight, column: "weight_grams")]
)

final class Order: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Order.self,
    entity: "Order",
    table: "Order",
    properties: [
      .attribute("number", \.number),
      .attribute("placed", \.placed, as: .referenceSeconds),
      .property("state", \.state, default: { .open }),
      .toOne("customer", \.customer, column: "customer_id", inverse: "orders"),
      .toMany("lines", \.lines, inverse: "order", onDelete: .cascade),
      .unique("number"),
      .index(["state", "placed"]),
    ]
  )

  var number: UUID {
    get { self[\.number] }
    set { self[\.number] = newValue }
  }
  var placed: Date {
    get { self[\.placed] }
    set { self[\.placed] = newValue }
  }
  var state: State {
    get { self[\.state] }
    set { self[\.state] = newValue }
  }
  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }
  var lines: [OrderLine] {
    get { self[\.lines] }
    set { self[\.lines] = newValue }
  }
}

final class OrderLine: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    OrderLine.self,
    entity: "OrderLine",
    table: "OrderLine",
    properties: [
      .attribute("quantity", \.quantity),
      .attribute("price", \.price),
      .toOne("order", \.order, column: "order_id", inverse: "lines"),
      .toOne("product", \.product, column: "product_id", inverse: "lines"),
      .unique(["order", "product"]),
    ]
  )

  var quantity: Int {
    get { self[\.quantity] }
    set { self[\.quantity] = newValue }
  }
  var price: Decimal {
    get { self[\.price] }
    set { self[\.price] = newValue }
  }
  var order: Order? {
    get { self[\.order] }
    set { self[\.order] = newValue }
  }
  var product: Product? {
    get { self[\.product] }
    set { self[\.product] = newValue }
  }
}

/// A line of a supplier's nightly list: a product, its price and its quantity.
final class Offer: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Offer.self,
    entity: "Offer",
    table: "Offer",
    properties: [
      .attribute("sku", \.sku),
      .attribute("title", \.title),
      .attribute("price", \.price),
      .attribute("quantity", \.quantity),
      .attribute("tag", \.tag),
    ]
  )

  var sku: String {
    get { self[\.sku] }
    set { self[\.sku] = newValue }
  }
  var title: String {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }
  var price: String {
    get { self[\.price] }
    set { self[\.price] = newValue }
  }
  var quantity: Int {
    get { self[\.quantity] }
    set { self[\.quantity] = newValue }
  }
  var tag: String? {
    get { self[\.tag] }
    set { self[\.tag] = newValue }
  }
}
#endif
