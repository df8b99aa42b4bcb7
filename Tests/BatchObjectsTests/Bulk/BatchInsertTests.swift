import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Testing

/// The column of the key is mapped in letters of another case than the table has.
private final class Part: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Part.self,
    entity: "Part",
    table: "parts",
    properties: [.attribute("number", \.number, column: "Number"), .attribute("name", \.name)]
  )

  var number: Int { self[\.number] }
  var name: String { self[\.name] }
}

@Suite struct BatchInsertTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `a batch insert lists the key column once, whatever its case`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE parts (NUMBER INTEGER PRIMARY KEY, name TEXT)",
      "INSERT INTO parts VALUES (5, 'old')"
    )
    let container = try await ModelContainer(
      for: Part.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    var request = BatchInsertRequest<Part>([5, 7]) { number, row in
      row.set(\.number, to: number)
      row.set(\.name, to: "new \(number)")
    }
    request.conflict = .update
    request.resultType = .identifiers
    #expect(try context.execute(request).identifiers?.map(\.primaryKey) == ["p5", "p7"])
    let given = BatchInsertRequest<Part>(1...1) { _, row in row.set(\.name, to: "given") }
    #expect(try context.execute(given).count == 1)
    #expect(
      try TestDatabase.texts(path, "SELECT NUMBER || name FROM parts") == [
        "5new 5", "7new 7", "8given",
      ]
    )
  }

  /// Cars whose makers are unique.
  private func cars() async throws -> (path: String, context: ModelContext) {
    let path = try Shop.make(in: directory)
    try TestDatabase.make(
      in: directory,
      "DELETE FROM cars",
      "CREATE UNIQUE INDEX by_maker ON cars (maker)",
      "INSERT INTO cars VALUES (1, 1, 'FIAT', NULL), (2, 2, 'Lotus', 1), (3, 3, 'McLaren', 2)"
    )
    return (path, ModelContext(try await Shop.open(path)))
  }

  @Test func `an upsert keeps the entity of a sub-entity's row and refuses one of another entity`()
    async throws
  {
    let (path, context) = try await cars()
    func execute(_ makers: [String]) throws -> BatchResult {
      var request = BatchInsertRequest<SportCar>(makers) { maker, row in
        row.set(\.maker, to: maker)
        row.set(\.topSpeed, to: 300)
      }
      request.conflict = .update
      return try context.execute(request)
    }
    func rows() throws -> [String] {
      try TestDatabase.texts(
        path,
        "SELECT kind || maker || coalesce(top_speed, '') FROM cars ORDER BY id"
      )
    }
    #expect(try execute(["Lotus", "McLaren", "Tesla"]).count == 3)
    #expect(try rows() == ["1FIAT", "2Lotus300", "3McLaren300", "2Tesla300"])
    let error = #expect(throws: BatchError.self) { try execute(["Ferrari", "FIAT"]) }
    #expect(error?.code == .modelTypeMismatch)
    #expect(error?.place?.hasSuffix("/Car/p1") == true)
    #expect(error?.message.contains("SportCar") == true)
    #expect(try rows() == ["1FIAT", "2Lotus300", "3McLaren300", "2Tesla300"])
    #expect(try context.execute(BatchDeleteRequest<Car>()).count == 4)
  }
}
