import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Testing

/// Every process handles several objects in the same order, whatever the seed of its hashes.
@Suite struct SaveOrderTests {
  @Test func `pairs are written in the order in which they were set`() async throws {
    let container = try await Family.open(tracksHistory: true)
    let context = ModelContext(container)
    let ada = try #require(try context.fetch(Person.self, where: "name = 'Ada'").first)
    ada.clubs = []
    try context.save()
    let clubs = (0..<12).map { Circle("\($0)") }
    for club in clubs { context.insert(club) }
    try context.save()
    let chosen = clubs.indices.map { clubs[($0 * 7) % 12] }
    for club in chosen { club.people.append(ada) }
    try context.save()
    let changes = try #require(try context.fetchHistory(limit: .max).last).changes
    let circles = changes.map(\.identifier).filter { $0.entityName == "Circle" }
    #expect(circles == chosen.map(\.persistentModelID))
  }

  @Test func `delete rules apply in the order of their relationships' names`() async throws {
    let context = ModelContext(try await Family.open())
    let people = try context.fetch(FetchDescriptor<Person>())
    context.delete(people[0])
    _ = try context.fetchCount(FetchDescriptor<Person>())
    // The passport by "passport", then Bob and Cleo by "staff".
    #expect(
      context.changedModelsArray.map(\.persistentModelID.uriString.tail) == [
        "Passport/p1", "Person/p2", "Person/p3",
      ]
    )
    #expect(
      context.deletedModelsArray.map(\.persistentModelID.uriString.tail) == [
        "Person/p1", "Pet/p1", "Pet/p2", "Toy/p1",
      ]
    )
  }
}

extension String {
  /// The entity and the key of a URI.
  fileprivate var tail: String { split(separator: "/").suffix(2).joined(separator: "/") }
}
