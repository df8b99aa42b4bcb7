// Classes for the tables of northwind.db, made by `batch generate models`, which replaces this file.
//
// let container = try await ModelContainer(
//   for: NorthwindModels.all,
//   configurations: [ModelConfiguration(path: "northwind.db")]
// )

import BatchObjects
import Foundation

/// The classes of this file.
enum NorthwindModels {
  static let all: [any PersistentModel.Type] = [
    Category.self,
    CustomerDemographic.self,
    Customer.self,
    Employee.self,
    OrderDetail.self,
    Order.self,
    Product.self,
    Shipper.self,
  ]
}

/// A row of table `Categories`.
final class Category: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Category.self,
    entity: "Category",
    table: "Categories",
    properties: [
      .attribute("categoryId", \.categoryId, column: "CategoryID"),
      .attribute("categoryName", \.categoryName, column: "CategoryName"),
      .attribute("description", \.description, column: "Description"),
      .attribute("picture", \.picture, column: "Picture"),
      .toMany("products", \.products, inverse: "category"),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var categoryId: Int {
    get { self[\.categoryId] }
    set { self[\.categoryId] = newValue }
  }

  var categoryName: String? {
    get { self[\.categoryName] }
    set { self[\.categoryName] = newValue }
  }

  var description: String? {
    get { self[\.description] }
    set { self[\.description] = newValue }
  }

  var picture: Data? {
    get { self[\.picture] }
    set { self[\.picture] = newValue }
  }

  var products: [Product] {
    get { self[\.products] }
    set { self[\.products] = newValue }
  }
}

/// A row of table `CustomerDemographics`.
final class CustomerDemographic: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    CustomerDemographic.self,
    entity: "CustomerDemographic",
    table: "CustomerDemographics",
    properties: [
      .attribute("customerTypeId", \.customerTypeId, column: "CustomerTypeID"),
      .attribute("customerDesc", \.customerDesc, column: "CustomerDesc"),
      .toMany(
        "customers",
        \.customers,
        through: "CustomerCustomerDemo",
        from: "CustomerTypeID",
        to: "CustomerID"
      ),
    ]
  )

  /// The key, to be set before a new object is saved.
  var customerTypeId: String {
    get { self[\.customerTypeId] }
    set { self[\.customerTypeId] = newValue }
  }

  var customerDesc: String? {
    get { self[\.customerDesc] }
    set { self[\.customerDesc] = newValue }
  }

  var customers: [Customer] {
    get { self[\.customers] }
    set { self[\.customers] = newValue }
  }
}

/// A row of table `Customers`.
final class Customer: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Customer.self,
    entity: "Customer",
    table: "Customers",
    properties: [
      .attribute("customerId", \.customerId, column: "CustomerID"),
      .attribute("companyName", \.companyName, column: "CompanyName"),
      .attribute("fax", \.fax, column: "Fax"),
      .toMany("orders", \.orders, inverse: "customer"),
      .toMany(
        "customerDemographics",
        \.customerDemographics,
        through: "CustomerCustomerDemo",
        from: "CustomerID",
        to: "CustomerTypeID"
      ),
    ]
  )

  /// The key, to be set before a new object is saved.
  var customerId: String {
    get { self[\.customerId] }
    set { self[\.customerId] = newValue }
  }

  var companyName: String? {
    get { self[\.companyName] }
    set { self[\.companyName] = newValue }
  }

  var fax: String? {
    get { self[\.fax] }
    set { self[\.fax] = newValue }
  }

  var orders: [Order] {
    get { self[\.orders] }
    set { self[\.orders] = newValue }
  }

  var customerDemographics: [CustomerDemographic] {
    get { self[\.customerDemographics] }
    set { self[\.customerDemographics] = newValue }
  }
}

/// A row of table `Employees`.
final class Employee: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Employee.self,
    entity: "Employee",
    table: "Employees",
    properties: [
      .attribute("employeeId", \.employeeId, column: "EmployeeID"),
      .attribute("lastName", \.lastName, column: "LastName"),
      .attribute("birthDate", \.birthDate, column: "BirthDate", as: .sqlDate),
      .attribute("hireDate", \.hireDate, column: "HireDate", as: .sqlDate),
      .attribute("photo", \.photo, column: "Photo"),
      .toOne("reportsTo", \.reportsTo, column: "ReportsTo", inverse: "reportsToEmployees"),
      .toMany("reportsToEmployees", \.reportsToEmployees, inverse: "reportsTo"),
      .toMany("orders", \.orders, inverse: "employee"),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var employeeId: Int {
    get { self[\.employeeId] }
    set { self[\.employeeId] = newValue }
  }

  var lastName: String? {
    get { self[\.lastName] }
    set { self[\.lastName] = newValue }
  }

  var birthDate: Date? {
    get { self[\.birthDate] }
    set { self[\.birthDate] = newValue }
  }

  var hireDate: Date? {
    get { self[\.hireDate] }
    set { self[\.hireDate] = newValue }
  }

  var photo: Data? {
    get { self[\.photo] }
    set { self[\.photo] = newValue }
  }

  var reportsTo: Employee? {
    get { self[\.reportsTo] }
    set { self[\.reportsTo] = newValue }
  }

  var reportsToEmployees: [Employee] {
    get { self[\.reportsToEmployees] }
    set { self[\.reportsToEmployees] = newValue }
  }

  var orders: [Order] {
    get { self[\.orders] }
    set { self[\.orders] = newValue }
  }
}

/// A row of table `Order Details`.
final class OrderDetail: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    OrderDetail.self,
    entity: "OrderDetail",
    table: "Order Details",
    properties: [
      .toOne("order", \.order, column: "OrderID", inverse: "orderDetails"),
      .toOne("product", \.product, column: "ProductID", inverse: "orderDetails"),
      .attribute("unitPrice", \.unitPrice, column: "UnitPrice"),
      .attribute("quantity", \.quantity, column: "Quantity"),
      .attribute("discount", \.discount, column: "Discount"),
    ]
  )

  var order: Order? {
    get { self[\.order] }
    set { self[\.order] = newValue }
  }

  var product: Product? {
    get { self[\.product] }
    set { self[\.product] = newValue }
  }

  var unitPrice: Decimal {
    get { self[\.unitPrice] }
    set { self[\.unitPrice] = newValue }
  }

  var quantity: Int {
    get { self[\.quantity] }
    set { self[\.quantity] = newValue }
  }

  var discount: Double {
    get { self[\.discount] }
    set { self[\.discount] = newValue }
  }
}

/// A row of table `Orders`.
final class Order: ManagedObject, PersistentModel {
  enum Status: String, CaseIterable, Codable, Sendable {
    case new
    case onHold = "on hold"
    case shipped
  }

  static let mapping = ModelMapping(
    Order.self,
    entity: "Order",
    table: "Orders",
    properties: [
      .attribute("orderId", \.orderId, column: "OrderID"),
      .toOne("customer", \.customer, column: "CustomerID", inverse: "orders"),
      .toOne("employee", \.employee, column: "EmployeeID", inverse: "orders"),
      .attribute("orderDate", \.orderDate, column: "OrderDate", as: .sqlDateTime),
      .attribute("shippedDate", \.shippedDate, column: "ShippedDate", as: .sqlDateTime),
      .toOne("shipVia", \.shipVia, column: "ShipVia", inverse: "orders"),
      .attribute("freight", \.freight, column: "Freight"),
      .attribute("status", \.status, column: "Status", as: .raw(placeholder: Status.new)),
      .toMany("orderDetails", \.orderDetails, inverse: "order", onDelete: .deny),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var orderId: Int {
    get { self[\.orderId] }
    set { self[\.orderId] = newValue }
  }

  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }

  var employee: Employee? {
    get { self[\.employee] }
    set { self[\.employee] = newValue }
  }

  var orderDate: Date? {
    get { self[\.orderDate] }
    set { self[\.orderDate] = newValue }
  }

  var shippedDate: Date? {
    get { self[\.shippedDate] }
    set { self[\.shippedDate] = newValue }
  }

  var shipVia: Shipper? {
    get { self[\.shipVia] }
    set { self[\.shipVia] = newValue }
  }

  var freight: Decimal? {
    get { self[\.freight] }
    set { self[\.freight] = newValue }
  }

  var status: Status {
    get { self[\.status] }
    set { self[\.status] = newValue }
  }

  var orderDetails: [OrderDetail] {
    get { self[\.orderDetails] }
    set { self[\.orderDetails] = newValue }
  }
}

/// A row of table `Products`.
final class Product: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Product.self,
    entity: "Product",
    table: "Products",
    properties: [
      .attribute("productId", \.productId, column: "ProductID"),
      .attribute("productName", \.productName, column: "ProductName"),
      .toOne("category", \.category, column: "CategoryID", inverse: "products"),
      .attribute("unitPrice", \.unitPrice, column: "UnitPrice"),
      .attribute("discontinued", \.discontinued, column: "Discontinued"),
      .toMany("orderDetails", \.orderDetails, inverse: "product", onDelete: .deny),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var productId: Int {
    get { self[\.productId] }
    set { self[\.productId] = newValue }
  }

  var productName: String {
    get { self[\.productName] }
    set { self[\.productName] = newValue }
  }

  var category: Category? {
    get { self[\.category] }
    set { self[\.category] = newValue }
  }

  var unitPrice: Decimal? {
    get { self[\.unitPrice] }
    set { self[\.unitPrice] = newValue }
  }

  var discontinued: String {
    get { self[\.discontinued] }
    set { self[\.discontinued] = newValue }
  }

  var orderDetails: [OrderDetail] {
    get { self[\.orderDetails] }
    set { self[\.orderDetails] = newValue }
  }
}

/// A row of table `Shippers`.
final class Shipper: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Shipper.self,
    entity: "Shipper",
    table: "Shippers",
    properties: [
      .attribute("shipperId", \.shipperId, column: "ShipperID"),
      .attribute("companyName", \.companyName, column: "CompanyName"),
      .attribute("phone", \.phone, column: "Phone"),
      .toMany("orders", \.orders, inverse: "shipVia"),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var shipperId: Int {
    get { self[\.shipperId] }
    set { self[\.shipperId] = newValue }
  }

  var companyName: String {
    get { self[\.companyName] }
    set { self[\.companyName] = newValue }
  }

  var phone: String? {
    get { self[\.phone] }
    set { self[\.phone] = newValue }
  }

  var orders: [Order] {
    get { self[\.orders] }
    set { self[\.orders] = newValue }
  }
}

// There is no class for
// - Current Product List: a view
