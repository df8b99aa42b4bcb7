import BatchObjects

enum AutomaticMerging: Example {
  static let summary = "a context that is always up to date"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let (current, unmoved) = (ModelContext(container), ModelContext(container))
    current.automaticallyMergesChangesFromParent = true
    let identifier = try current.fetch(Invoice.self)[0].persistentModelID
    let first: Invoice = try current.existingModel(for: identifier)
    let second: Invoice = try unmoved.existingModel(for: identifier)

    try await container.newBackgroundContext().perform { context in
      try context.existingModel(for: identifier, as: Invoice.self).cents = 1500
      try context.save()
    }
    // It shows with the next fetch or look-up, of anything, and never during other work. Otherwise,
    // it shows once the object itself is fetched, looked up or refreshed.
    print("before a fetch: \(first.cents), \(second.cents)")
    for context in [current, unmoved] { _ = try context.fetchCount(FetchDescriptor<Invoice>()) }
    print("after it: \(first.cents), \(second.cents)")
    for context in [current, unmoved] { _ = try context.existingModel(for: identifier) }
    print("looked up: \(first.cents), \(second.cents)")
  }
}
