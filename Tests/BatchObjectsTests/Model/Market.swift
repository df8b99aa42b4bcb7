import BatchIdentifiers
import BatchObjects
import BatchTestSupport

final class Customer: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Customer.self,
    entity: "Customer",
    table: "customers",
    properties: [
      .attribute("name", \.name),
      .toMany("purchases", \.purchases, inverse: "customer", onDelete: .cascade),
      .toMany("complaints", \.complaints, inverse: "customer", onDelete: .deny),
      .toOne("card", \.card, inverse: "customer", onDelete: .nullify),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var purchases: [Purchase] {
    get { self[\.purchases] }
    set { self[\.purchases] = newValue }
  }
  var complaints: [Complaint] {
    get { self[\.complaints] }
    set { self[\.complaints] = newValue }
  }
  var card: Card? {
    get { self[\.card] }
    set { self[\.card] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Purchase: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Purchase.self,
    entity: "Purchase",
    table: "purchases",
    properties: [
      .attribute("total", \.total),
      .toOne("customer", \.customer, column: "customer_id", inverse: "purchases"),
      .toMany("tags", \.tags, through: "purchase_tags"),
    ]
  )

  var total: Int {
    get { self[\.total] }
    set { self[\.total] = newValue }
  }
  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }
  var tags: [Tag] {
    get { self[\.tags] }
    set { self[\.tags] = newValue }
  }

  convenience init(_ total: Int) {
    self.init()
    self.total = total
  }
}

final class Tag: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Tag.self,
    entity: "Tag",
    table: "tags",
    properties: [
      .attribute("name", \.name),
      .toMany("purchases", \.purchases, through: "purchase_tags", from: "tag", to: "purchase"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var purchases: [Purchase] {
    get { self[\.purchases] }
    set { self[\.purchases] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Complaint: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Complaint.self,
    entity: "Complaint",
    table: "complaints",
    properties: [.toOne("customer", \.customer, column: "customer_id")]
  )

  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }
}

final class Card: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Card.self,
    entity: "Card",
    table: "cards",
    properties: [.toOne("customer", \.customer, column: "customer_id", inverse: "card")]
  )

  var customer: Customer? {
    get { self[\.customer] }
    set { self[\.customer] = newValue }
  }
}

/// Customers with purchases, which have tags.
enum Market {
  static func make(in directory: TemporaryDirectory) throws -> String {
    try TestDatabase.make(
      "market.db",
      in: directory,
      "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)",
      """
      CREATE TABLE purchases (id INTEGER PRIMARY KEY, total INTEGER DEFAULT 0,
        customer_id INTEGER REFERENCES customers)
      """,
      "CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT)",
      """
      CREATE TABLE purchase_tags (purchase INTEGER REFERENCES purchases,
        tag INTEGER REFERENCES tags (id), PRIMARY KEY (purchase, tag)) WITHOUT ROWID
      """,
      "CREATE TABLE complaints (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers)",
      "CREATE TABLE cards (id INTEGER PRIMARY KEY, customer_id INTEGER UNIQUE REFERENCES customers)",
      "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob')",
      "INSERT INTO purchases VALUES (1, 10, 1), (2, 20, 1), (3, 30, 2)",
      "INSERT INTO tags VALUES (1, 'new'), (2, 'old')",
      "INSERT INTO purchase_tags VALUES (1, 1), (1, 2), (3, 2)"
    )
  }

  static func open(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(
      for: Customer.self,
      Purchase.self,
      Tag.self,
      Complaint.self,
      Card.self,
      configurations: ModelConfiguration(path: path)
    )
  }
}
