import BatchObjects
import Foundation

/// A file that belongs to an object in another store.
final class Attachment: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Attachment.self,
    entity: "Attachment",
    table: "attachments",
    properties: [.attribute("name", \.name), .attribute("owner", \.owner)]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var owner: URL? {
    get { self[\.owner] }
    set { self[\.owner] = newValue }
  }
}

enum CrossStoreReference: Example {
  static let summary = "a row that refers to a row of another store"

  static func run() async throws {
    let attachments = ModelConfiguration(
      path: "attachments.db",
      initialSchema: """
        CREATE TABLE attachments (id INTEGER PRIMARY KEY, name TEXT NOT NULL, owner TEXT);
        """
    )
    let invoices = ModelConfiguration(
      path: "billing.db",
      initialSchema: Billing.schema + "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let container = try await ModelContainer(
      for: Invoice.self,
      Attachment.self,
      configurations: invoices,
      attachments
    )
    let context = ModelContext(container)
    let invoice = try context.fetch(Invoice.self)[0]
    let scan = Attachment()
    scan.name = "scan.pdf"
    scan.owner = invoice.persistentModelID.uriRepresentation
    context.insert(scan)
    try context.save()

    let other = ModelContext(container)
    for attachment in try other.fetch(Attachment.self) {
      let owner = try attachment.owner.flatMap { try other.model(with: $0) } as? Invoice
      print("\(attachment.name) belongs to \(owner?.number ?? "nobody")")
    }

    // No foreign key guards the reference.
    context.delete(invoice)
    try context.save()
    let later = ModelContext(container)
    for attachment in try later.fetch(Attachment.self) {
      let owner = try attachment.owner.flatMap { try later.model(with: $0) } as? Invoice
      print("\(attachment.name) belongs to \(owner?.number ?? "nobody")")
    }
  }
}
