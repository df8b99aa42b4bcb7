import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct HistoryTests {
  @Test(arguments: [MergePolicy.mergeByPropertyObjectTrump, .overwrite])
  func `the history records relationships that an overruling save ends as updates`(
    _ policy: MergePolicy
  ) async throws {
    let container = try await Family.open(tracksHistory: true)
    let (context, other) = (ModelContext(container), ModelContext(container))
    func people(_ context: ModelContext) throws -> [Person] {
      try context.fetch(FetchDescriptor<Person>(sortBy: [.forward(\.name)]))
    }
    let (own, theirs) = (try people(context), try people(other))
    // Bob works for Ada. Another context makes him work for Cleo, and here he works for nobody.
    own[1].boss = nil
    theirs[1].boss = theirs[2]
    try other.save()
    context.mergePolicy = policy
    try context.save()
    let changes = try #require(try context.fetchHistory().last).changes
    func names(_ person: Person) -> [String] {
      changes.filter { $0.identifier == person.persistentModelID }.flatMap(\.updatedAttributes)
    }
    #expect(names(own[1]) == ["boss"])
    #expect(names(own[2]) == ["staff"])
    #expect(names(own[0]).isEmpty)
  }
  @Test func `a negative limit of the history is refused`() async throws {
    let context = ModelContext(try await Family.open(tracksHistory: true))
    #expect(try context.fetchHistory(limit: 0).isEmpty)
    let error = #expect(throws: BatchError.self) { try context.fetchHistory(limit: -1) }
    #expect(error?.code == .invalidSQL)
  }
  @Test func `a history token beyond the end of the history is refused`() async throws {
    let directory = try TemporaryDirectory()
    let container = try await Family.open(.file, in: directory, tracksHistory: true)
    let context = ModelContext(container)
    for name in ["Dee", "Eve"] {
      context.insert(Person(name))
      try context.save()
    }
    let token = try #require(try context.fetchHistory().last).token
    #expect(try context.fetchHistory(after: token).isEmpty)
    let path = directory.file("family.db")
    for (sql, end) in [
      ("UPDATE sqlite_sequence SET seq = 1 WHERE name = '_batch_history'", 1),
      ("DROP TABLE _batch_history", 0),
    ] {
      try TestDatabase.make("family.db", in: directory, sql)
      let restored = ModelContext(
        try await ModelContainer(configurations: ModelConfiguration(path: path))
      )
      let error = #expect(throws: BatchError.self) { try restored.fetchHistory(after: token) }
      #expect(error?.code == .historyTokenExpired)
      #expect(error?.message == "the history ends with transaction \(end), before 2")
    }
  }
}
