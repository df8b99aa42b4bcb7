import BatchIdentifiers
import BatchStore

/// An invoice as a value, which may go anywhere.
struct InvoiceSnapshot: Sendable, Identifiable {
  let id: PersistentIdentifier
  var number: String
  var cents: Int

  init(_ invoice: Invoice) {
    id = invoice.persistentModelID
    number = invoice.number
    cents = invoice.cents
  }

  /// Sets what the object has otherwise.
  func apply(to invoice: Invoice) {
    if invoice.number != number { invoice.number = number }
    if invoice.cents != cents { invoice.cents = cents }
  }
}

/// Gives out values and takes them back.
actor InvoiceDesk: ModelActor {
  nonisolated let modelContainer: ModelContainer
  nonisolated let modelExecutor: any SerialModelExecutor

  init(_ container: ModelContainer) {
    modelContainer = container
    modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  func invoices() throws -> [InvoiceSnapshot] {
    try modelContext.fetch(Invoice.self).map { InvoiceSnapshot($0) }
  }

  func save(_ snapshot: InvoiceSnapshot) throws {
    let invoice = try modelContext.existingModel(for: snapshot.id, as: Invoice.self)
    snapshot.apply(to: invoice)
    try modelContext.save()
  }
}

enum Snapshots: Example {
  static let summary = "values in the place of objects"

  static func run() async throws {
    let desk = InvoiceDesk(
      try await Billing.open("INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);")
    )
    var invoice = try await desk.invoices()[0]
    invoice.cents += 300
    print("stored: \(try await desk.invoices().map(\.cents))")
    try await desk.save(invoice)
    print("stored: \(try await desk.invoices().map(\.cents))")
  }
}
