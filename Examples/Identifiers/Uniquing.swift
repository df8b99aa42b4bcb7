import BatchObjects

enum Uniquing: Example {
  static let summary = "one object for a row in a context"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let context = ModelContext(container)
    let fetched = try context.fetch(Invoice.self)[0]
    let again = try context.fetch(Invoice.self, where: "cents > 1000")[0]
    let found: Invoice = try context.existingModel(for: fetched.persistentModelID)
    print("one object: \(fetched === again && again === found)")

    // So a change shows wherever this context uses the object, and in no other context until it is
    // saved.
    fetched.cents = 1500
    let elsewhere = try ModelContext(container).fetch(Invoice.self)[0]
    print("here \(found.cents), elsewhere \(elsewhere.cents)")
    print("two objects: \(elsewhere !== fetched), one identifier: ", terminator: "")
    print(elsewhere.persistentModelID == fetched.persistentModelID)
  }
}
