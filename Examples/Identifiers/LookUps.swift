import BatchObjects

enum LookUps: Example {
  static let summary = "four ways from an identifier to its object"

  static func run() async throws {
    let container = try await Billing.open(
      "INSERT INTO invoices (id, number, cents) VALUES (1, 'A-1', 1200);"
    )
    let context = ModelContext(container)
    let present = try container.identifier(ofEntity: "Invoice", key: .integer(1))
    let missing = try container.identifier(ofEntity: "Invoice", key: .integer(2))

    // Only objects already in the context; never reads.
    let registered: Invoice? = context.registeredModel(for: present)
    print("registeredModel: \(registered?.number ?? "nil")")

    // An object in any case; reads when it is used.
    let fault = context.model(for: present)
    print("model: a fault, \(fault.isFault)")

    // An object with its row, or an error.
    let invoice = try context.existingModel(for: present, as: Invoice.self)
    print("existingModel: \(invoice.number), the same object: \(invoice === fault)")
    do {
      _ = try context.existingModel(for: missing)
    } catch {
      print("existingModel: \(error.code), \(error.message)")
    }

    // An object with its row, or nil.
    print("subscript: \(context[present, as: Invoice.self]?.number ?? "nil")")
    print("subscript: \(context[missing, as: Invoice.self]?.number ?? "nil")")
  }
}
