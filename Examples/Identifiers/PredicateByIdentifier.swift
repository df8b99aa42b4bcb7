import BatchObjects
import Foundation

extension ModelContext {
  /// The object of an identifier, in the context or the store, or nil.
  fileprivate func found<Model: PersistentModel>(
    _ identifier: PersistentIdentifier,
    as type: Model.Type = Model.self
  ) throws -> Model? {
    if let registered: Model = registeredModel(for: identifier) { return registered }
    let descriptor = FetchDescriptor<Model>(
      predicate: #Predicate { $0.persistentModelID == identifier }
    )
    return try fetch(descriptor).first
  }
}

enum PredicateByIdentifier: Example {
  static let summary = "identifiers in predicates, one or a hundred thousand"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
      INSERT INTO invoices (number, cents) SELECT 'A-' || i, i FROM n;
      """
    )
    let context = ModelContext(container)
    let cheap = FetchDescriptor<Invoice>(
      predicate: #Predicate { $0.cents <= 3 },
      sortBy: [.reverse(\.cents)]
    )
    let identifiers = try context.fetchIdentifiers(cheap)
    print("identifiers: \(identifiers.map(\.primaryKey))")

    let one = identifiers[0]
    print("one: \(try context.found(one, as: Invoice.self)?.number ?? "nil")")

    // The rows come in their own order, and an identifier without a row has none.
    context.delete(try context.existingModel(for: identifiers[1]))
    try context.save()
    let some = FetchDescriptor<Invoice>(
      predicate: #Predicate { identifiers.contains($0.persistentModelID) }
    )
    print("some: \(try context.fetch(some).map(\.number))")

    // A packed list serves as well as an array.
    let list = try context.fetchIdentifierList(
      FetchDescriptor<Invoice>(predicate: #Predicate { $0.cents % 2 == 0 })
    )
    let many = FetchDescriptor<Invoice>(
      predicate: #Predicate { list.contains($0.persistentModelID) && $0.cents > 99_000 }
    )
    print("of \(list.count): \(try context.fetchCount(many))")
  }
}
