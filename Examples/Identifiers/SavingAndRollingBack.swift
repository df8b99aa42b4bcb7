import BatchObjects

enum SavingAndRollingBack: Example {
  static let summary = "insert, change, delete; save it all or none"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700);"
    )
    let context = ModelContext(container)
    let invoices = try context.fetch(Invoice.self)

    /// The numbers that the store has.
    func stored() throws -> [String] {
      try ModelContext(container).fetch(Invoice.self).map { "\($0.number) \($0.cents)" }
    }

    invoices[0].cents = 1500
    context.delete(invoices[1])
    context.insert(Invoice(number: "A-3", cents: 300))
    print(
      "unsaved:",
      context.insertedModelsArray.count,
      context.changedModelsArray.count,
      terminator: " "
    )
    print(context.deletedModelsArray.count)
    print(
      "changed: \(invoices[0].changedValues), was \(try invoices[0].committedValues()["cents"] ?? .null)"
    )

    context.rollback()
    print("rolled back: \(context.hasChanges), \(invoices[0].cents), \(invoices[1].isDeleted)")

    // A duplicate number is refused by the table, and takes the rest of the save with it.
    invoices[0].cents = 1500
    context.insert(Invoice(number: "A-2", cents: 1))
    do {
      try context.save()
    } catch {
      print("refused: \(error.code), still unsaved: \(context.hasChanges)")
    }
    print("stored: \(try stored())")
    context.rollback()

    // The same in one piece: saved at the end, undone if anything throws.
    try context.transaction {
      invoices[0].cents = 1500
      context.delete(invoices[1])
    }
    print("stored: \(try stored())")
  }
}
