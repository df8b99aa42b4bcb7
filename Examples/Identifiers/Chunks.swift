import BatchObjects

enum Chunks: Example {
  static let summary = "every object visited, a thousand in memory"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO invoices (number, cents) SELECT 'A-' || i, i FROM n;
      """
    )
    let identifiers = try ModelContext(container).fetchIdentifierList(FetchDescriptor<Invoice>())

    // One row goes before it is its turn.
    let other = ModelContext(container)
    other.delete(try other.existingModel(for: identifiers[5000]))
    try other.save()

    var (visited, most) = (0, 0)
    for chunk in identifiers.chunks(ofCount: 1000) {
      // A context for each chunk: with it go the chunk's objects.
      let background = container.newBackgroundContext()
      let (count, registered) = try await background.perform { context in
        // Missing rows are an error unless you accept them.
        let invoices = try context.fetch(chunk, as: Invoice.self, skippingMissing: true)
        for invoice in invoices { invoice.cents += 1 }
        try context.save()
        return withExtendedLifetime(invoices) { (invoices.count, context.registeredModels.count) }
      }
      visited += count
      most = max(most, registered)
    }
    print("asked for \(identifiers.count), visited \(visited)")
    print("at most \(most) objects at a time")

    do {
      _ = try ModelContext(container).fetch(identifiers[4500..<5500], as: Invoice.self)
    } catch {
      print("\(error.code): \(error.message)")
    }
  }
}
