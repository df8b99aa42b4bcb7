import BatchObjects

enum MergingContexts: Example {
  static let summary = "telling one context what another one saved"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200), ('A-2', 700);"
    )
    var saves = container.savedChanges().makeAsyncIterator()

    let context = ModelContext(container)
    let invoices = try context.fetch(Invoice.self)

    let other = ModelContext(container)
    let theirs = try other.fetch(Invoice.self)
    theirs[0].cents = 1500
    other.delete(theirs[1])
    other.insert(Invoice(number: "A-3", cents: 300))
    try other.save()
    print("before: \(invoices[0].cents), \(invoices[1].isDeleted)")

    // Identifiers only, so that they can come from another task, or as URIs from another process.
    guard let changes = await saves.next() else { return }
    print("inserted: \(changes.inserted.map(\.primaryKey)),", terminator: " ")
    print("updated: \(changes.updated.map(\.primaryKey)),", terminator: " ")
    print("deleted: \(changes.deleted.map(\.primaryKey))")
    let inserted = context.mergeChanges(changes)
    print("after: \(invoices[0].cents), \(invoices[1].isDeleted)")
    print("new: \(inserted.compactMap { ($0 as? Invoice)?.number })")

    let uri = invoices[0].persistentModelID.uriRepresentation
    print(
      "by URI: \(context.mergeChanges(updated: [uri]).count) new, a fault: \(invoices[0].isFault)"
    )
  }
}
