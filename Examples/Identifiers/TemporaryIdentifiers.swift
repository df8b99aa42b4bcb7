import BatchObjects

enum TemporaryIdentifiers: Example {
  static let summary = "a new object has a temporary identifier"

  static func run() async throws {
    let container = try await Billing.open()
    let context = ModelContext(container)
    let (first, second) = (Invoice(number: "A-1", cents: 1200), Invoice(number: "A-2", cents: 700))
    context.insert(first)
    context.insert(second)

    let temporary = first.persistentModelID
    print("temporary: \(temporary.isTemporary), \(temporary)")
    // It means something in this context only.
    print("found here: \(context[temporary, as: Invoice.self] === first)")
    print(
      "found in another context: \(ModelContext(container)[temporary, as: Invoice.self] != nil)"
    )

    // Permanent identifiers are available before the rows exist.
    try context.obtainPermanentIdentifiers(for: [first])
    let permanent = first.persistentModelID
    print("obtained: \(permanent.primaryKey), still to be inserted: \(first.isInserted)")

    try context.save()
    print("saved: \(first.persistentModelID == permanent), \(second.persistentModelID.primaryKey)")
    print(
      "found in another context: \(ModelContext(container)[permanent, as: Invoice.self] != nil)"
    )
    // A stored temporary identifier is useless now: get the permanent one after the save.
    print("temporary one found: \(context[temporary, as: Invoice.self] != nil)")
  }
}
