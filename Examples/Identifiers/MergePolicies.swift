import BatchObjects

enum MergePolicies: Example {
  static let summary = "five ways to settle a conflict"

  static func run() async throws {
    let policies: [(String, MergePolicy)] = [
      ("error", .error),
      ("store trumps", .mergeByPropertyStoreTrump),
      ("object trumps", .mergeByPropertyObjectTrump),
      ("overwrite", .overwrite),
      ("rollback", .rollback),
    ]
    let container = try await Billing.open()
    for (name, policy) in policies {
      let (first, second) = (ModelContext(container), ModelContext(container))
      let mine = Invoice(number: name, cents: 1200)
      mine.note = "new"
      first.insert(mine)
      try first.save()

      // Both set the amount; each sets something else as well.
      let theirs: Invoice = try second.existingModel(for: mine.persistentModelID)
      theirs.cents = 1500
      theirs.isPaid = true
      try second.save()
      mine.cents = 900
      mine.note = "discount"
      first.mergePolicy = policy
      let outcome: String
      do {
        try first.save()
        outcome = "saved"
      } catch {
        outcome = "\(error.code)"
      }
      let row: Invoice = try ModelContext(container).existingModel(for: mine.persistentModelID)
      print("\(name): \(outcome); \(row.cents), \(row.note ?? ""), paid: \(row.isPaid)")
    }
  }
}
