import BatchObjects
import Foundation

enum PendingChanges: Example {
  static let summary = "fetches that see what is not saved, or do not"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 2200), ('A-2', 2500), ('A-3', 1000);"
    )
    let context = ModelContext(container)
    let invoices = try context.fetch(Invoice.self)
    invoices[0].cents = 500
    context.delete(invoices[1])
    invoices[2].cents = 2100
    context.insert(Invoice(number: "A-4", cents: 3000))

    var dear = FetchDescriptor<Invoice>(
      predicate: #Predicate { $0.cents > 2000 },
      sortBy: [.forward(\.cents)]
    )
    print("with them: \(try context.fetch(dear).map { "\($0.number) \($0.cents)" })")
    // New objects have temporary identifiers, and what is not saved comes last, in no order.
    let identifiers = try context.fetchIdentifiers(dear)
    print(
      "identifiers: \(identifiers.map { $0.isTemporary ? "temporary" : $0.primaryKey }.sorted())"
    )
    print("count: \(try context.fetchCount(dear))")

    // Without them it is rows that are found, while objects keep the values that they have.
    dear.includePendingChanges = false
    print("without them: \(try context.fetch(dear).map { "\($0.number) \($0.cents)" })")
    print("identifiers: \(try context.fetchIdentifiers(dear).map(\.primaryKey))")
    print("count: \(try context.fetchCount(dear))")
  }
}
