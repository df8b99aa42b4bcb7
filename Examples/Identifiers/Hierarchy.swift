import BatchObjects

class Payment: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { paymentMapping }
  var cents: Int {
    get { self[\.cents] }
    set { self[\.cents] = newValue }
  }
}

final class Transfer: Payment {
  override class var mapping: ModelMapping { transferMapping }
  var account: String? {
    get { self[\.account] }
    set { self[\.account] = newValue }
  }
}

private let paymentMapping = ModelMapping(
  Payment.self,
  entity: "Payment",
  table: "payments",
  discriminator: (column: "kind", value: .text("cash")),
  properties: [.attribute("cents", \.cents)]
)

private let transferMapping = ModelMapping(
  Transfer.self,
  entity: "Transfer",
  extending: paymentMapping,
  discriminator: .text("transfer"),
  properties: [.attribute("account", \.account)]
)

enum Hierarchy: Example {
  static let summary = "entities that share a table, and their identifiers"

  static func run() async throws {
    let container = try await ModelContainer(
      for: Payment.self,
      Transfer.self,
      configurations: ModelConfiguration(
        path: "payments.db",
        initialSchema: """
          CREATE TABLE payments (id INTEGER PRIMARY KEY, kind TEXT, cents INTEGER, account TEXT);
          INSERT INTO payments VALUES (1, 'cash', 500, NULL), (2, 'transfer', 1200, 'DE02');
          """
      )
    )
    let context = ModelContext(container)
    for payment in try context.fetch(Payment.self) {
      let identifier = payment.persistentModelID
      print(
        "\(identifier.entityName)/\(identifier.primaryKey): \((payment as? Transfer)?.account ?? "cash")"
      )
    }

    // The super-entity's identifier finds the object; another sub-entity's does not.
    for (entity, key) in [("Payment", 2), ("Transfer", 1)] as [(String, Int64)] {
      let identifier = try container.identifier(ofEntity: entity, key: .integer(key))
      let found = context[identifier, as: Payment.self]?.persistentModelID
      print("\(entity)/p\(key): \(found.map { "\($0.entityName)/\($0.primaryKey)" } ?? "nothing")")
    }
  }
}
