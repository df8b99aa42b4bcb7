import BatchObjects

/// The invoices of a program with a main actor: it reads there and works in the background.
@MainActor
final class InvoiceStore {
  nonisolated let container: ModelContainer
  private let mainContext: ModelContext

  init(_ container: ModelContainer) {
    self.container = container
    mainContext = ModelContext(container)
    mainContext.automaticallyMergesChangesFromParent = true
  }

  /// Works with the context of the main actor; a call from elsewhere does not compile.
  func perform<Result>(_ body: (ModelContext) throws -> Result) rethrows -> Result {
    try body(mainContext)
  }

  /// Works with its own context, off the main actor.
  nonisolated func performInBackground<Result: Sendable>(
    _ body: @Sendable (ModelContext) throws -> Result
  ) async throws -> Result {
    try await container.newBackgroundContext().perform(body)
  }
}

enum MainAndBackground: Example {
  static let summary = "read on the main actor, work in the background"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700), ('A-3', 300);"
    )
    let store = await InvoiceStore(container)
    let numbers = { @MainActor in
      try store.perform { try $0.fetch(Invoice.self).map(\.number) }
    }
    print("main: \(try await numbers())")

    let small = try await store.performInBackground { context in
      let small = try context.fetch(Invoice.self, where: "cents < 1000")
      for invoice in small { context.delete(invoice) }
      try context.save()
      return small.count
    }
    print("background: \(small) deleted")
    print("main: \(try await numbers())")
  }
}
