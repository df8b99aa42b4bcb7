import BatchObjects

enum ConcurrencyDebugging: Example {
  static let summary = "a context where it does not belong; see it with BATCH_CONCURRENCY_DEBUG=1"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let background = container.newBackgroundContext()
    // The compiler refuses this, unless told to look away.
    nonisolated(unsafe) var smuggled = ModelContext(container)
    background.performAndWait { context in smuggled = context }
    // With the variable, the process ends here instead of reading on another context's thread.
    print("read: \(try smuggled.fetch(Invoice.self).count)")
  }
}
