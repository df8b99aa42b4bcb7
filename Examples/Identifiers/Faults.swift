import BatchIdentifiers
import BatchStore

enum Faults: Example {
  static let summary = "objects that read their row when it is needed"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700);"
    )
    let context = ModelContext(container)
    let identifiers = try context.fetchIdentifiers(FetchDescriptor<Invoice>())
    let invoices = identifiers.map { context.model(for: $0) }
    print("faults: \(invoices.map(\.isFault))")

    print("read: \((invoices[0] as? Invoice)?.number ?? "")")
    print("faults: \(invoices.map(\.isFault))")

    // The context knows the objects that somebody uses, and keeps none alive.
    print("registered: \(context.registeredModels.count)")
    do {
      let third = Invoice(number: "A-3", cents: 100)
      context.insert(third)
      print("registered with a new one: \(context.registeredModels.count)")
    }
    print("still there, since it is not saved: \(context.registeredModels.count)")
    try context.save()
    print("registered after the save: \(context.registeredModels.count)")
  }
}
