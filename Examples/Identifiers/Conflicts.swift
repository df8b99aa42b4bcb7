import BatchObjects

enum Conflicts: Example {
  static let summary = "two contexts change one row: the second save throws"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let (first, second) = (ModelContext(container), ModelContext(container))
    let (mine, theirs) = (try first.fetch(Invoice.self)[0], try second.fetch(Invoice.self)[0])
    theirs.cents = 1500
    try second.save()

    mine.cents = 900
    do {
      try first.save()
    } catch {
      print("\(error.code): \(error.message)")
      for conflict in error.mergeConflicts {
        print("  read: \(conflict.objectSnapshot["cents"] ?? .null)")
        print("  set: \(conflict.changedValues["cents"] ?? .null)")
        print("  stored: \(conflict.persistedSnapshot?["cents"] ?? .null)")
      }
    }
    // Nothing was written and nothing is lost: look at the row as it is, and decide again.
    print("still unsaved: \(mine.isUpdated), \(mine.cents)")
    first.refresh(mine, mergeChanges: false)
    mine.cents -= 300
    try first.save()
    print("saved: \(mine.cents)")
  }
}
