import BatchObjects
import Foundation

enum Batches: Example {
  static let summary = "large results, a batch in memory"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO invoices (number, cents) SELECT 'A-' || i, i FROM n;
      """
    )
    let context = ModelContext(container)
    let open = FetchDescriptor<Invoice>(
      predicate: #Predicate { !$0.isPaid },
      sortBy: [.reverse(\.cents)]
    )

    // A collection whose elements are read a batch at a time, in any order.
    let invoices = try context.fetch(open, batchSize: 100)
    print("count: \(invoices.count), in memory: \(context.registeredModels.count)")
    print("first: \(invoices[0].number), last: \(invoices[9999].number)")
    withExtendedLifetime(invoices) { print("in memory: \(context.registeredModels.count)") }

    // The same from the first to the last.
    var (sum, most) = (0, 0)
    try ModelContext(container).enumerate(open, batchSize: 500) { invoice in
      sum += invoice.cents
      most = max(most, invoice.modelContext?.registeredModels.count ?? 0)
    }
    print("sum: \(sum), in memory: \(most)")

    // Unsaved changes would keep every object in memory; saving releases them.
    do {
      try context.enumerate(open, batchSize: 500) { $0.isPaid = true }
    } catch let error as BatchError {
      print("\(error.code)")
    }
    context.rollback()
    try context.enumerate(open, batchSize: 500) { invoice in
      invoice.isPaid = true
      if context.changedModelsArray.count == 500 { try context.save() }
    }
    print("open: \(try context.fetchCount(open))")
  }
}
