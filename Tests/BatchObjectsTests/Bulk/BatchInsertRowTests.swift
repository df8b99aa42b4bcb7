import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Testing

/// A part with a number, a name that must be unique, and a weight with a rule.
private final class Part: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Part.self,
    entity: "Part",
    table: "parts",
    properties: [
      .attribute("number", \.number), .attribute("name", \.name), .attribute("weight", \.weight),
    ]
  )

  var number: Int { self[\.number] }
  var name: String? { self[\.name] }
  var weight: Double { self[\.weight] }
}

@Suite struct BatchInsertRowTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func parts() async throws -> (path: String, context: ModelContext) {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        weight REAL CHECK (weight >= 0))
      """
    )
    let container = try await ModelContainer(
      for: Part.self,
      configurations: ModelConfiguration(path: path)
    )
    return (path, ModelContext(container))
  }

  /// Inserts 25 parts in chunks of 10; `spoil` changes one.
  private func insert(
    in context: ModelContext,
    onCommit: ((Int) -> Void)? = nil,
    _ spoil: @escaping (Int, inout BatchInsertRequest<Part>.Row) throws -> Void
  ) throws -> BatchResult {
    var request = BatchInsertRequest<Part>(0..<25) { number, row in
      row.set(\.number, to: number)
      row.set(\.name, to: "part \(number)")
      row.set(\.weight, to: Double(number))
      try spoil(number, &row)
    }
    request.chunkSize = 10
    request.onCommit = onCommit
    return try context.execute(request)
  }

  @Test(arguments: 0..<25) func `an error names the row, its property and how many are done`(
    bad: Int
  ) async throws {
    typealias Spoil = (inout BatchInsertRequest<Part>.Row) -> Void
    let faults: [(property: String?, value: SQLValue?, spoil: Spoil)] = [
      ("name", .null, { $0.set(\.name, to: nil) }),
      (nil, nil, { $0.set(\.weight, to: -1) }),
      ("weight", .real(.nan), { $0.set(\.weight, to: .nan) }),
      ("name", .text("taken"), { $0.set(\.name, to: "taken") }),
    ]
    for fault in faults {
      let (path, context) = try await parts()
      try TestDatabase.make(in: directory, "INSERT INTO parts VALUES (1000, 'taken', 0)")
      let error = #expect(throws: BatchError.self) {
        try insert(in: context) { number, row in if number == bad { fault.spoil(&row) } }
      }
      let stay = bad / 10 * 10
      let failure = try #require(error?.insertFailure)
      #expect(failure.index == bad)
      #expect(failure.committed == stay)
      #expect(failure.property == fault.property)
      #expect("\(failure.value, default: "none")" == "\(fault.value, default: "none")")
      #expect(failure.cause.code == error?.code)
      let text = error?.description ?? ""
      #expect(text.hasPrefix("row \(bad + 1) of Part: "), "\(text)")
      #expect(
        text.contains(stay == 0 ? "no row was written" : "; \(stay) rows are done"),
        "\(text)"
      )
      if let property = fault.property, let value = fault.value {
        #expect(text.contains("(\(property) is \(value.debugDescription))"), "\(text)")
      }
      #expect(
        try TestDatabase.texts(path, "SELECT count(*) FROM parts WHERE number < 1000")
          == ["\(stay)"]
      )
      try TestDatabase.make(in: directory, "DROP TABLE parts")
    }
  }

  @Test func `each transaction is told, and the error of the closure leaves the earlier ones`()
    async throws
  {
    struct Refusal: Error {}
    let (path, context) = try await parts()
    var told: [Int] = []
    #expect(throws: Refusal.self) {
      try insert(in: context, onCommit: { told.append($0) }) { number, _ in
        if number == 23 { throw Refusal() }
      }
    }
    #expect(told == [10, 20])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM parts") == ["20"])
    told = []
    try TestDatabase.make(in: directory, "DELETE FROM parts")
    #expect(try insert(in: context, onCommit: { told.append($0) }, { _, _ in }).count == 25)
    #expect(told == [10, 20, 25])
  }

  @Test func `the cancellation of the task ends an insertion between two transactions`()
    async throws
  {
    let (path, context) = try await parts()
    let error = #expect(throws: BatchError.self) {
      try insert(in: context) { number, _ in
        if number == 13 { withUnsafeCurrentTask { unsafe $0?.cancel() } }
      }
    }
    #expect(error?.code == .interrupted)
    #expect(error?.insertFailure?.index == nil)
    #expect(error?.insertFailure?.committed == 20)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM parts") == ["20"])
  }

  @Test(arguments: [1, 2, 100]) func `a trigger may insert into the same table`(
    chunkSize: Int
  ) async throws {
    for resolution in [BatchInsertRequest<Part>.Conflict.error, .ignore, .update] {
      let (path, context) = try await parts()
      try TestDatabase.make(
        in: directory,
        """
        CREATE TRIGGER copies AFTER INSERT ON parts WHEN NEW.name NOT LIKE 'x%'
        BEGIN INSERT INTO parts (name) VALUES ('x' || NEW.name); END
        """
      )
      var request = BatchInsertRequest<Part>(["a", "b", "c", "d"]) { name, row in
        row.set(\.name, to: name)
      }
      request.chunkSize = chunkSize
      request.conflict = resolution
      #expect(try context.execute(request).count == 4)
      #expect(
        try TestDatabase.texts(
          path,
          "SELECT group_concat(name) FROM (SELECT name FROM parts ORDER BY name)"
        )
          == ["a,b,c,d,xa,xb,xc,xd"]
      )
      try TestDatabase.make(in: directory, "DROP TABLE parts")
    }
  }

  @Test func `a chunk also ends after 16 MB`() async throws {
    let (path, context) = try await parts()
    var told: [Int] = []
    let megabyte = String(repeating: "x", count: 1 << 20)
    var request = BatchInsertRequest<Part>(0..<40) { number, row in
      row.set(\.name, to: "\(number)\(megabyte)")
      row.set(\.weight, to: 1)
    }
    request.onCommit = { told.append($0) }
    try context.execute(request)
    #expect(told == [16, 32, 40])
    #expect(try TestDatabase.texts(path, "SELECT max(number) FROM parts") == ["40"])
  }

  @Test(arguments: 0..<40) func `rows of any shape are as if inserted one by one`(seed: Int)
    async throws
  {
    typealias Resolution = BatchInsertRequest<Part>.Conflict
    var random = SeededGenerator(seed: UInt64(seed))
    let resolution = [Resolution.ignore, .update].randomElement(using: &random) ?? .ignore
    let chunkSize = Int.random(in: 1...9, using: &random)
    // Each row sets some properties in some order, some of them twice. Parts with a number of their
    // own have negative ones, so that no assigned number is theirs.
    struct Setting { let property: String, weight: Double }
    let rows = (0..<80).map { _ in
      let part = Int.random(in: -9...9, using: &random)
      let properties =
        ["name"] + (part < 0 ? ["number"] : [])
        + ["name", "weight", "weight"].filter { _ in Bool.random(using: &random) }
      let settings = properties.shuffled(using: &random).map {
        Setting(property: $0, weight: Double(Int.random(in: 0..<100, using: &random)))
      }
      return (part, settings)
    }
    let (path, context) = try await parts()
    var request = BatchInsertRequest<Part>(rows) { given, row in
      let (part, settings) = given
      for setting in settings {
        switch setting.property {
        case "number": row.set(\.number, to: part)
        case "name": row.set(\.name, to: "part \(part)")
        default: row.set(\.weight, to: setting.weight)
        }
      }
    }
    request.conflict = resolution
    request.chunkSize = chunkSize
    let result = try context.execute(request)

    var weights: [String: Double?] = [:]
    var count = 0
    for (part, settings) in rows {
      let weight = settings.last { $0.property == "weight" }?.weight
      let name = part < 0 ? "\(part) part \(part)" : "+ part \(part)"
      if weights[name] == nil {
        weights[name] = .some(weight)
        count += 1
      } else if case .update = resolution {
        if let weight { weights[name] = .some(weight) }
        count += 1
      }
    }
    #expect(result.count == count, "seed \(seed), \(resolution), chunks of \(chunkSize)")
    #expect(
      try TestDatabase.texts(
        path,
        """
        SELECT iif(number < 0, number, '+') || ' ' || name || ' ' || coalesce(weight, 'none')
        FROM parts
        """
      ).sorted() == weights.map { "\($0) \($1.map { "\($0)" } ?? "none")" }.sorted(),
      "seed \(seed), \(resolution), chunks of \(chunkSize)"
    )
  }
}
