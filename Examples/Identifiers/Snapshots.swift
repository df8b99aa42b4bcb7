import BatchObjects

/// Gives out invoices as values, and takes them back.
actor InvoiceDesk: ModelActor {
  nonisolated let modelContainer: ModelContainer
  nonisolated let modelExecutor: any SerialModelExecutor

  init(_ container: ModelContainer) {
    modelContainer = container
    modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  func invoices() throws -> [ModelSnapshot<Invoice>] {
    try modelContext.fetch(Invoice.self).map { invoice in try ModelSnapshot(of: invoice) }
  }

  func save(_ snapshot: ModelSnapshot<Invoice>) throws {
    do {
      try modelContext.apply(snapshot)
      try modelContext.save()
    } catch {
      modelContext.reset()
      throw error
    }
  }
}

/// An invoice as a web page shows it: a value with only the necessary data.
struct InvoiceSummary: Sendable, Identifiable {
  let id: PersistentIdentifier
  let title: String

  /// Nil for an invoice that needs no attention.
  init?(_ invoice: ModelSnapshot<Invoice>) {
    guard !invoice.isPaid else { return nil }
    id = invoice.identifier
    title = "\(invoice.number): \(invoice.cents)"
  }
}

enum Snapshots: Example {
  static let summary = "values in the place of objects"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents, is_paid) VALUES ('A-1', 1200, 0), ('A-2', 700, 1);"
    )
    let desk = InvoiceDesk(container)
    let (snapshots, others) = (try await desk.invoices(), try await desk.invoices())
    print("page: \(snapshots.compactMap { InvoiceSummary($0)?.title })")

    // A snapshot can be changed anywhere, and finds its way back.
    var invoice = snapshots[0]
    invoice.cents += 300
    invoice.note = "with delivery"
    try await desk.save(invoice)
    print("stored: \(try await desk.invoices().map(\.cents))")

    // It knows its original row, so no change by others is silently undone.
    var outdated = others[0]
    outdated.cents -= 100
    do {
      try await desk.save(outdated)
    } catch let error as BatchError {
      print("\(error.code)")
    }
    print("stored: \(try await desk.invoices().map(\.cents))")
  }
}
