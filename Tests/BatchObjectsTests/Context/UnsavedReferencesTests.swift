import BatchObjects
import BatchTestSupport
import Testing

/// Who refers to whom by what is unsaved.
@Suite struct UnsavedReferencesTests {
  @Test func `a reverted relationship relates a refreshed object to nobody`() async throws {
    let container = try await Family.open(
      rows: Family.rows + "INSERT INTO badges VALUES (1, 1, 0, 1);"
    )
    let context = ModelContext(container)
    let people = try context.fetch(FetchDescriptor<Person>())
    let badge = try #require(people[0].badges.first)
    badge.label = 5
    badge.keeper = people[1]
    badge.keeper = people[0]
    let other = ModelContext(container)
    try other.fetch(FetchDescriptor<Badge>()).first?.keeper = nil
    try other.save()
    // Only the label is set on the badge, which has not read its row again.
    context.refreshAllObjects()
    #expect(people[0].badges.isEmpty && people[1].badges.isEmpty)
    #expect(badge.keeper == nil && badge.label == 5)
    #expect(people[0].badges.isEmpty)
    try context.save()
    #expect(badge.keeper == nil && badge.label == 5)
  }
}
