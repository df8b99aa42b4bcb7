import BatchObjects
import Foundation

enum InvalidIdentifiers: Example {
  static let summary = "why a saved identifier finds nothing any more"

  static func run() async throws {
    let rows = "INSERT INTO invoices (id, number, cents) VALUES (1, 'A-1', 1200), (2, 'A-2', 700);"
    let container = try await Billing.open(rows)
    let saved = try ModelContext(container).fetch(Invoice.self).map(\.persistentModelID)

    /// What a container says about an identifier.
    func look(_ identifier: PersistentIdentifier, in container: ModelContainer) -> String {
      do {
        let invoice = try ModelContext(container).existingModel(for: identifier, as: Invoice.self)
        return "found \(invoice.number)"
      } catch {
        return "\(error.code)"
      }
    }

    // The row was deleted.
    let context = ModelContext(container)
    context.delete(try context.existingModel(for: saved[0]))
    try context.save()
    print("deleted: \(look(saved[0], in: container))")

    // The key is not given to another row.
    let next = Invoice(number: "A-3", cents: 100)
    context.delete(try context.existingModel(for: saved[1]))
    context.insert(next)
    try context.save()
    print("key of the next one: \(next.persistentModelID.primaryKey)")

    // The store was made again and filled with the same rows.
    try FileManager.default.removeItem(atPath: "billing.db")
    let again = try await Billing.open(rows)
    print("made again: \(look(saved[0], in: again))")

    // Your own number finds the row in any store that has it.
    let found = try ModelContext(again).fetch(
      Invoice.self,
      where: "number = :number",
      parameters: ["number": .text("A-1")]
    )
    print("by number: \(found.map(\.cents))")
  }
}
