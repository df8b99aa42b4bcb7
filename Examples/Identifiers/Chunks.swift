import BatchIdentifiers
import BatchStore

enum Chunks: Example {
  static let summary = "every object visited, a thousand in memory"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO invoices (number, cents) SELECT 'A-' || i, i FROM n;
      """
    )
    // One row goes while the list is worked through.
    let identifiers = try ModelContext(container).fetchIdentifiers(FetchRequest(entity: "Invoice"))
    let context = ModelContext(container)
    context.delete(try context.existingModel(for: identifiers[5000]))
    try context.save()

    var (visited, vanished, most) = (0, 0, 0)
    for start in stride(from: 0, to: identifiers.count, by: 1000) {
      // A context for each chunk: with it go the chunk's objects.
      let context = ModelContext(container)
      var invoices: [Invoice] = []
      for identifier in identifiers[start..<min(start + 1000, identifiers.count)] {
        if let invoice = context[identifier, as: Invoice.self] {
          invoices.append(invoice)
        } else {
          vanished += 1
        }
      }
      for invoice in invoices { invoice.cents += 1 }
      try context.save()
      most = max(most, context.registeredModels.count)
      visited += invoices.count
    }
    print("asked for \(identifiers.count), visited \(visited), vanished \(vanished)")
    print("at most \(most) objects at a time")
  }
}
