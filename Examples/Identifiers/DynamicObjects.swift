import BatchObjects

enum DynamicObjects: Example {
  static let summary = "tables without classes"

  static func run() async throws {
    let container = try await ModelContainer(
      configurations: ModelConfiguration(
        path: "billing.db",
        initialSchema: Billing.schema + """
          INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);
          """
      )
    )
    let context = ModelContext(container)
    let invoice = try context.fetch(FetchRequest(entity: "invoices"))[0]
    print("read: \(invoice["number"]), \(invoice["cents"])")

    invoice["cents"] = .integer(1500)
    let other = try context.insertNewObject(ofEntity: "invoices")
    other["number"] = .text("A-2")
    other["cents"] = .integer(700)
    try context.save()
    print("new: \(other.persistentModelID.primaryKey), its columns' defaults: \(other["is_paid"])")

    do {
      _ = try invoice.value(forKey: "amount")
    } catch {
      print("\(error.code): \(error.message)")
    }
  }
}
