import BatchObjects
import Foundation

enum MadeIdentifiers: Example {
  static let summary = "identifiers made from their parts"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (id, number, cents) VALUES (28, 'A-28', 1200);"
    )
    let context = ModelContext(container)
    let store = container.stores[0].identity.uuid

    // From the text of a URI; nil unless it fits one of the container's stores.
    let parsed = container.identifier(for: "x-coredata://\(store)/Invoice/p28")
    print("from text: \(parsed.map { $0.primaryKey } ?? "nil")")

    // From an entity and a key, which says nothing about whether there is such a row.
    let made = try container.identifier(ofEntity: "Invoice", key: .integer(28))
    print("from parts: \(made == parsed), \(context[made, as: Invoice.self]?.number ?? "nil")")

    // Without the store at hand its UUID is a part too.
    let parts = PersistentIdentifier(
      storeIdentifier: store,
      entityName: "Invoice",
      key: .integer(28)
    )
    print("with the store's UUID: \(parts == made)")

    // Many of one table share the names.
    let space = made.space
    let hundred = (1...100).map { space.identifier(.integer($0)) }
    print("a hundred: \(hundred.compactMap { context[$0, as: Invoice.self]?.number })")

    // Identifiers of custom stores have another scheme and mean nothing here.
    let custom = try PersistentIdentifier.identifier(
      for: store,
      entityName: "Invoice",
      primaryKey: "p28"
    )
    print("custom: \(custom)")
    do {
      _ = try context.existingModel(for: custom)
    } catch {
      print("custom: \(error.code)")
    }
  }
}
