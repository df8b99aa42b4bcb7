import BatchObjects

/// A service's work with invoices: an actor whose context runs on its own thread.
actor Cashier: ModelActor {
  nonisolated let modelContainer: ModelContainer
  nonisolated let modelExecutor: any SerialModelExecutor

  init(_ container: ModelContainer) {
    modelContainer = container
    modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  /// Identifiers and values go in and come out; objects stay.
  func issue(_ number: String, cents: Int) throws -> PersistentIdentifier {
    let invoice = Invoice(number: number, cents: cents)
    modelContext.insert(invoice)
    try modelContext.save()
    return invoice.persistentModelID
  }

  func pay(_ identifier: PersistentIdentifier) throws -> Bool {
    guard let invoice = self[identifier, as: Invoice.self], !invoice.isPaid else { return false }
    invoice.isPaid = true
    try modelContext.save()
    return true
  }

  func open() throws -> Int {
    try modelContext.fetch(Invoice.self, where: "NOT is_paid").reduce(0) { $0 + $1.cents }
  }
}

enum BackgroundActor: Example {
  static let summary = "an actor that keeps a context to itself"

  static func run() async throws {
    let cashier = Cashier(try await Billing.open())
    let first = try await cashier.issue("A-1", cents: 1200)
    let second = try await cashier.issue("A-2", cents: 700)
    print("issued: \(first.primaryKey), \(second.primaryKey)")
    print("open: \(try await cashier.open())")
    print("paid: \(try await cashier.pay(first))")
    print("paid again: \(try await cashier.pay(first))")
    print("open: \(try await cashier.open())")
  }
}
