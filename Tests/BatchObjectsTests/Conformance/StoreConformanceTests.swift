import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct StoreConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A store as Core Data leaves it, as far as these tests need it.
  private func makeCoreDataStore(uuid: String = "71A0D3AB-4E6B-4A04-B4A3-9A0C2F9F9C57") throws
    -> String
  {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
      "INSERT INTO Z_METADATA VALUES (1, '\(uuid)', NULL)",
      """
      CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER,
        Z_MAX INTEGER)
      """,
      "INSERT INTO Z_PRIMARYKEY VALUES (1, 'Car', 0, 4)",
      """
      CREATE TABLE ZCAR (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZMAKER VARCHAR,
        ZBOUGHT TIMESTAMP)
      """,
      """
      INSERT INTO ZCAR VALUES (1, 1, 1, 'FIAT', 639503569.638793), (2, 1, 1, 'BMW', NULL),
        (4, 1, 1, 'FIAT', 0)
      """
    )
  }

  @Test func `C22 each reason why a saved identifier no longer resolves has its own error`()
    async throws
  {
    let path = try makeCoreDataStore()
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let identifier = try #require(
      ModelContext(container).fetchIdentifiers(FetchRequest(entity: "Car")).first
    )
    func reason() async throws -> BatchError.Code? {
      let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
      return #expect(throws: BatchError.self) {
        try ModelContext(container).existingModel(for: identifier)
      }?.code
    }
    // The row is gone.
    try TestDatabase.make(in: directory, "DELETE FROM ZCAR WHERE Z_PK = 1")
    #expect(try await reason() == .objectNotFound)
    // The entity is gone.
    try TestDatabase.make(in: directory, "ALTER TABLE ZCAR RENAME TO ZBUS")
    #expect(try await reason() == .unknownEntity)
    // The store is another one.
    try TestDatabase.make(
      in: directory,
      "UPDATE Z_METADATA SET Z_UUID = '00000000-0000-4000-8000-000000000000'"
    )
    #expect(try await reason() == .foreignIdentifier)
  }

  @Test func `C82 a read-only store reports its entities, counts and UUID, and keeps every byte`()
    async throws
  {
    let uuid = "71A0D3AB-4E6B-4A04-B4A3-9A0C2F9F9C57"
    let path = try makeCoreDataStore(uuid: uuid)
    let before = try directory.contents()
    let configuration = ModelConfiguration(path: path, isReadOnly: true)
    let container = try await ModelContainer(configurations: configuration)
    #expect(container.stores[0].identity.uuid == uuid)
    #expect(container.stores[0].schema.entities.map(\.name) == ["Car"])
    let context = ModelContext(container)
    #expect(try context.fetchCount(FetchRequest(entity: "Car")) == 3)
    #expect(try context.fetchCount(FetchRequest(entity: "Car", where: "maker = 'FIAT'")) == 2)
    let identifiers = try context.fetchIdentifiers(FetchRequest(entity: "Car"))
    #expect(identifiers.map(\.uriString) == [1, 2, 4].map { "x-coredata://\(uuid)/Car/p\($0)" })
    let object = try context.fetch(FetchRequest(entity: "Car"))[0]
    object["maker"] = .text("FCA")
    #expect(throws: BatchError.self) { try context.save() }
    #expect(try directory.changes(since: before) == [])
  }

  @Test
  func `C88 a store with an un-checkpointed log is read completely if both files lie together`()
    async throws
  {
    let path = try makeCoreDataStore()
    let writer = try Connection(path: path)
    try writer.execute("PRAGMA journal_mode = WAL")
    try writer.execute("PRAGMA wal_autocheckpoint = 0")
    try writer.execute("INSERT INTO ZCAR VALUES (5, 1, 1, 'Seat', NULL)")
    let together = try TemporaryDirectory()
    for name in ["test.db", "test.db-wal"] {
      try Data(directory.read(name)).write(to: URL(fileURLWithPath: together.file(name)))
    }
    let alone = try TemporaryDirectory()
    try Data(directory.read("test.db")).write(to: URL(fileURLWithPath: alone.file("test.db")))
    for (folder, count) in [(together, 4), (alone, 3)] {
      let configuration = ModelConfiguration(path: folder.file("test.db"), isReadOnly: true)
      let container = try await ModelContainer(configurations: configuration)
      #expect(try ModelContext(container).fetchCount(FetchRequest(entity: "Car")) == count)
    }
    try writer.execute("SELECT 1")
  }
}
