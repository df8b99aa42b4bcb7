import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation

/// A class with an attribute of each type, in a table without constraints.
final class Sample: ManagedObject, PersistentModel {
  enum Color: String, Codable { case red, green, blue }
  struct Tags: Codable, Equatable { var names: [String] }

  static let mapping = ModelMapping(
    Sample.self,
    entity: "Sample",
    table: "samples",
    properties: [
      .attribute("int", \.int),
      .attribute("optionalInt", \.optionalInt),
      .attribute("small", \.small),
      .attribute("double", \.double),
      .attribute("optionalDouble", \.optionalDouble),
      .attribute("float", \.float),
      .attribute("flag", \.flag),
      .attribute("optionalFlag", \.optionalFlag),
      .attribute("text", \.text),
      .attribute("optionalText", \.optionalText),
      .attribute("data", \.data),
      .attribute("uuid", \.uuid),
      .attribute("iso", \.iso, as: .iso8601),
      .attribute("unix", \.unix, as: .unixSeconds),
      .attribute("reference", \.reference, as: .referenceSeconds),
      .attribute("decimal", \.decimal),
      .attribute("color", \.color, as: .raw(placeholder: .red)),
      .attribute("optionalColor", \.optionalColor, as: .raw(placeholder: .red)),
      .attribute("tags", \.tags, as: .json(placeholder: Tags(names: []))),
    ]
  )

  var int: Int { self[\.int] }
  var optionalInt: Int? { self[\.optionalInt] }
  var small: Int8 { self[\.small] }
  var double: Double { self[\.double] }
  var optionalDouble: Double? { self[\.optionalDouble] }
  var float: Float { self[\.float] }
  var flag: Bool { self[\.flag] }
  var optionalFlag: Bool? { self[\.optionalFlag] }
  var text: String { self[\.text] }
  var optionalText: String? { self[\.optionalText] }
  var data: Data { self[\.data] }
  var uuid: UUID { self[\.uuid] }
  var iso: Date { self[\.iso] }
  var unix: Date? { self[\.unix] }
  var reference: Date { self[\.reference] }
  var decimal: Decimal { self[\.decimal] }
  var color: Color { self[\.color] }
  var optionalColor: Color? { self[\.optionalColor] }
  var tags: Tags { self[\.tags] }
  var notRegistered: Int { int * 2 }
}

/// Values that sit at the edges of what SQLite and Swift agree on.
enum Edges {
  static let integers: [Int] = [0, 1, -1, 2, 3, 7, 42, -42, .max, .min, .max - 1, 1 << 53]
  static let doubles: [Double] = [
    0, -0.0, 1, -1, 0.5, 1.5, 3, .infinity, -.infinity, .greatestFiniteMagnitude,
    .leastNonzeroMagnitude, 0.1, 0.30000000000000004, 9_007_199_254_740_992,
  ]
  static let texts: [String] = [
    "", "a", "A", "b", "ab", "abc", "aB", "K", "\u{212A}", ";", "\u{37E}", "`", "\u{1FEF}",
    "e\u{301}", "\u{E9}", "\u{E9}a", "e\u{301}a", "a\u{301}\u{323}", "a\u{323}\u{301}",
    "\u{1E9B}\u{323}",
    "a\u{0}b", "\u{0}", "\r\n", "\r", "a\r\n", "ß", "SS", "Å", "A\u{30A}", "\u{212B}", "👨‍👩‍👧", "👩",
    "%", "_", "a%", "é", "\u{FB01}", "fi", "z", "Z", "ä", "한", "\u{1112}\u{1161}\u{11AB}", "'",
    "\"",
  ]
  static let seconds: [Double] = [
    0, 1, -1, 0.5, 978_307_200, 1_700_000_000.123456, 1e9, -978_307_200.25, 4e9, 1e17,
  ]
}

enum Samples {
  static let schema = """
    CREATE TABLE samples (id INTEGER PRIMARY KEY, int INTEGER, optionalInt INTEGER, small INTEGER,
      double REAL, optionalDouble REAL, float REAL, flag INTEGER, optionalFlag INTEGER,
      text TEXT, optionalText TEXT COLLATE NOCASE, data BLOB, uuid, iso TEXT, unix REAL,
      reference REAL, decimal TEXT, color TEXT, optionalColor TEXT, tags TEXT)
    """

  /// Creates a database of random rows.
  static func make(
    _ count: Int,
    in directory: TemporaryDirectory,
    with generator: inout SeededGenerator
  ) throws -> String {
    let path = try TestDatabase.make(in: directory, schema)
    let connection = try Connection(path: path)
    try connection.execute("BEGIN")
    for id in 1...count {
      try connection.execute(
        "INSERT INTO samples VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        .integer(Int64(id)),
        .integer(Int64(integer(&generator))),
        optional(.integer(Int64(integer(&generator))), &generator),
        .integer(Int64(Int8.random(in: .min ... .max, using: &generator))),
        .real(pick(Edges.doubles, &generator)),
        optional(.real(pick(Edges.doubles, &generator)), &generator),
        .real(pick([0, 0.1, 0.5, -1, .infinity], &generator)),
        .integer(Bool.random(using: &generator) ? 1 : 0),
        optional(.integer(Bool.random(using: &generator) ? 1 : 0), &generator),
        .text(pick(Edges.texts, &generator)),
        optional(.text(pick(Edges.texts, &generator)), &generator),
        .blob(pick([[], [0], [1], [1, 2], [255]], &generator)),
        uuid(&generator),
        .text(
          pick(
            [
              "2026-11-21T15:05:00Z", "2026-11-21T16:05:00+01:00", "2026-11-21T15:05:00.250Z",
              "2001-01-01T00:00:00Z",
            ],
            &generator
          )
        ),
        optional(.real(pick(Edges.seconds, &generator)), &generator),
        .real(pick(Edges.seconds, &generator)),
        pick([.text("1.0"), .text("1.00"), .integer(1), .text("-3.25"), .text("2")], &generator),
        .text(pick(["red", "green", "blue"], &generator)),
        optional(.text(pick(["red", "green"], &generator)), &generator),
        .text(
          pick(
            ["{\"names\":[]}", "{\"names\":[\"a\",\"b\"]}", "{ \"names\" : [\"a\"] }"],
            &generator
          )
        )
      )
    }
    try connection.execute("COMMIT")
    return path
  }

  static let uuids = [
    "6E5D1507-3E60-41F0-A5F7-C1F28DC63F40", "0E5D1507-3E60-41F0-A5F7-C1F28DC63F40",
    "FE5D1507-3E60-41F0-A5F7-C1F28DC63F40",
  ].compactMap(UUID.init)

  static func open(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(for: Sample.self, configurations: ModelConfiguration(path: path))
  }

  private static func pick<Value>(
    _ values: [Value],
    _ generator: inout SeededGenerator
  ) -> Value {
    values[Int.random(in: values.indices, using: &generator)]
  }

  private static func integer(_ generator: inout SeededGenerator) -> Int {
    Bool.random(using: &generator)
      ? pick(Edges.integers, &generator)
      : Int.random(in: -10...10, using: &generator)
  }

  private static func optional(
    _ value: SQLValue,
    _ generator: inout SeededGenerator
  ) -> SQLValue {
    Int.random(in: 0..<3, using: &generator) == 0 ? .null : value
  }

  private static func uuid(_ generator: inout SeededGenerator) -> SQLValue {
    let uuid = pick(uuids, &generator)
    return switch Int.random(in: 0..<3, using: &generator) {
    case 0: .text(uuid.uuidString)
    case 1: .text(uuid.uuidString.lowercased())
    default: .blob(withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) })
    }
  }
}
