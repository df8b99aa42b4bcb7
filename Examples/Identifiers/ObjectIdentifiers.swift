import BatchIdentifiers
import BatchStore

enum ObjectIdentifiers: Example {
  static let summary = "an object has an identifier"

  static func run() async throws {
    let container = try await Billing.open()
    let context = ModelContext(container)

    let invoice = Invoice(number: "A-1", cents: 1200)
    context.insert(invoice)
    try context.save()

    let identifier: PersistentIdentifier = invoice.persistentModelID
    print(identifier)
    // `id` is the object's place in memory, as in Core Data, unless a class says otherwise.
    print("of the place in memory: \(type(of: invoice.id))")
    let reminder = context.model(for: identifier) as? Invoice
    print("the same object: \(reminder === invoice)")
  }
}
