import BatchObjects

enum Staleness: Example {
  static let summary = "when an object sees what others saved"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let context = ModelContext(container)
    let invoice = try context.fetch(Invoice.self)[0]

    let other = ModelContext(container)
    try other.fetch(Invoice.self)[0].cents = 1500
    try other.save()

    print("nothing was said: \(invoice.cents)")
    // A fetch, a look-up and a refresh show what another context of the container has saved.
    _ = try context.fetch(Invoice.self)
    print("fetched again: \(invoice.cents)")
    // Of a batch request contexts are not told: a row that is not too old may serve again.
    try other.execute(BatchUpdateRequest<Invoice>([.set(\.cents, to: 1800)]))
    context.refresh(invoice, mergeChanges: false)
    print("refreshed: \(invoice.cents)")
    context.stalenessInterval = 0
    context.refresh(invoice, mergeChanges: false)
    print("refreshed, nothing old allowed: \(invoice.cents)")

    // What was set and not saved stays, if that is wanted.
    invoice.note = "call first"
    context.refresh(invoice, mergeChanges: true)
    print("kept: \(invoice.note ?? "nil")")
    context.refresh(invoice, mergeChanges: false)
    print("given up: \(invoice.note ?? "nil")")
  }
}
