import BatchIdentifiers
import BatchStore

enum IdentifiersOnly: Example {
  static let summary = "a million identifiers and not one object"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
      INSERT INTO invoices (number, cents, is_paid) SELECT 'A-' || i, i, i % 10 == 0 FROM n;
      """
    )
    let context = ModelContext(container)
    let open = try context.fetchIdentifiers(FetchRequest(entity: "Invoice", where: "NOT is_paid"))
    print("identifiers: \(open.count)")
    print("objects: \(context.registeredModels.count)")
    print("less than two bits each: \(open.payloadByteCount * 4 < open.count)")
    // The list is a collection, and counts, sorts and compares without any object.
    print("last: \(open.last.map { $0.primaryKey } ?? "none")")
    let count = try context.fetchCount(FetchRequest(entity: "Invoice", where: "NOT is_paid"))
    print("the same count: \(open.count == count)")
  }
}
