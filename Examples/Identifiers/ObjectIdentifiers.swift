import BatchObjects

extension Invoice {
  /// What collections that ask for an `id` get of invoices from here on.
  fileprivate var id: PersistentIdentifier { persistentModelID }
}

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
    // Unless a class says otherwise, `id` is the object's place in memory, as in Core Data.
    print("id of an invoice: \(type(of: invoice.id))")
    print("id of any object: \(type(of: (invoice as ManagedObject).id))")
    let reminder = context.model(for: identifier) as? Invoice
    print("the same object: \(reminder === invoice)")
  }
}
