import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation

/// A class over part of a table, with a property of each kind.
final class Order: ManagedObject, PersistentModel {
  enum State: String, Codable { case open, paid }
  struct Address: Codable, Equatable { var city: String }

  static let mapping = ModelMapping(
    Order.self,
    entity: "Order",
    table: "orders",
    properties: [
      .attribute("price", \.price, column: "price_cents"),
      .attribute("note", \.note),
      .attribute("created", \.created, as: .iso8601),
      .attribute("shipped", \.shipped, as: .unixSeconds),
      .attribute("state", \.state, as: .raw(placeholder: .open)),
      .attribute("address", \.address, as: .json(placeholder: Address(city: ""))),
      .attribute("isGift", \.isGift, column: "is_gift"),
    ]
  )

  var price: Int {
    get { self[\.price] }
    set { self[\.price] = newValue }
  }
  var note: String? {
    get { self[\.note] }
    set { self[\.note] = newValue }
  }
  var created: Date {
    get { self[\.created] }
    set { self[\.created] = newValue }
  }
  var shipped: Date? {
    get { self[\.shipped] }
    set { self[\.shipped] = newValue }
  }
  var state: State {
    get { self[\.state] }
    set { self[\.state] = newValue }
  }
  var address: Address? {
    get { self[\.address] }
    set { self[\.address] = newValue }
  }
  var isGift: Bool {
    get { self[\.isGift] }
    set { self[\.isGift] = newValue }
  }
}

class Car: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { carMapping }
  var maker: String {
    get { self[\.maker] }
    set { self[\.maker] = newValue }
  }
}

class SportCar: Car {
  override class var mapping: ModelMapping { sportCarMapping }
  var topSpeed: Int? {
    get { self[\.topSpeed] }
    set { self[\.topSpeed] = newValue }
  }
}

final class ExpensiveSportCar: SportCar {
  override class var mapping: ModelMapping { expensiveSportCarMapping }
}

private let carMapping = ModelMapping(
  Car.self,
  entity: "Car",
  table: "cars",
  discriminator: ("kind", .integer(1)),
  properties: [.attribute("maker", \.maker)]
)
private let sportCarMapping = ModelMapping(
  SportCar.self,
  entity: "SportCar",
  extending: carMapping,
  discriminator: .integer(2),
  properties: [
    .inherited("maker", \.maker), .attribute("topSpeed", \.topSpeed, column: "top_speed"),
  ]
)
private let expensiveSportCarMapping = ModelMapping(
  ExpensiveSportCar.self,
  entity: "ExpensiveSportCar",
  extending: sportCarMapping,
  discriminator: .integer(3),
  properties: [.inherited("maker", \.maker), .inherited("topSpeed", \.topSpeed)]
)

/// A database of orders, cars and plain people.
enum Shop {
  static func make(in directory: TemporaryDirectory) throws -> String {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE orders (id INTEGER PRIMARY KEY, price_cents INTEGER, note TEXT, created TEXT,
        shipped REAL, state TEXT, address TEXT, is_gift INTEGER, unused BLOB)
      """,
      """
      INSERT INTO orders VALUES
        (1, 100, NULL, '2026-11-21T15:05:00Z', NULL, 'open', NULL, 0, x'00'),
        (2, 200, 'two', '2026-11-21T15:05:00.250Z', 86400.5, 'paid', '{"city":"Bonn"}', 1, x'00'),
        (3, 300, 'three', '2026-11-21T16:05:00+01:00', 0, 'open', NULL, 0, x'00'),
        (4, 'dear', 'bad', '2026-11-21T15:05:00Z', NULL, 'open', NULL, 0, x'00')
      """,
      "CREATE TABLE cars (id INTEGER PRIMARY KEY, kind INTEGER, maker TEXT, top_speed INTEGER)",
      """
      INSERT INTO cars VALUES (1, 1, 'FIAT', NULL), (2, 2, 'McLaren', 330),
        (3, 3, 'McLaren', 350), (4, 1, 'FIAT', NULL)
      """,
      "CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER) WITHOUT ROWID",
      "INSERT INTO people VALUES ('Ada', 36), ('Bob', 20)"
    )
  }

  static func open(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(
      for: Order.self,
      Car.self,
      SportCar.self,
      ExpensiveSportCar.self,
      configurations: ModelConfiguration(path: path)
    )
  }
}
