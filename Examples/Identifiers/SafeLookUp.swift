import BatchObjects
import Foundation

enum SafeLookUp: Example {
  static let summary = "URIs from outside: right, outdated, or nonsense"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (id, number, cents) VALUES (1, 'A-1', 1200);"
    )
    let context = ModelContext(container)
    let store = container.stores[0].identity.uuid
    let texts = [
      "x-coredata://\(store)/Invoice/p1",
      "x-coredata://\(store)/Invoice/p2",
      "x-coredata://\(store)/Customer/p1",
      "x-coredata://00000000-0000-0000-0000-000000000000/Invoice/p1",
      "x-coredata:///Invoice/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402",
      "https://example.org/Invoice/p1",
    ]
    for text in texts {
      guard let uri = URL(string: text) else { continue }
      // The identifier says that the URI fits the store, and not that there is a row.
      let fits = container.identifier(forURI: uri) != nil
      let invoice = try context.model(with: uri) as? Invoice
      print("\(text)\n  fits: \(fits), row: \(invoice?.number ?? "none")")
    }
  }
}
