import BatchObjects
import Foundation

enum BulkRequests: Example {
  static let summary = "rows inserted, changed and deleted without objects"

  static func run() async throws {
    let container = try await Billing.open()
    let context = ModelContext(container)

    // Rows come from a sequence, a chunk at a time.
    let inserted = try context.execute(
      BatchInsertRequest<Invoice>(1...10_000) { number, row in
        row.set(\.number, to: "A-\(number)")
        row.set(\.cents, to: number)
      }
    )
    print("inserted: \(inserted.count ?? 0)")

    // Objects do not notice until the result is merged.
    let invoice = try context.fetch(FetchDescriptor<Invoice>(sortBy: [.reverse(\.cents)]))[0]
    var surcharge = BatchUpdateRequest<Invoice>(
      where: #Predicate { $0.cents > 9_990 },
      [.set(\.cents, toSQL: "cents + 100"), .set(\.note, to: "surcharge")]
    )
    surcharge.resultType = .identifiers
    let updated = try context.execute(surcharge)
    print("updated: \(updated.count ?? 0), the object has \(invoice.cents)")
    context.mergeChanges(updated)
    print("merged: the object has \(invoice.cents)")

    // The same for a list of identifiers, which a predicate or a file may have given.
    let small = try context.fetchIdentifierList(
      FetchDescriptor<Invoice>(predicate: #Predicate { $0.cents <= 5_000 })
    )
    let deleted = try context.execute(BatchDeleteRequest<Invoice>(identifiers: small))
    let left = try context.fetchCount(FetchDescriptor<Invoice>())
    print("deleted: \(deleted.count ?? 0), left: \(left)")
  }
}
