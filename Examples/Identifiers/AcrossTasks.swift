import BatchObjects

enum AcrossTasks: Example {
  static let summary = "identifiers cross tasks, objects do not"

  static func run() async throws {
    let container = try await Billing.open(
      """
      INSERT INTO invoices (number, cents)
      VALUES ('A-1', 100), ('A-2', 200), ('A-3', 300), ('A-4', 400);
      """
    )
    let identifiers = try ModelContext(container).fetch(Invoice.self).map(\.persistentModelID)

    // A context per task, each on its own thread. Sending an invoice itself does not compile.
    let sums = try await withThrowingTaskGroup(of: Int.self) { group in
      for half in [identifiers.prefix(2), identifiers.suffix(2)] {
        let background = container.newBackgroundContext()
        group.addTask {
          try await background.perform { context in
            try half.reduce(0) { sum, identifier in
              try sum + context.existingModel(for: identifier, as: Invoice.self).cents
            }
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    print("sums of the halves: \(sums.sorted())")
  }
}
