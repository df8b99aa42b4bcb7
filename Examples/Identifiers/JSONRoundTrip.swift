import BatchObjects
import Foundation

enum JSONRoundTrip: Example {
  static let summary = "identifiers in JSON, as SwiftData writes them"

  static func run() async throws {
    /// A message to another process.
    struct Reminder: Codable {
      var invoice: PersistentIdentifier
      var text: String
    }

    let container = try await Billing.open(
      "INSERT INTO invoices (number, cents) VALUES ('A-1', 1200);"
    )
    let context = ModelContext(container)
    let invoice = try context.fetch(Invoice.self)[0]

    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let reminder = Reminder(invoice: invoice.persistentModelID, text: "due on Monday")
    let data = try encoder.encode(reminder)
    print(String(decoding: data, as: UTF8.self))

    let received = try JSONDecoder().decode(Reminder.self, from: data)
    print("equal: \(received.invoice == invoice.persistentModelID)")
    print("found: \(context[received.invoice, as: Invoice.self]?.number ?? "nothing")")

    // JSON that contradicts itself is an error, whoever wrote it.
    let forged = String(decoding: data, as: UTF8.self).replacing("\"p1\"", with: "\"p2\"")
    do {
      _ = try JSONDecoder().decode(Reminder.self, from: Data(forged.utf8))
    } catch DecodingError.dataCorrupted(let context) {
      print("refused: \(context.codingPath.map(\.stringValue).joined(separator: "."))")
    }
  }
}
