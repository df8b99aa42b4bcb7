import BatchIdentifiers
import BatchStore
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

@Suite struct ModelActorTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `an actor works on the queue of its context`() async throws {
    let container = try await Shop.open(try Shop.make(in: directory))
    #expect(try await Accountant(container).total() == 600)
  }

  @Test func `contexts in the background read one store at the same time`() async throws {
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
}
