import BatchObjects
import Foundation

enum Predicates: Example {
  static let summary = "conditions in Swift, evaluated by SQLite with Swift's meaning"

  static func run() async throws {
    let container = try await Billing.open(
      """
      INSERT INTO invoices (number, cents, due, note) VALUES
        ('A-1', 1200, '2026-11-20T00:00:00Z', NULL),
        ('A-2', 700, '2026-12-01T00:00:00Z', 'Gift'),
        ('A-3', 300, '2026-11-20T12:00:00+01:00', 'second gift');
      """
    )
    let context = ModelContext(container)

    /// The numbers of the invoices that satisfy a predicate.
    func numbers(_ predicate: Predicate<Invoice>) throws -> [String] {
      try context.fetch(FetchDescriptor(predicate: predicate, sortBy: [.forward(\.number)]))
        .map(\.number)
    }

    // Dates compare as dates, in whatever form the column stores them.
    let noon = Date(timeIntervalSince1970: 1_795_176_000)
    print("due: \(try numbers(#Predicate { $0.due < noon }))")
    // NULL is nil: what SQL would not know, Swift does.
    print("not a gift: \(try numbers(#Predicate { $0.note != "Gift" }))")
    // Unlike LIKE, `contains` tells upper case from lower.
    print("gifts: \(try numbers(#Predicate { $0.note?.contains("gift") == true }))")
    let wanted = ["A-1", "A-3", "A-9"]
    print("wanted: \(try numbers(#Predicate { wanted.contains($0.number) && $0.cents / 100 > 3 }))")

    // What SQLite could only get wrong is refused by name.
    do {
      _ = try numbers(#Predicate { $0.persistentModelID.entityName == "Invoice" })
    } catch let error as BatchError {
      print("\(error.code): \(error.message)")
    }
  }
}
