import BatchObjects

enum VanishedRows: Example {
  static let summary = "a row that is gone is an error, and no crash"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (id, number, cents) VALUES (1, 'A-1', 1200), (2, 'A-2', 700);"
    )
    let context = ModelContext(container)
    let invoice = try context.fetch(Invoice.self)[0]
    let identifier = invoice.persistentModelID

    // Until it is saved, a deleted object is found as such.
    context.delete(invoice)
    print("deleted, not saved: \(context.model(for: identifier).isDeleted)")
    try context.save()

    // Then the identifier names nothing, which shows when the object is used.
    let ghost = context.model(for: identifier)
    do {
      _ = try ghost.value(forKey: "number")
    } catch {
      print("deleted and saved: \(error.code)")
    }

    // A property cannot throw. It reads as a placeholder, and the next call that can throw does.
    if let ghost = ghost as? Invoice { print("property: \"\(ghost.number)\", \(ghost.cents)") }
    do {
      try context.save()
    } catch {
      print("save: \(error.code)")
    }

    // Where rows may go at any time, such objects can pass for deleted.
    context.shouldDeleteInaccessibleFaults = true
    if let ghost = context.model(for: identifier) as? Invoice {
      print("property: \"\(ghost.number)\", deleted: \(ghost.isDeleted)")
    }
    try context.save()
    print("left: \(try context.fetchCount(FetchDescriptor<Invoice>()))")
  }
}
