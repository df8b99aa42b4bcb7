import BatchObjects

enum Faults: Example {
  static let summary = "objects that read their row when it is needed"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700);"
    )
    let context = ModelContext(container)
    let identifiers = try context.fetchIdentifiers(FetchDescriptor<Invoice>())
    do {
      let invoices = identifiers.map { context.model(for: $0) }
      print("faults: \(invoices.map(\.isFault))")

      print("read: \((invoices[0] as? Invoice)?.number ?? "")")
      print("faults: \(invoices.map(\.isFault))")

      // The context knows the objects in use, and keeps none alive.
      withExtendedLifetime(invoices) { print("registered: \(context.registeredModels.count)") }
    }
    print("registered when nobody uses them: \(context.registeredModels.count)")

    context.insert(Invoice(number: "A-3", cents: 100))
    print("registered, since it is not saved: \(context.registeredModels.count)")
    try context.save()
    print("registered after the save: \(context.registeredModels.count)")
  }
}
