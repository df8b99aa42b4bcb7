extension PageExample {
  /// What the page takes for granted in its code: the classes and variables that its text speaks of.
  var assumed: String { (usesMacros ? Self.macros[page] : Self.assumed[page]) ?? "" }

  /// The classes of the pages for those who know other frameworks.
  private static let orders = """
    final class Customer: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Customer.self,
        entity: "Customer",
        table: "customers",
        properties: [.attribute("name", \\.name), .toMany("orders", \\.orders, inverse: "customer")]
      )
      var name: String {
        get { self[\\.name] }
        set { self[\\.name] = newValue }
      }
      var orders: [Order] {
        get { self[\\.orders] }
        set { self[\\.orders] = newValue }
      }
    }
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [
          .attribute("number", \\.number), .attribute("placed", \\.placed, as: .unixSeconds),
          .attribute("cents", \\.cents),
          .toOne("customer", \\.customer, column: "customer_id", inverse: "orders"),
        ]
      )
      var number: String {
        get { self[\\.number] }
        set { self[\\.number] = newValue }
      }
      var placed: Date {
        get { self[\\.placed] }
        set { self[\\.placed] = newValue }
      }
      var cents: Int {
        get { self[\\.cents] }
        set { self[\\.cents] = newValue }
      }
      var customer: Customer? {
        get { self[\\.customer] }
        set { self[\\.customer] = newValue }
      }
    }
    let container = try await ModelContainer(configurations: ModelConfiguration(path: "shop.db"))
    let context = ModelContext(container)
    let other = ModelContext(container)
    let dear = FetchDescriptor<Order>(predicate: #Predicate { $0.cents > 1000 })
    let order = try context.fetch(dear)[0]
    let id = order.persistentModelID
    let (name, limit) = ("Ada", Date.now)
    """

  /// What examples with macros take for granted, by page.
  private static let macros: [String: String] = [
    "Documentation/Macros.md": """
    enum State: String, Codable, CaseIterable { case open, paid }
    @Model
    final class Line: ManagedObject {
      var order: Order?
    }
    """,
    "Documentation/FromSwiftData.md": """
    @Model
    final class Customer: ManagedObject {
      var name: String
      var orders: [Order] = []
    }
    """,
  ]

  /// What other examples do, by page.
  private static let assumed: [String: String] = [
    "Documentation/Services.md": """
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [
          .attribute("paidAt", \\.paidAt, as: .iso8601), .attribute("reminders", \\.reminders),
        ]
      )
      var paidAt: Date? {
        get { self[\\.paidAt] }
        set { self[\\.paidAt] = newValue }
      }
      var reminders: Int {
        get { self[\\.reminders] }
        set { self[\\.reminders] = newValue }
      }
    }
    let container = try await ModelContainer(configurations: ModelConfiguration(path: "shop.db"))
    let run = BatchRun(try Job(contentsOf: "job.json"))
    final class Person: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Person.self,
        entity: "Person",
        table: "people",
        properties: [.toMany("pets", \\.pets, inverse: "owner")]
      )
      var pets: [Pet] {
        get { self[\\.pets] }
        set { self[\\.pets] = newValue }
      }
    }
    final class Pet: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Pet.self,
        entity: "Pet",
        table: "pets",
        properties: [.toOne("owner", \\.owner, column: "owner_id", inverse: "pets")]
      )
      var owner: Person? {
        get { self[\\.owner] }
        set { self[\\.owner] = newValue }
      }
    }
    let ada = Person()
    let context = ModelContext(container)
    """,
    "Documentation/Saving.md": """
    final class Customer: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Customer.self,
        entity: "Customer",
        table: "customers",
        properties: [.attribute("email", \\.email), .attribute("name", \\.name), .unique("email")]
      )
      var email: String {
        get { self[\\.email] }
        set { self[\\.email] = newValue }
      }
      var name: String {
        get { self[\\.name] }
        set { self[\\.name] = newValue }
      }
    }
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [.toOne("customer", \\.customer, column: "customer_id")]
      )
      var customer: Customer? {
        get { self[\\.customer] }
        set { self[\\.customer] = newValue }
      }
    }
    let container = try await ModelContainer(
      for: Customer.self,
      Order.self,
      configurations: ModelConfiguration(path: "shop.db")
    )
    let context = ModelContext(container)
    let customer = Customer()
    """,
    "Documentation/Predicates.md": """
    final class Customer: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Customer.self,
        entity: "Customer",
        table: "customers",
        properties: [.attribute("name", \\.name)]
      )
      var name: String {
        get { self[\\.name] }
        set { self[\\.name] = newValue }
      }
    }
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [
          .attribute("price", \\.price), .attribute("note", \\.note),
          .attribute("state", \\.state), .attribute("created", \\.created, as: .iso8601),
          .toOne("customer", \\.customer, column: "customer_id"),
        ]
      )
      var price: Double {
        get { self[\\.price] }
        set { self[\\.price] = newValue }
      }
      var note: String? {
        get { self[\\.note] }
        set { self[\\.note] = newValue }
      }
      var state: String {
        get { self[\\.state] }
        set { self[\\.state] = newValue }
      }
      var created: Date {
        get { self[\\.created] }
        set { self[\\.created] = newValue }
      }
      var customer: Customer? {
        get { self[\\.customer] }
        set { self[\\.customer] = newValue }
      }
    }
    let name: String? = "Ada"
    let context = ModelContext(
      try await ModelContainer(for: Order.self, Customer.self, configurations: ModelConfiguration(path: "shop.db"))
    )
    """,
    "Documentation/FromCoreData.md": orders,
    "Documentation/FromSwiftData.md": orders,
  ]
}
