import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Saves of many objects, which become one statement: what the objects say afterwards is what the rows
/// are.
@Suite struct SaveInSetsTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func container(_ schema: String...) async throws -> ModelContainer {
    var path = ""
    for statement in schema { path = try TestDatabase.make(in: directory, statement) }
    return try await ModelContainer(configurations: ModelConfiguration(path: path))
  }

  private static let values: [SQLValue] = [
    .null, .integer(5), .integer(.max), .real(5), .real(5.5), .real(-0.0), .real(1e300), .text(""),
    .text("5"), .text("5.0"), .text("0x10"), .text(" 7 "), .text("é"), .text("a\0b"), .blob([]),
    .blob([0, 255]),
  ]

  /// The values of all columns of all objects, by what they say.
  private func said(_ objects: [ManagedObject], _ columns: [String]) -> [[SQLValue]] {
    objects.map { object in columns.map { object[$0] } }
  }

  private func objects(
    _ context: ModelContext,
    _ entity: String
  ) throws -> [ManagedObject] {
    try context.fetch(FetchRequest(entity: entity)).sorted {
      $0.persistentModelID < $1.persistentModelID
    }
  }

  @Test func `a saved value has its column's conversion without being read again`() async throws {
    let types = ["INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "", "VARCHAR(3)", "DOUBLE", "ANY"]
    let columns = types.indices.map { "c\($0)" }
    let declared = zip(columns, types).map { "\($0) \($1)" }.joined(separator: ", ")
    let container = try await container("CREATE TABLE t(id INTEGER PRIMARY KEY, \(declared))")
    let context = ModelContext(container)
    let new = try Self.values.map { value in
      let object = try context.insertNewObject(ofEntity: "t")
      for column in columns { object[column] = value }
      return object
    }
    try context.save()
    #expect(said(new, columns) == said(try objects(ModelContext(container), "t"), columns))
    // Each object gets the value of the next one.
    for (object, value) in zip(new, Self.values.dropFirst() + [.integer(1)]) {
      for column in columns { object[column] = value }
    }
    try context.save()
    #expect(said(new, columns) == said(try objects(ModelContext(container), "t"), columns))
  }

  @Test func `a saved object includes defaults, generated columns and triggers`() async throws {
    let container = try await container(
      """
      CREATE TABLE t(
        id INTEGER PRIMARY KEY, n INTEGER DEFAULT 7, double AS (n * 2), note TEXT DEFAULT 'new'
      )
      """,
      "CREATE TABLE u(id INTEGER PRIMARY KEY, n INTEGER, note TEXT)",
      """
      CREATE TRIGGER u_insert AFTER INSERT ON u BEGIN
        UPDATE u SET note = 'inserted' WHERE id = new.id;
      END
      """,
      """
      CREATE TRIGGER u_update AFTER UPDATE OF n ON u BEGIN
        UPDATE u SET note = 'updated to ' || new.n WHERE id = new.id;
      END
      """
    )
    let context = ModelContext(container)
    for entity in ["t", "u"] {
      let columns = entity == "t" ? ["n", "double", "note"] : ["n", "note"]
      let new = try (0..<5).map { number in
        let object = try context.insertNewObject(ofEntity: entity)
        if number % 2 == 0 { object["n"] = .integer(Int64(number)) }
        return object
      }
      try context.save()
      #expect(said(new, columns) == said(try objects(ModelContext(container), entity), columns))
      for (number, object) in new.enumerated() { object["n"] = .integer(Int64(100 + number)) }
      try context.save()
      #expect(said(new, columns) == said(try objects(ModelContext(container), entity), columns))
      #expect(new[3]["n"] == .integer(103))
    }
  }

  @Test func `a save of many objects finds the one that another connection has changed`()
    async throws
  {
    let container = try await container(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT)",
      "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 3, 'x'), (9, 9, 'x'), (1000, 4, 'x')"
    )
    let path = container.stores[0].path
    for isDeletion in [false, true] {
      let context = ModelContext(container)
      let all = try objects(context, "t")
      try Connection(path: path).execute("UPDATE t SET b = b || 'y' WHERE id = 9")
      for object in all {
        if isDeletion { context.delete(object) } else { object["a"] = .integer(50) }
      }
      let error = #expect(throws: BatchError.self) { try context.save() }
      #expect(error?.code == .mergeConflict)
      let conflicts = try #require(error?.underlying as? MergeConflicts).conflicts
      #expect(conflicts.map(\.identifier.key?.description) == ["9"])
      #expect(try TestDatabase.texts(path, "SELECT count(*) FROM t WHERE a < 50") == ["5"])
      context.mergePolicy = .mergeByPropertyObjectTrump
      try context.save()
      let left = isDeletion ? "SELECT count(*) = 0 FROM t" : "SELECT min(a) = 50 FROM t"
      #expect(try TestDatabase.texts(path, left) == ["1"])
      if !isDeletion { try Connection(path: path).execute("UPDATE t SET a = 1") }
    }
  }

  @Test func `two objects of one row that are changed in one save conflict`() async throws {
    let context = ModelContext(
      try await Family.open(rows: "INSERT INTO badges VALUES (1, 1, 0, NULL);")
    )
    let badge = try #require(try context.fetch(FetchDescriptor<Badge>()).first)
    let alias = Badge(1)
    context.insert(alias)
    try context.save()
    #expect(alias !== badge && alias.persistentModelID == badge.persistentModelID)
    badge.label = 1
    alias.label = 2
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .mergeConflict && badge.isUpdated && alias.isUpdated)
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(try ModelContext(context.container).fetch(FetchDescriptor<Badge>()).map(\.label) == [2])
  }

  @Test func `custom SQL is part of the save and cannot end it`() async throws {
    let container = try await container(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER)",
      "CREATE TABLE total(n INTEGER CHECK (n < 10))",
      "INSERT INTO total VALUES (0)"
    )
    let path = container.stores[0].path
    let context = ModelContext(container)
    func save(_ sql: String, _ value: Int64? = nil) throws {
      _ = try context.insertNewObject(ofEntity: "t")
      if let value {
        try context.executeOnSave(sql, .integer(value))
      } else {
        try context.executeOnSave(sql)
      }
      #expect(context.hasChanges)
      try context.save()
      #expect(!context.hasChanges)
    }
    try save("UPDATE total SET n = n + ?", 3)
    #expect(try TestDatabase.texts(path, "SELECT n FROM total") == ["3"])
    for (sql, code) in [
      ("UPDATE total SET n = n + 8", BatchError.Code.constraint), ("COMMIT", .invalidSQL),
      ("/* a */ ROLLBACK", .invalidSQL), ("RELEASE _batch_part", .invalidSQL),
      ("PRAGMA journal_mode = DELETE", .invalidSQL), ("UPDATE nowhere SET n = 1", .invalidSQL),
      ("UPDATE total SET n = ?", .invalidSQL), ("DELETE FROM t; DELETE FROM total", .invalidSQL),
    ] {
      let error = #expect(throws: BatchError.self) { try save(sql) }
      #expect(error?.code == code, "\(sql)")
      context.rollback()
    }
    #expect(
      try TestDatabase.texts(path, "SELECT (SELECT n FROM total), (SELECT count(*) FROM t)") == [
        "3"
      ]
    )
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM t") == ["1"])
  }

  @Test func `foreign keys without an index are reported`() async throws {
    let container = try await container(
      "CREATE TABLE owner(id INTEGER PRIMARY KEY)",
      "CREATE TABLE pet(id INTEGER PRIMARY KEY, owner_id REFERENCES owner, vet_id REFERENCES owner)",
      "CREATE INDEX pet_vet ON pet(vet_id, id)",
      "CREATE TABLE passport(owner_id INTEGER PRIMARY KEY REFERENCES owner)"
    )
    let keys = try await container.stores[0].unindexedForeignKeys()
    #expect(keys.map(\.table) == ["pet"] && keys.map(\.column) == ["owner_id"])
    #expect(keys.first?.destination == "owner")
    #expect(
      keys.first?.description.contains("pet.owner_id refers to owner and has no index") == true
    )
  }
}
