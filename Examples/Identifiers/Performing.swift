import BatchObjects

enum Performing: Example {
  static let summary = "work on a background context, awaited or waited for"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700);"
    )
    let background = container.newBackgroundContext()

    let identifier = try await background.perform { context in
      let invoice = Invoice(number: "A-3", cents: 300)
      context.insert(invoice)
      try context.save()
      return invoice.persistentModelID
    }
    print("inserted: \(identifier.primaryKey)")

    // For synchronous code; within the context's own work it runs immediately.
    let sum = try background.performAndWait { context in
      let all = try context.fetch(Invoice.self).map(\.cents)
      return try background.performAndWait { inner in
        try all.reduce(0, +) - inner.existingModel(for: identifier, as: Invoice.self).cents
      }
    }
    print("sum of the others: \(sum)")

    // An error comes out as the error that it is, and the context works on.
    do {
      try await background.perform { context throws(BatchError) in
        context.delete(try context.existingModel(for: identifier))
        try context.save()
        _ = try context.existingModel(for: identifier)
      }
    } catch {
      print("error: \(error.code)")
    }
    print("left: \(try await background.perform { try $0.fetchCount(FetchDescriptor<Invoice>()) })")
  }
}
