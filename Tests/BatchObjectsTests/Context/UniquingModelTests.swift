import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Random look-ups in a hierarchy while another connection turns rows of one entity into those of
/// another.
@Suite struct UniquingModelTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  @Test(arguments: 0..<16)
  func `a row has a single object of its own class, however it is looked up`(_: Int) async throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    context.stalenessInterval = 0
    let other = try Connection(path: path)
    var held: [ManagedObject] = []
    for step in 0..<500 {
      let key = Int64.random(in: 1...3, using: &random)
      let entity = try #require(Self.entities.randomElement(using: &random))
      let identifier = try container.identifier(ofEntity: entity, key: .integer(key))
      do {
        switch Int.random(in: 0..<16, using: &random) {
        case 0:
          let kind = Int64.random(in: 1...3, using: &random)
          try other.execute("UPDATE cars SET kind = ? WHERE id = ?", .integer(kind), .integer(key))
        case 1: try other.execute("DELETE FROM cars WHERE id = ?", .integer(key))
        case 2:
          let kind = Int64.random(in: 1...3, using: &random)
          try other.execute(
            "INSERT OR IGNORE INTO cars VALUES (?, ?, 'new', 1)",
            .integer(key),
            .integer(kind)
          )
        case 3, 4: held.append(context.model(for: identifier))
        case 5: held.append(try context.existingModel(for: identifier))
        case 6: held += try context.fetch(Car.self)
        case 7: held += try context.fetch([identifier], as: Car.self, skippingMissing: true)
        case 8: if Bool.random(using: &random) { context.refreshAllObjects() }
        case 9..<13: _ = try held.randomElement(using: &random)?.value(forKey: "maker")
        case 13:
          try held.randomElement(using: &random)?.setValue(.text("\(step)"), forKey: "maker")
        default:
          if Bool.random(using: &random) { try context.save() } else { context.rollback() }
          held.removeAll { _ in Int.random(in: 0..<4, using: &random) == 0 }
        }
      } catch {
        let expected: [BatchError.Code] = [
          .objectNotFound, .modelTypeMismatch, .mergeConflict, .noContext,
        ]
        #expect(expected.contains(error.code), "seed \(seed): \(error)")
        if error.code == .mergeConflict { context.rollback() }
      }
      let objects = context.registeredModels
      let read = objects.filter { !$0.isFault }.map(\.persistentModelID.primaryKey)
      #expect(Set(read).count == read.count, "seed \(seed), step \(step): \(read)")
      for object in objects {
        let entity = object.persistentModelID.entityName
        #expect("\(type(of: object))" == entity, "seed \(seed), step \(step)")
      }
      let current = held.filter { $0.modelContext === context }
      #expect(Set(current).isSubset(of: objects), "seed \(seed), step \(step)")
    }
  }

  /// The entities, which have the names of their classes.
  private static let entities = ["Car", "SportCar", "ExpensiveSportCar"]
}
