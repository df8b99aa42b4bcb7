import BatchObjects
import BatchPipeline
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

private final class Vehicle: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Vehicle.self,
    entity: "Vehicle",
    table: "vehicles",
    properties: [.attribute("wheels", \.wheels)]
  )

  var wheels: Int {
    get { self[\.wheels] }
    set { self[\.wheels] = newValue }
  }
}

/// Jobs name the table, containers the class of its rows.
@Suite struct TableNameTests {
  @Test(arguments: 0..<20) func `identifiers of a table are those of the class of its rows`(
    seed: Int
  )
    async throws
  {
    var random = SeededGenerator(seed: UInt64(seed))
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE vehicles (id INTEGER PRIMARY KEY, wheels INTEGER NOT NULL)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
      INSERT INTO vehicles SELECT i, i % 9 FROM c
      """
    )
    let most = Int.random(in: 0...8, using: &random)
    // The run gives the store its identity.
    var job = Job(
      name: "raise",
      database: .init(path: FilePath(path)),
      source: .init(entity: "vehicles", where: "wheels <= \(most)"),
      action: .update(.init(set: [.init("wheels", to: "wheels + 10")]))
    )
    job.policy.checkpoint.path = FilePath(directory.file("raise.batch"))
    _ = try await BatchRun(job).run().get()
    let container = try await ModelContainer(
      for: Vehicle.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let table = try IdentifierFile(opening: FilePath(directory.file("raise.batch"))).load()
    let model = try context.fetchIdentifierList(
      FetchDescriptor<Vehicle>(predicate: #Predicate { $0.wheels >= 10 })
    )
    #expect(table.header.entityName == "vehicles" && model.header.entityName == "Vehicle")
    #expect(table != model)
    #expect(table.renamed(to: "Vehicle") == model && model.renamed(to: "vehicles") == table)
    #expect(try table.renamed(to: "Vehicle").union(model) == model)
    for key in [PrimaryKey.integer(Int64.random(in: -5...300, using: &random)), 7, 200] {
      let identifier = try container.identifier(ofEntity: "Vehicle", key: key)
      #expect(model.contains(identifier) == Array(model).contains(identifier))
      #expect(!table.contains(identifier))
    }

    // Objects are those of the class, whatever their identifiers were called.
    let objects = try context.fetch(table, as: Vehicle.self)
    #expect(objects.map(\.persistentModelID) == Array(model))
    for (identifier, object) in zip(table, objects) {
      #expect(try context.existingModel(for: identifier, as: Vehicle.self) === object)
      #expect(context.model(for: identifier) === object)
      #expect(
        ModelContext(container).model(for: identifier).persistentModelID == object.persistentModelID
      )
    }
    let asked = Array(table)
    let found = try context.fetchCount(
      FetchDescriptor<Vehicle>(predicate: #Predicate { asked.contains($0.persistentModelID) })
    )
    #expect(found == model.count)

    #expect(
      try context.execute(BatchUpdateRequest<Vehicle>(identifiers: table, [.set(\.wheels, to: 50)]))
        .count == model.count
    )
    var policy = RunPolicy(chunk: .init(size: 7))
    policy.checkpoint.path = FilePath(directory.file("more.batch"))
    let lists = [table, model].shuffled(using: &random)
    func run(over list: IdentifierList, fails: Bool) async throws -> RunSummary {
      try await BatchRun(container, named: "more", over: list, policy: policy) {
        context,
        identifiers in
        if fails, identifiers.contains(where: { $0.key ?? 0 > 100 }) { throw CancellationError() }
        for vehicle in try context.fetch(identifiers, as: Vehicle.self) { vehicle.wheels += 1 }
      }.run()
    }
    // Either name resumes the run of the other.
    _ = try await run(over: lists[0], fails: true)
    _ = try await run(over: lists[1], fails: false).get()
    let wrong = try TestDatabase.texts(
      path,
      "SELECT count(*) FROM vehicles WHERE wheels NOT IN (51, id % 9) OR (wheels = 51) <> (id % 9 <= \(most))"
    )
    #expect(wrong == ["0"], "seed \(seed)")

    // And back to a job.
    let file = FilePath(directory.file("vehicles.ids"))
    try IdentifierFile.create(at: file, list: model.renamed(to: "vehicles"))
    var over = job
    over.name = "over"
    over.source = .init(entity: "vehicles", identifiers: file)
    over.policy.checkpoint.path = FilePath(directory.file("over.batch"))
    #expect(try await BatchRun(over).run().get().outcomes.succeeded == model.count)
  }
}
