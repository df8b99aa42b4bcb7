import BatchObjects
import Foundation

enum IdentifiersOnly: Example {
  static let summary = "many identifiers and not one object"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
      INSERT INTO invoices (number, cents, due) SELECT 'A-' || i, i,
        strftime('%Y-%m-%dT00:00:00Z', '2026-01-01', '+' || (i % 365) || ' days') FROM n;
      """
    )
    let context = ModelContext(container)
    let day = Date(timeIntervalSince1970: 1_790_812_800)
    let late = FetchDescriptor<Invoice>(predicate: #Predicate { $0.due >= day })

    // SwiftData's method gives an array.
    print("identifiers: \(try context.fetchIdentifiers(late).count)")
    // A list of them takes a few bits for each, and is a collection as well.
    let list = try context.fetchIdentifierList(late)
    print("less than four bits each: \(list.payloadByteCount * 2 < list.count)")
    print("the last: \(list.last?.primaryKey ?? "none")")
    // An array whose elements are unpacked as they are needed lies between the two.
    let collection = try context.fetchIdentifiers(late, batchSize: 1000)
    print("in the middle: \(collection[collection.count / 2].primaryKey)")
    print("objects: \(context.registeredModels.count), rows: \(try context.fetchCount(late))")
  }
}
