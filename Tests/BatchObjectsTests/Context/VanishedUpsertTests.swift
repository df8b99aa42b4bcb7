import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// New objects with the unique values of a changed object whose row somebody else has deleted.
@Suite struct VanishedUpsertTests {
  /// Whether the context still knows what the row was.
  enum Memory: CaseIterable {
    case read, refreshed
  }

  /// A context that has given a badge code 5, and has a new badge with that code, after another
  /// context has deleted the former's row.
  private func clash(
    _ memory: Memory
  ) async throws -> (context: ModelContext, changed: Badge, new: Badge) {
    let container = try await Family.open(rows: "INSERT INTO badges VALUES (7, 1, 0, NULL);")
    let context = ModelContext(container)
    let changed = try #require(try context.fetch(FetchDescriptor<Badge>()).first)
    changed.code = 5
    let other = ModelContext(container)
    try other.delete(model: Badge.self)
    try other.save()
    if memory == .refreshed { context.refreshAllObjects() }
    let new = Badge(5)
    new.label = 3
    context.insert(new)
    return (context, changed, new)
  }

  @Test(arguments: Memory.allCases)
  func `an upsert to a changed object whose row is gone conflicts and leaves all unsaved`(
    _ memory: Memory
  ) async throws {
    let (context, changed, new) = try await clash(memory)
    for _ in 0..<2 {
      let error = try #require(throws: BatchError.self) { try context.save() }
      #expect(error.code == .mergeConflict)
      #expect(error.mergeConflicts.map(\.identifier) == [changed.persistentModelID])
      #expect(error.message == "the row was deleted by somebody else")
      #expect(changed.isUpdated && new.isInserted && new.persistentModelID.isTemporary)
      #expect(changed.code == 5 && new.code == 5 && new.label == 3)
    }
  }

  @Test(arguments: Memory.allCases, [MergePolicy.mergeByPropertyStoreTrump, .rollback])
  func `a new object gets its own row if the policy drops the vanished row's change`(
    _ memory: Memory,
    _ policy: MergePolicy
  ) async throws {
    let (context, changed, new) = try await clash(memory)
    context.mergePolicy = policy
    try context.save()
    #expect(changed.isDeleted && new.persistentModelID != changed.persistentModelID)
    let found = try ModelContext(context.container).fetch(FetchDescriptor<Badge>())
    #expect(found.map(\.persistentModelID) == [new.persistentModelID])
    #expect(found.map(\.label) == [3])
  }

  @Test(arguments: [MergePolicy.mergeByPropertyObjectTrump, .overwrite])
  func `a new object takes the vanished row if the policy writes that again`(
    _ policy: MergePolicy
  ) async throws {
    let (context, changed, new) = try await clash(.read)
    context.mergePolicy = policy
    try context.save()
    #expect(changed.label == 3 && new.persistentModelID == changed.persistentModelID)
    let found = try ModelContext(context.container).fetch(FetchDescriptor<Badge>())
    #expect(found.map(\.persistentModelID.primaryKey) == ["p7"])
    #expect(found.map(\.code) == [5] && found.map(\.label) == [3])
  }

  @Test func `a new object can supply the unknown values of a vanished row`() async throws {
    let (context, changed, new) = try await clash(.refreshed)
    context.mergePolicy = .overwrite
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .mergeConflict && changed.isUpdated && new.isInserted)
    new.keeper = Person("Ada")
    try context.save()
    let fresh = ModelContext(context.container)
    let found = try fresh.fetch(FetchDescriptor<Badge>())
    #expect(found.map(\.persistentModelID.primaryKey) == ["p7"])
    #expect(found.map(\.label) == [3] && found.first?.keeper?.name == "Ada")
  }

  @Test func `an upsert gives a refreshed object its new values and keeps those not set`()
    async throws
  {
    let directory = try TemporaryDirectory()
    let context = ModelContext(try await Club.open(try Club.make(in: directory)))
    let ada = try #require(try context.fetch(Member.self, where: "name = 'Ada'").first)
    ada.number = 9
    context.refresh(ada, mergeChanges: true)
    let new = Member("new@x", "New")
    new.team = try context.fetch(FetchDescriptor<Team>()).first { $0.name == "Red" }
    new.number = 9
    try context.save()
    #expect(ada.name == "New" && ada.email == "new@x" && ada.age == 36)
    #expect(new.persistentModelID == ada.persistentModelID)
    #expect(try context.fetchCount(FetchDescriptor<Member>()) == 3)
  }
  @Test func `an upsert may set a value that another context has changed meanwhile`() async throws {
    let container = try await Family.open(rows: "INSERT INTO badges VALUES (7, 1, 0, NULL);")
    let (context, other) = (ModelContext(container), ModelContext(container))
    let changed = try #require(try context.fetch(FetchDescriptor<Badge>()).first)
    changed.label = 5
    try other.fetch(FetchDescriptor<Badge>()).first?.label = 7
    try other.save()
    let new = Badge(1)
    new.label = 0
    context.insert(new)
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .mergeConflict && changed.label == 5 && new.isInserted)
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(try ModelContext(container).fetch(FetchDescriptor<Badge>()).map(\.label) == [0])
  }
}
