import BatchObjects
import Foundation

enum URIRoundTrip: Example {
  static let summary = "a URI finds its row again in another process"

  static func run() async throws {
    let note = URL(filePath: "last-opened")
    do {
      let container = try await Billing.open(
        "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
      )
      let invoice = try ModelContext(container).fetch(Invoice.self)[0]
      try invoice.persistentModelID.uriRepresentation.dataRepresentation.write(to: note)
    }

    // Later, with nothing left but the file.
    let container = try await Billing.open()
    guard let uri = URL(dataRepresentation: try Data(contentsOf: note), relativeTo: nil),
      let identifier = container.identifier(forURI: uri)
    else { return print("the URI is not one of this store") }
    let invoice = try ModelContext(container).existingModel(for: identifier, as: Invoice.self)
    print("\(uri) is \(invoice.number)")
    print("the same bytes: \(invoice.persistentModelID.uriRepresentation == uri)")
  }
}
