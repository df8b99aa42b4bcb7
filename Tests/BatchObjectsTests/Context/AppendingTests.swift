import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Foundation
import Testing

/// Appending to a relationship to many again and again, and what happens to it in between.
@Suite struct AppendingTests {
  private func family() async throws -> (ModelContext, Person) {
    let context = ModelContext(try await Family.open())
    let ada = try context.fetch(
      FetchDescriptor<Person>(predicate: #Predicate { $0.name == "Ada" })
    )
    return (context, try #require(ada.first))
  }

  /// What another context finds when this one is saved.
  private func saved(_ context: ModelContext, _ owner: Person) throws -> [String] {
    try context.save()
    let other = ModelContext(context.container)
    let person: Person = try other.existingModel(for: owner.persistentModelID)
    return person.pets.map(\.name)
  }

  @Test func `appended objects respect changes made meanwhile on the other side`() async throws {
    let (context, ada) = try await family()
    ada.pets.append(Pet("a"))
    ada.pets.append(Pet("b"))
    // What concerns another column leaves the list alone, and what concerns this one does not.
    let toy = Toy("t")
    toy.pet = ada.pets.last
    let pet = Pet("c")
    pet.owner = ada
    ada.pets.append(Pet("d"))
    #expect(ada.pets.map(\.name) == ["Rex", "Tom", "a", "b", "c", "d"])
    ada.pets[2].owner = nil
    ada.pets.append(Pet("e"))
    context.delete(ada.pets[0])
    ada.pets.append(Pet("f"))
    #expect(ada.pets.map(\.name) == ["Tom", "b", "c", "d", "e", "f"])
    #expect(try saved(context, ada) == ["Tom", "b", "c", "d", "e", "f"])
  }

  @Test func `a changed array of related objects is saved, however it was changed`() async throws {
    let (context, ada) = try await family()
    ada.pets.append(Pet("a"))
    let read = ada.pets
    ada.pets.append(contentsOf: [Pet("b"), Pet("c")])
    #expect(read.map(\.name) == ["Rex", "Tom", "a"])
    // One goes and one comes, so that there are as many as before.
    ada.pets[0] = Pet("d")
    ada.pets.append(Pet("e"))
    ada.pets.swapAt(1, 2)
    // One that exists already.
    ada.pets.append(ada.pets[0])
    ada.pets.append(Pet("f"))
    ada.pets.removeLast()
    ada.pets.append(Pet("g"))
    #expect(
      Set(ada.pets.map(\.name)) == ["d", "a", "Tom", "b", "c", "e", "g"] && ada.pets.count == 7
    )
    #expect(try Set(saved(context, ada)) == ["d", "a", "Tom", "b", "c", "e", "g"])
  }

  @Test func `a new object keeps its appended objects until it enters a context`() async throws {
    let (context, ada) = try await family()
    let eve = Person("Eve")
    for name in ["a", "b", "c"] { eve.pets.append(Pet(name)) }
    try eve.addRelatedObject(Pet("d"), forKey: "pets")
    eve.pets.append(Pet("e"))
    eve.pets.remove(at: 1)
    eve.pets.append(contentsOf: [Pet("f"), Pet("g")])
    #expect(eve.pets.map(\.name) == ["a", "c", "d", "e", "f", "g"])
    // One of a context takes all of them there.
    eve.pets.append(ada.pets[0])
    eve.pets.append(Pet("h"))
    #expect(eve.modelContext === context)
    #expect(Set(eve.pets.map(\.name)) == ["a", "c", "d", "e", "f", "g", "Rex", "h"])
    #expect(ada.pets.map(\.name) == ["Tom"])
    #expect(try saved(context, eve) == ["Rex", "a", "c", "d", "e", "f", "g", "h"])
  }

  @Test func `objects can be appended to pairs from both sides`() async throws {
    let (context, ada) = try await family()
    let clubs = try context.fetch(FetchDescriptor<Circle>())
    #expect(ada.clubs.count == 2)
    ada.clubs = []
    for club in clubs { ada.clubs.append(club) }
    ada.clubs.append(Circle("new"))
    clubs[0].people.append(Person("Eve"))
    ada.clubs.append(clubs[0])
    #expect(ada.clubs.map(\.name) == ["chess", "golf", "new"])
    try context.save()
    #expect(clubs[0].people.map(\.name) == ["Ada", "Eve"])
    #expect(ada.clubs.map(\.name) == ["chess", "golf", "new"])
  }

  /// `BATCH_MEASURE` is the greatest number of pets that times are printed for.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["BATCH_MEASURE"] != nil))
  func `appending takes about equally long for each object, however many there are`() async throws {
    let most = ProcessInfo.processInfo.environment["BATCH_MEASURE"].flatMap { Int($0) } ?? 0
    for count in [2_000, 8_000, 32_000, 100_000] where count <= max(most, 2_000) {
      let (context, ada) = try await family()
      let clock = ContinuousClock()
      let appended = clock.measure { for _ in 0..<count { ada.pets.append(Pet("")) } }
      let joined = clock.measure { for _ in 0..<count { ada.clubs.append(Circle("")) } }
      let added = try clock.measure {
        for _ in 0..<count { try ada.addRelatedObject(Pet(""), forKey: "pets") }
      }
      let eve = Person("Eve")
      let drafted = clock.measure { for _ in 0..<count { eve.pets.append(Pet("")) } }
      context.insert(eve)
      try context.save()
      #expect(ada.pets.count == 2 * count + 2 && eve.pets.count == count)
      print(
        "\(count): appended in \(appended), to pairs in \(joined), to a new object in \(drafted);",
        "added in \(added)"
      )
    }
  }
}
