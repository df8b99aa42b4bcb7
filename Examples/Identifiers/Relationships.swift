import BatchObjects
import Foundation

/// A customer.
final class Debtor: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Debtor.self,
    entity: "Debtor",
    table: "debtors",
    properties: [
      .attribute("name", \.name),
      .toMany("debts", \.debts, inverse: "debtor", onDelete: .cascade),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var debts: [Debt] {
    get { self[\.debts] }
    set { self[\.debts] = newValue }
  }
}

final class Debt: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Debt.self,
    entity: "Debt",
    table: "debts",
    properties: [
      .attribute("cents", \.cents),
      .toOne("debtor", \.debtor, column: "debtor_id", inverse: "debts"),
    ]
  )

  var cents: Int {
    get { self[\.cents] }
    set { self[\.cents] = newValue }
  }
  var debtor: Debtor? {
    get { self[\.debtor] }
    set { self[\.debtor] = newValue }
  }
}

enum Relationships: Example {
  static let summary = "objects that refer to each other, by foreign keys"

  static func run() async throws {
    let container = try await ModelContainer(
      for: Debtor.self,
      Debt.self,
      configurations: ModelConfiguration(
        path: "debts.db",
        initialSchema: """
          CREATE TABLE debtors (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
          CREATE TABLE debts (
            id INTEGER PRIMARY KEY, cents INTEGER NOT NULL, debtor_id INTEGER REFERENCES debtors);
          INSERT INTO debtors VALUES (1, 'Ada'), (2, 'Bob');
          INSERT INTO debts VALUES (1, 100, 1), (2, 200, 1), (3, 300, 2);
          """
      )
    )
    let context = ModelContext(container)
    let debtors = try context.fetch(FetchDescriptor<Debtor>(sortBy: [.forward(\.name)]))

    /// Who owes what.
    func show(_ title: String) {
      print("\(title):", debtors.map { "\($0.name) \($0.debts.map(\.cents))" })
    }
    show("stored")

    // The other side follows automatically.
    let moved = debtors[0].debts[0]
    moved.debtor = debtors[1]
    show("moved")

    // An object related to one in the context enters it, whichever side was set.
    let new = Debt()
    new.cents = 400
    new.debtor = debtors[0]
    let another = Debt()
    another.cents = 500
    debtors[1].debts.append(another)
    try context.save()
    show("inserted")

    let large = FetchDescriptor<Debt>(
      predicate: #Predicate { $0.debtor?.name == "Bob" && $0.cents > 100 }
    )
    print("by predicate: \(try context.fetch(large).map(\.cents))")

    // The delete rule of the class, whether or not the foreign key says the same.
    context.delete(debtors[1])
    try context.save()
    print("left: \(try context.fetch(FetchDescriptor<Debt>()).map(\.cents))")
  }
}
