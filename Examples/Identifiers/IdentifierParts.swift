import BatchObjects

enum IdentifierParts: Example {
  static let summary = "an identifier is a store, an entity and a key"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (id, number, cents) VALUES (9, 'A-9', 900), (10, 'A-10', 1000);"
    )
    let identifiers = try ModelContext(container).fetch(Invoice.self).map(\.persistentModelID)

    for identifier in identifiers.sorted() {
      print(identifier.uriRepresentation)
      print("  of this store: \(identifier.storeIdentifier == container.stores[0].identity.uuid)")
      print("  entity: \(identifier.entityName)")
      print("  key: \(identifier.primaryKey)")
    }
    // Objects without a row have no store and no key.
    print(PersistentIdentifier.temporary(entityName: "Invoice"))
    print(PersistentIdentifier.temporary(entityName: "Invoice", form: .swiftData))
  }
}
