import BatchObjects
import Foundation

/// A customer's invoice.
final class Invoice: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Invoice.self,
    entity: "Invoice",
    table: "invoices",
    properties: [
      .attribute("number", \.number),
      .attribute("cents", \.cents),
      .attribute("due", \.due, as: .iso8601),
      .attribute("isPaid", \.isPaid, column: "is_paid"),
      .attribute("note", \.note),
    ]
  )

  var number: String {
    get { self[\.number] }
    set { self[\.number] = newValue }
  }
  var cents: Int {
    get { self[\.cents] }
    set { self[\.cents] = newValue }
  }
  var due: Date {
    get { self[\.due] }
    set { self[\.due] = newValue }
  }
  var isPaid: Bool {
    get { self[\.isPaid] }
    set { self[\.isPaid] = newValue }
  }
  var note: String? {
    get { self[\.note] }
    set { self[\.note] = newValue }
  }

  convenience init(number: String, cents: Int) {
    self.init()
    self.number = number
    self.cents = cents
  }
}

/// The database that most of the examples begin with.
enum Billing {
  static let schema = """
    CREATE TABLE invoices (
      id INTEGER PRIMARY KEY,
      number TEXT NOT NULL UNIQUE,
      cents INTEGER NOT NULL,
      due TEXT NOT NULL DEFAULT '2026-12-01T00:00:00Z',
      is_paid INTEGER NOT NULL DEFAULT 0,
      note TEXT
    );
    """

  /// Creates the database and inserts rows.
  static func open(_ rows: String = "") async throws -> ModelContainer {
    try await ModelContainer(
      for: Invoice.self,
      configurations: ModelConfiguration(
        path: "billing.db",
        initialSchema: schema + rows
      )
    )
  }
}
