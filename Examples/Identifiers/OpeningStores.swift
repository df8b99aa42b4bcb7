import BatchObjects

enum OpeningStores: Example {
  static let summary = "opening databases, and what may be wrong with them"

  static func run() async throws {
    // Nothing to call back: the initializer is asynchronous and throws.
    let container = try await ModelContainer(
      for: Invoice.self,
      configurations: ModelConfiguration(
        path: "billing.db",
        initialSchema: Billing.schema
      )
    )
    print("entities: \(container.stores[0].schema.entities.map(\.name))")

    /// Opens a database with a class and says how that went.
    func open(_ type: any PersistentModel.Type, _ configuration: ModelConfiguration) async {
      do {
        let container = try await ModelContainer(for: type, configurations: configuration)
        print("read-only: \(container.stores[0].isReadOnly)")
      } catch {
        print("\(error.code): \(error.message)")
      }
    }
    await open(Invoice.self, ModelConfiguration(path: "billing.db", isReadOnly: true))
    await open(Attachment.self, ModelConfiguration(path: "billing.db"))
    await open(Invoice.self, ModelConfiguration(path: "missing.db"))
    await open(Invoice.self, ModelConfiguration(inMemoryWith: "CREATE TABLE invoices (id);"))
    await open(Invoice.self, ModelConfiguration(inMemoryWith: "CREATE TABEL invoices (id);"))
  }
}
