import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchPipeline
import BatchTestSupport
import SystemPackage
import Testing

/// Runs by objects over stores of Core Data: they read them, and record nothing there.
@Suite struct CoreDataRunTests {
  @Test func `a run processes the objects of a Core Data store without recording itself there`()
    async throws
  {
    let directory = try TemporaryDirectory()
    let jobs = try TemporaryDirectory()
    let path = try CoreDataFixture.cars.copy(to: directory)
    let before = try directory.contents()
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let makers = Lock(Set<SQLValue>())
    let run = BatchRun(
      container,
      named: "look",
      fetching: FetchRequest(entity: "SportCar"),
      policy: RunPolicy(chunk: .init(size: 3))
    ) { context, identifiers in
      for car in try context.fetch(identifiers, as: ManagedObject.self) {
        let maker = car["maker"]
        _ = makers.withLock { $0.insert(maker) }
      }
    }
    let summary = try await run.run()
    #expect(
      summary.state == .completed && summary.outcomes.succeeded == 10,
      "\(summary.error ?? "")"
    )
    #expect(makers.withLock { $0.count } == 5)

    let recorded = BatchRun(
      container,
      named: "record",
      fetching: FetchRequest(entity: "SportCar"),
      policy: RunPolicy(checkpoint: .init(path: FilePath(jobs.file("record.batch"))))
    ) { _, _ in }
    let failure = try await recorded.run().failure
    #expect(failure?.code == .readOnly && failure?.message.contains("Core Data") == true)
    #expect(try directory.changes(since: before) == [])
  }
}
