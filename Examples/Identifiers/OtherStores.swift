import BatchObjects
import Foundation

enum OtherStores: Example {
  static let summary = "identifiers mean something where their store is open"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let identifier = try ModelContext(container).fetch(Invoice.self)[0].persistentModelID

    // Another container on the same store: the identifier is as good there.
    let second = try await Billing.open()
    let invoice = ModelContext(second)[identifier, as: Invoice.self]
    print("same store: \(invoice?.number ?? "nothing")")

    // Another store with the same tables and keys: not the same invoice, and not taken for it.
    let memory = ModelConfiguration(
      inMemoryWith: Billing.schema + "INSERT INTO invoices (number, cents) VALUES ('B-1', 300);"
    )
    let third = try await ModelContainer(for: Invoice.self, configurations: memory)
    do {
      _ = try ModelContext(third).existingModel(for: identifier)
    } catch {
      print("other store: \(error.code), \(error.message)")
    }
    print("other store: \(third.identifier(for: identifier.uriString) == nil ? "nil" : "found")")

    // A copy is the same store as far as identifiers go, so one container cannot have both.
    let copy = "copy.db"
    try FileManager.default.copyItem(atPath: "billing.db", toPath: copy)
    let fourth = try await ModelContainer(
      for: Invoice.self,
      configurations: ModelConfiguration(path: copy)
    )
    print("copy: \(ModelContext(fourth)[identifier, as: Invoice.self]?.number ?? "nothing")")
    do {
      _ = try await ModelContainer(
        for: Invoice.self,
        configurations: container.configurations[0],
        ModelConfiguration(path: copy)
      )
    } catch {
      print("both: \(error.code)")
    }
  }
}
