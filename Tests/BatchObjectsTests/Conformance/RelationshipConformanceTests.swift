import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct RelationshipConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `C90 a table of pairs is found by its foreign keys, even between rows of one table`()
    async throws
  {
    let path = try TestDatabase.make(
      "pairs.db",
      in: directory,
      "CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER) WITHOUT ROWID",
      "CREATE TABLE clubs (id INTEGER PRIMARY KEY)",
      """
      CREATE TABLE "Z_26 x" ("who is" TEXT REFERENCES people, Z_4C INTEGER REFERENCES clubs (id))
      """,
      "CREATE TABLE knows (id INTEGER PRIMARY KEY, a_id REFERENCES people, b_id REFERENCES people)",
      "CREATE TABLE lines (club INTEGER REFERENCES clubs, no INTEGER, note, PRIMARY KEY (club, no))",
      "INSERT INTO people VALUES ('Ada', 36), ('Bob', 20)",
      "INSERT INTO clubs VALUES (7)",
      "INSERT INTO \"Z_26 x\" VALUES ('Ada', 7)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let people = try context.fetch(FetchRequest(entity: "people"))
    let club = try context.fetch(FetchRequest(entity: "clubs"))[0]
    #expect(try people[0].relatedObjects(forKey: "clubs") == [club])
    try club.addRelatedObject(people[1], forKey: "people")
    try people[0].addRelatedObject(people[1], forKey: "knows_b")
    #expect(try people[1].relatedObjects(forKey: "knows_a") == [people[0]])
    #expect(try people[1].relatedObjects(forKey: "knows_b").isEmpty)
    // A key may include the key of a new object.
    let newClub = try context.insertNewObject(ofEntity: "clubs")
    let line = try context.insertNewObject(ofEntity: "lines")
    line["no"] = .integer(1)
    try line.setRelatedObject(newClub, forKey: "club")
    try context.save()
    #expect(line.persistentModelID.key == .encoded(EncodedKey([.integer(8), .integer(1)])))
    #expect(try TestDatabase.texts(path, "SELECT \"who is\" FROM \"Z_26 x\"") == ["Ada", "Bob"])
    #expect(try TestDatabase.texts(path, "SELECT a_id || b_id FROM knows") == ["AdaBob"])
    context.delete(people[1])
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM knows") == ["0"])
    #expect(try club.relatedObjects(forKey: "people") == [people[0]])
  }

  @Test func `related objects are prefetched with the fetched ones`() async throws {
    let context = ModelContext(try await Market.open(try Market.make(in: directory)))
    var descriptor = FetchDescriptor<Purchase>(sortBy: [.forward(\.total)])
    descriptor.relationshipKeyPathsForPrefetching = [\.customer, \.tags]
    let purchases = try context.fetch(descriptor)
    #expect(Set(context.registeredModels.map { "\(type(of: $0))" }).contains("Customer"))
    let registered = context.registeredModels.count
    #expect(purchases.allSatisfy { $0.customer?.isFault == false })
    #expect(purchases.flatMap(\.tags).allSatisfy { !$0.isFault })
    // This read nothing more.
    #expect(context.registeredModels.count == registered)
    withExtendedLifetime(purchases) {}

    descriptor.relationshipKeyPathsForPrefetching = [\.total]
    let error = #expect(throws: BatchError.self) { try context.fetch(descriptor) }
    #expect(error?.code == .unknownRelationship)
    context.reset()
    #expect(context.registeredModels.isEmpty)
  }
}
