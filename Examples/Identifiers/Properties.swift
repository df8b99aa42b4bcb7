import BatchObjects
import Foundation

enum Properties: Example {
  static let summary = "some columns of rows, without objects"

  static func run() async throws {
    let container = try await Billing.open(
      """
      INSERT INTO invoices (number, cents, note) VALUES
        ('A-1', 1200, NULL), ('A-2', 700, 'gift'), ('A-3', 300, 'gift');
      """
    )
    let context = ModelContext(container)
    var descriptor = FetchDescriptor<Invoice>(sortBy: [.forward(\.cents)])
    descriptor.propertiesToFetch = [\.number, \.cents]
    for row in try context.fetchProperties(descriptor) {
      print("\(try row.value(of: \.number)): \(try row.value(of: \.cents))")
    }
    print("objects: \(context.registeredModels.count)")

    descriptor.propertiesToFetch = [\.note]
    descriptor.sortBy = [.forward(\.note)]
    let notes = try context.fetchProperties(descriptor, distinct: true)
    print("notes: \(try notes.map { try $0.value(of: \.note) ?? "none" })")
  }
}
