import BatchObjects
import BatchPipeline
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// A number that knows which values it can have.
private final class Number: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Number.self,
    entity: "Number",
    table: "numbers",
    properties: [
      .attribute("id", \.id), .attribute("n", \.n), .attribute("label", \.label),
      .unique("label"),
    ]
  )

  var id: Int { self[\.id] }
  var n: Int {
    get { self[\.n] }
    set { self[\.n] = newValue }
  }
  var label: String? {
    get { self[\.label] }
    set { self[\.label] = newValue }
  }

  override func willSave() {
    if isUpdated { label = label?.replacing("label", with: "number") }
  }

  override func validate() throws {
    if n % 7 == 0 { throw ModelValidationError(\Number.n, "must not be divisible by seven") }
  }
}

/// Hooks, validation, and existing unique values in runs by objects.
@Suite struct ContextSavingTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
    try TestDatabase.make(in: directory, "CREATE UNIQUE INDEX labels ON numbers (label)")
  }

  private func run(_ size: Int, _ body: @escaping ChunkBody) async throws -> BatchRun {
    let container = try await ModelContainer(
      for: Number.self,
      configurations: ModelConfiguration(path: path)
    )
    var policy = RunPolicy(chunk: .init(size: size), workers: 2)
    policy.retry.limit = 0
    policy.skip.limit = 20
    policy.checkpoint.path = FilePath(directory.file("numbers.batch"))
    return BatchRun(
      container,
      named: "numbers",
      fetching: FetchDescriptor<Number>(),
      policy: policy,
      body
    )
  }

  private func texts(_ sql: String) throws -> [String] { try TestDatabase.texts(path, sql) }

  @Test(arguments: [1, 10, 100])
  func `an object that violates its class's validation fails its identifier alone`(
    size: Int
  ) async throws {
    let run = try await run(size) { context, identifiers in
      for number in try context.fetch(identifiers, as: Number.self) { number.n = number.id }
    }
    let summary = try await run.run()
    #expect(summary.state == .completedWithFailures && summary.outcomes.failed == 14)
    #expect(summary.outcomes.succeeded == 86)
    #expect(try texts("SELECT count(*) FROM numbers WHERE n = id") == ["86"])
    #expect(try texts("SELECT count(*) FROM numbers WHERE label LIKE 'number %'") == ["86"])
    #expect(
      try texts("SELECT group_concat(id) FROM numbers WHERE n = 0 AND id < 30") == ["7,14,21,28"]
    )
    let failed = try #require(FileInspection(of: FilePath(directory.file("numbers.batch"))).run)
      .failed
    for failure in failed {
      let key = failure.identifier.key?.description ?? ""
      #expect(failure.failure.code == BatchError.Code.validationFailed.rawValue)
      #expect(
        failure.failure.message
          == "property \"n\" must not be divisible by seven (it is \(key))"
      )
    }
  }

  @Test(arguments: [1, 10, 100])
  func `the error of a constraint names the object`(size: Int) async throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE checked (id INTEGER PRIMARY KEY, n INTEGER CHECK (n % 10 > 0))"
    )
    let run = try await run(size) { context, identifiers in
      for number in try context.fetch(identifiers, as: Number.self) {
        let object = try context.insertNewObject(ofEntity: "checked")
        object["n"] = .integer(Int64(number.id))
      }
    }
    let summary = try await run.run()
    #expect(summary.outcomes.failed == 10)
    #expect(try texts("SELECT count(*) FROM checked") == ["90"])
    let failed = try #require(FileInspection(of: FilePath(directory.file("numbers.batch"))).run)
      .failed
    for failure in failed {
      let key = failure.identifier.key?.description ?? ""
      #expect(
        failure.failure.message
          == "new checked: property \"n\" is \(key), which CHECK (n % 10 > 0) refuses"
      )
    }
  }

  @Test(arguments: [1, 10, 100])
  func `a new object with an existing unique value updates that row`(
    size: Int
  ) async throws {
    let run = try await run(size) { context, identifiers in
      for number in try context.fetch(identifiers, as: Number.self) where number.id % 2 == 0 {
        // Of each two, one exists and one does not.
        let copy = Number()
        context.insert(copy)
        copy.label = number.id % 4 == 0 ? "label \(number.id - 1)" : "new \(number.id)"
        copy.n = 7 * number.id + 1
      }
    }
    let summary = try await run.run()
    #expect(summary.state == .completed && summary.outcomes.succeeded == 100)
    #expect(try texts("SELECT count(*) FROM numbers") == ["125"])
    #expect(try texts("SELECT n FROM numbers WHERE label = 'label 3'") == ["29"])
    #expect(try texts("SELECT n FROM numbers WHERE label = 'new 2'") == ["15"])
    #expect(try texts("SELECT count(*) FROM numbers WHERE n > 0") == ["50"])
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }
}
