import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// An actor as its author writes it.
private actor Accountant: ModelActor {
  nonisolated let modelContainer: ModelContainer
  nonisolated let modelExecutor: any SerialModelExecutor

  init(_ container: ModelContainer) {
    modelContainer = container
    modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  func total() throws(BatchError) -> Int {
    modelExecutor.checkIsolated()
    return try modelContext.fetch(Order.self, where: "id < 4").reduce(0) { $0 + $1.price }
  }
}

/// A class whose accessors the debug mode checks.
private final class Note: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Note.self,
    entity: "Note",
    table: "notes",
    properties: [.attribute("text", \.text)]
  )
  var text: String {
    get { self[\.text] }
    set { self[\.text] = newValue }
  }
}

@Suite struct ModelActorTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `an actor works on the queue of its context`() async throws {
    let container = try await Shop.open(try Shop.make(in: directory))
    #expect(try await Accountant(container).total() == 600)
  }

  @Test func `background contexts read one store simultaneously`() async throws {
    let container = try await Shop.open(try Shop.make(in: directory))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let background = container.newBackgroundContext()
          return try await background.perform { context throws(BatchError) in
            try context.fetch(Car.self).count
          }
        }
      }
      for try await count in group { #expect(count == 4) }
    }
  }

  @Test func `BATCH_CONCURRENCY_DEBUG stops the use of a context off its queue`() async {
    await #expect(processExitsWith: .failure) {
      setenv("BATCH_CONCURRENCY_DEBUG", "1", 1)
      let container = try await ModelContainer(
        configurations: ModelConfiguration(inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY)")
      )
      let context = ModelContext(container)
      _ = DefaultSerialModelExecutor(modelContext: context)
      _ = try context.fetchCount(FetchRequest(entity: "a"))
    }
  }

  /// The uses that the debug mode checks, by name.
  private static let uses: [String: @Sendable (ModelContext, Note) throws -> Void] = [
    "hasChanges": { context, _ in _ = context.hasChanges },
    "insertedModelsArray": { context, _ in _ = context.insertedModelsArray },
    "changedModelsArray": { context, _ in _ = context.changedModelsArray },
    "deletedModelsArray": { context, _ in _ = context.deletedModelsArray },
    "registeredModels": { context, _ in _ = context.registeredModels },
    "refreshAllObjects": { context, _ in context.refreshAllObjects() },
    "automaticallyMerges": { context, _ in context.automaticallyMergesChangesFromParent = true },
    "rollback": { context, _ in context.rollback() },
    "save": { context, _ in try context.save() },
    "model": { context, object in _ = context.model(for: object.persistentModelID) },
    "changedValues": { _, object in _ = object.changedValues },
    "committedValues": { _, object in _ = try object.committedValues() },
    "value": { _, object in _ = object["text"] },
    "setValue": { _, object in object["text"] = .text("b") },
    "property": { _, object in _ = object.text },
    "setProperty": { _, object in object.text = "b" },
    "relatedObjects": { _, object in _ = try object.relatedObjects(forKey: "parent") },
  ]

  /// Uses a context that belongs to an executor without being on its queue.
  private static func use(_ use: String) async throws {
    let container = try await ModelContainer(
      for: Note.self,
      configurations: ModelConfiguration(
        inMemoryWith: """
          CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL,
            parent_id INTEGER REFERENCES notes);
          INSERT INTO notes VALUES (1, 'a', NULL)
          """
      )
    )
    let context = ModelContext(container)
    let note = try context.fetch(Note.self)[0]
    let executor = DefaultSerialModelExecutor(modelContext: context)
    try uses[use]?(context, note)
    withExtendedLifetime(executor) {}
  }

  @Test(arguments: uses.keys.sorted())
  func `BATCH_CONCURRENCY_DEBUG checks each use of a context and its objects`(
    use: String
  ) async {
    await #expect(processExitsWith: .failure) { [use] in
      setenv("BATCH_CONCURRENCY_DEBUG", "1", 1)
      try await Self.use(use)
    }
  }

  @Test func `a use of a context off its queue ends no process without BATCH_CONCURRENCY_DEBUG`()
    async
  {
    // So it is the debug mode that ends it above, and nothing else.
    await #expect(processExitsWith: .success) {
      unsetenv("BATCH_CONCURRENCY_DEBUG")
      for use in Self.uses.keys.sorted() { try await Self.use(use) }
    }
  }

  @Test func `an executor gives its context only to its own work`() async throws {
    await #expect(processExitsWith: .failure) {
      let container = try await ModelContainer(
        configurations: ModelConfiguration(inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY)")
      )
      let background = container.newBackgroundContext()
      _ = await background.perform { _ in background.modelExecutor.modelContext.hasChanges }
      _ = background.modelExecutor.modelContext
    }
  }
}
