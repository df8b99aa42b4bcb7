import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class whose keys are two columns, and one whose keys are texts.
final class Seat: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Seat.self,
    entity: "Seat",
    table: "seats",
    properties: [.attribute("row", \.row), .attribute("isTaken", \.isTaken)]
  )
  var row: String { self[\.row] }
  var isTaken: Bool { self[\.isTaken] }
}

final class Word: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Word.self,
    entity: "Word",
    table: "words",
    properties: [.attribute("text", \.text)]
  )
  var text: String { self[\.text] }
}

@Suite struct PredicateSQLTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `the list of characters equal to ASCII ones is complete`() {
    // What `SwiftCollation.texts(equalTo:)` relies on.
    let ascii = Set((UInt8(0)..<0x80).map { Character(Unicode.Scalar($0)) })
    var equal: [Character: UInt32] = [:]
    for scalar in (UInt32(0x80)...0x10FFFF).lazy.compactMap(Unicode.Scalar.init) {
      if let index = ascii.firstIndex(of: Character(scalar)) { equal[ascii[index]] = scalar.value }
    }
    #expect(equal == [";": 0x37E, "`": 0x1FEF, "K": 0x212A])
  }

  @Test func `a predicate over a million identifiers selects their rows`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
      INSERT INTO words SELECT i * 1000, 'w' || i FROM c
      """,
      "INSERT INTO words VALUES (-9223372036854775808, 'least'), (9223372036854775807, 'most')"
    )
    let container = try await ModelContainer(
      for: Word.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    var builder = IdentifierListBuilder(
      storeIdentifier: container.stores[0].identity.uuid,
      entityName: "Word",
      keyKind: .integer
    )
    builder.append(Int64.min)
    for key in Int64(1)...1_000_000 { builder.append(key) }
    builder.append(Int64.max)
    let list = builder.finish()
    let descriptor = FetchDescriptor<Word>(
      predicate: #Predicate { list.contains($0.persistentModelID) }
    )
    #expect(try context.fetchCount(descriptor) == 1_002)
    let others = FetchDescriptor<Word>(
      predicate: #Predicate { !list.contains($0.persistentModelID) || $0.text == "w7" }
    )
    #expect(try context.fetch(others).map(\.text) == ["w7"])
  }

  @Test(arguments: [0, 10, 500, 100_001])
  func `a predicate finds composite and text keys byte by byte`(_ count: Int) async throws {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE seats (hall TEXT COLLATE NOCASE, number, row TEXT, isTaken INTEGER,
        PRIMARY KEY (hall, number)) WITHOUT ROWID
      """,
      "INSERT INTO seats VALUES ('A', 1, 'x', 0), ('a', 2, 'x', 1), ('A', 3.0, 'y', 1)",
      "CREATE TABLE words (word TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID",
      "INSERT INTO words VALUES ('é', 'one'), ('e\u{301}', 'two'), ('a' || char(0), 'three')"
    )
    let container = try await ModelContainer(
      for: Seat.self,
      Word.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let store = container.stores[0].identity.uuid
    func identifier(_ entity: String, _ components: KeyComponent...) -> PersistentIdentifier {
      PersistentIdentifier(
        storeIdentifier: store,
        entityName: entity,
        key: .encoded(EncodedKey(components))
      )
    }
    let seats =
      [
        identifier("Seat", .text("A"), .integer(1)), identifier("Seat", .text("A"), .integer(2)),
        identifier("Seat", .text("A"), .integer(3)), identifier("Seat", .text("A"), .real(3)),
        identifier("Seat", .text("A")),
      ] + (0..<count).map { identifier("Seat", .text("none"), .integer(Int64($0))) }
    let seatsFound = FetchDescriptor<Seat>(
      predicate: #Predicate { seats.contains($0.persistentModelID) }
    )
    let found = try context.fetchIdentifiers(seatsFound)
    #expect(found == [seats[0], seats[3]])

    let words =
      [identifier("Word", .text("e\u{301}")), identifier("Word", .text("a\u{0}"))]
      + (0..<count).map { identifier("Word", .text("none \($0)")) }
    let wordsFound = FetchDescriptor<Word>(
      predicate: #Predicate { words.contains($0.persistentModelID) },
      sortBy: [.forward(\.text)]
    )
    #expect(try context.fetch(wordsFound).map(\.text) == ["three", "two"])
    let list = try context.fetchIdentifierList(wordsFound)
    let again = FetchDescriptor<Word>(
      predicate: #Predicate { list.contains($0.persistentModelID) && $0.text != "two" }
    )
    #expect(try context.fetch(again).map(\.text) == ["three"])
  }

  @Test(arguments: [1, 2, 3, 100, 100_001])
  func `a predicate looks identifiers up by key, in any order and collation`(_ count: Int)
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE words (word TEXT PRIMARY KEY COLLATE NOCASE, text TEXT)",
      """
      CREATE TABLE seats (hall TEXT, number INTEGER, row TEXT, isTaken INTEGER,
        PRIMARY KEY (hall, number)) WITHOUT ROWID
      """,
      "CREATE TABLE cars (id INTEGER PRIMARY KEY, kind INTEGER, maker TEXT, top_speed INTEGER)",
      "CREATE INDEX by_maker ON cars (maker)",
      "CREATE INDEX by_text ON words (text)"
    )
    let container = try await ModelContainer(
      for: Word.self,
      Seat.self,
      Car.self,
      SportCar.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let store = container.stores[0].identity.uuid
    func identifiers(_ entity: String, _ key: (Int) -> PrimaryKey) -> [PersistentIdentifier] {
      (0..<count).map {
        PersistentIdentifier(storeIdentifier: store, entityName: entity, key: key($0))
      }
    }
    func isSearched<Model: PersistentModel>(_ descriptor: FetchDescriptor<Model>) throws -> Bool {
      var all = descriptor
      all.sortBy = []
      return try [descriptor, all].allSatisfy { descriptor in
        let plan = try context.explain(descriptor).steps
        return plan.contains { $0.hasPrefix("SEARCH") }
          && !plan.contains { $0.hasPrefix("SCAN words") || $0.hasPrefix("SCAN seats") }
          && !plan.contains { $0.hasPrefix("SCAN cars") }
      }
    }
    let words = identifiers("Word") { .encoded(EncodedKey([.text("w\($0)")])) }
    let someWords = FetchDescriptor<Word>(
      predicate: #Predicate { words.contains($0.persistentModelID) },
      sortBy: [.forward(\.text)]
    )
    // More than most tables have rows.
    #expect(try isSearched(someWords) == (count <= 100_000))
    let seats = identifiers("Seat") { .encoded(EncodedKey([.text("h"), .integer(Int64($0))])) }
    let someSeats = FetchDescriptor<Seat>(
      predicate: #Predicate { seats.contains($0.persistentModelID) },
      sortBy: [.forward(\.row)]
    )
    #expect(try isSearched(someSeats) == (count <= 100_000))
    // Any number of rowids is looked up, also among the rows of other entities.
    let cars = identifiers("SportCar") { .integer(Int64($0)) }
    let someCars = FetchDescriptor<Car>(
      predicate: #Predicate { cars.contains($0.persistentModelID) },
      sortBy: [.forward(\.maker)]
    )
    #expect(try isSearched(someCars))
    let none: [PersistentIdentifier] = []
    let someOrNone = FetchDescriptor<Car>(
      predicate: #Predicate {
        none.contains($0.persistentModelID) || cars.contains($0.persistentModelID)
      }
    )
    #expect(try isSearched(someOrNone))
  }

  @Test func `distinct texts are compared by their bytes, whatever the column's collation`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT COLLATE NOCASE)",
      "INSERT INTO words (text) VALUES ('a'), ('A'), ('a'), (NULL), (NULL)"
    )
    let container = try await ModelContainer(
      for: Word.self,
      configurations: ModelConfiguration(path: path)
    )
    let rows = try ModelContext(container).fetchProperties(FetchDescriptor<Word>(), distinct: true)
    #expect(Set(rows.map { $0.values["text"] }) == [.text("a"), .text("A"), .null])
    #expect(rows.count == 3)
  }

  @Test func `objects are sorted as Swift sorts their values, with nil first`() async throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let path = try Samples.make(200, in: directory, with: &generator)
    let context = ModelContext(try await Samples.open(path))
    func check<Value: Comparable & SendableMetatype>(
      _ property: any KeyPath<Sample, Value> & Sendable,
      _ isLess: (Value, Value) -> Bool = { $0 < $1 }
    ) throws {
      let up = try context.fetch(FetchDescriptor<Sample>(sortBy: [.forward(property)]))
      let down = try context.fetch(FetchDescriptor<Sample>(sortBy: [.reverse(property)]))
      #expect(up.count == 200 && down.count == 200)
      for (first, second) in zip(up, up.dropFirst()) {
        let (left, right) = (first[keyPath: property], second[keyPath: property])
        #expect(!isLess(right, left), "seed \(seed)")
        if left == right { #expect(first.persistentModelID < second.persistentModelID) }
      }
      for (first, second) in zip(down, down.dropFirst()) {
        #expect(!isLess(first[keyPath: property], second[keyPath: property]), "seed \(seed)")
      }
    }
    try check(\.int)
    try check(\.double)
    try check(\.float)
    try check(\.text)
    try check(\.uuid)
    try check(\.iso)
    try check(\.reference)
    let optional = try context.fetch(
      FetchDescriptor<Sample>(sortBy: [.forward(\.optionalInt), .reverse(\.text)])
    )
    let nils = optional.prefix { $0.optionalInt == nil }.count
    #expect(optional.dropFirst(nils).allSatisfy { $0.optionalInt != nil })
    #expect(nils > 0)
    try check(\.decimal)
  }

  @Test func `comparisons with constants use indices`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      Samples.schema,
      "CREATE INDEX by_int ON samples (int)",
      "CREATE INDEX by_optional ON samples (optionalInt)",
      "CREATE INDEX by_text ON samples (text)",
      "CREATE INDEX by_reference ON samples (reference)",
      "CREATE INDEX by_uuid ON samples (uuid)",
      "CREATE INDEX by_color ON samples (color)",
      "CREATE INDEX by_optional_color ON samples (optionalColor)",
      "CREATE INDEX by_unix ON samples (unix)"
    )
    let container = try await Samples.open(path)
    func plan(_ predicate: Predicate<Sample>) throws -> String {
      let descriptor = FetchDescriptor(predicate: predicate)
      return try ModelContext(container).explain(descriptor).steps.joined(separator: "; ")
    }
    let date = Date(timeIntervalSinceReferenceDate: 0)
    let early = Date(timeIntervalSince1970: 0)
    let integers = [1, 2, 3]
    let texts = ["a", "b"]
    #expect(try plan(#Predicate { $0.int == 3 }).contains("by_int (int=?)"))
    #expect(try plan(#Predicate { $0.int > 3 && $0.int < 9 }).contains("by_int (int>? AND int<?)"))
    #expect(try plan(#Predicate { (3..<9).contains($0.int) }).contains("(int>? AND int<?)"))
    #expect(try plan(#Predicate { integers.contains($0.int) }).contains("by_int (int=?)"))
    #expect(try plan(#Predicate { $0.int == 2 * 50 }).contains("by_int (int=?)"))
    #expect(try plan(#Predicate { $0.int == 3 && $0.int / $0.int == 1 }).contains("(int=?)"))
    #expect(try plan(#Predicate { $0.optionalInt == nil }).contains("(optionalInt=?)"))
    #expect(
      try plan(
        #Predicate { if let number = $0.optionalInt { number > 3 && number < 9 } else { false } }
      )
      .contains("by_optional (optionalInt>? AND optionalInt<?)")
    )
    #expect(try plan(#Predicate { $0.text == "abc" }).contains("by_text (text=?)"))
    #expect(try plan(#Predicate { texts.contains($0.text) }).contains("by_text (text=?)"))
    #expect(try plan(#Predicate { $0.reference == date }).contains("by_reference (reference=?)"))
    // The Kelvin sign is equal to it, and in another place of the index.
    #expect(try plan(#Predicate { $0.text == "K" }).contains("by_text (text=?)"))
    #expect(try plan(#Predicate { $0.text == "KK;`K" }).contains("SCAN samples"))
    let (uuid, uuids) = (Samples.uuids[0], Samples.uuids)
    #expect(try plan(#Predicate { $0.uuid == uuid }).contains("by_uuid (uuid=?)"))
    #expect(try plan(#Predicate { uuid == $0.uuid }).contains("by_uuid (uuid=?)"))
    #expect(try plan(#Predicate { uuids.contains($0.uuid) }).contains("by_uuid (uuid=?)"))
    let (red, some) = (Sample.Color.red, [Sample.Color.red, .blue])
    let none: Sample.Color? = nil
    #expect(try plan(#Predicate { $0.color == red }).contains("by_color (color=?)"))
    #expect(try plan(#Predicate { some.contains($0.color) }).contains("by_color (color=?)"))
    #expect(try plan(#Predicate { $0.optionalColor == red }).contains("(optionalColor=?)"))
    #expect(try plan(#Predicate { $0.optionalColor == none }).contains("(optionalColor=?)"))
    #expect(try plan(#Predicate { $0.unix == date }).contains("(unix>? AND unix<?)"))
    #expect(
      try plan(#Predicate { if let at = $0.unix { at < date && at > early } else { false } })
        .contains("by_unix (unix>? AND unix<?)")
    )
  }
}
