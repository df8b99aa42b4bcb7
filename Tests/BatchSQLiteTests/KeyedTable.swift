import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport

/// A table `t` of random rows, identified in one of all the ways there are.
///
/// In addition to its key it has the columns `n INTEGER`, `r`, `s TEXT` and the generated `g`.
enum KeyedTable: String, CaseIterable, Sendable {
  case rowID, descending, integer, text, blob, composite, withoutRowID, clustered, unique, caseless

  var columns: [String] {
    switch self {
    case .composite, .clustered: ["b", "a key"]
    default: ["id"]
    }
  }

  private var definition: String {
    switch self {
    case .rowID: "id INTEGER PRIMARY KEY, %"
    case .descending: "id INTEGER PRIMARY KEY DESC, %"
    case .integer: "id INT PRIMARY KEY, %"
    case .text: "%, id TEXT PRIMARY KEY"
    case .blob: "id BLOB PRIMARY KEY, %"
    case .composite: "\"a key\" TEXT, %, b INTEGER, PRIMARY KEY (b, \"a key\")"
    case .withoutRowID: "id NOT NULL, %, PRIMARY KEY (id)"
    case .clustered: "\"a key\" TEXT COLLATE NOCASE, %, b INTEGER, PRIMARY KEY (b, \"a key\")"
    case .unique: "%, id REAL NOT NULL UNIQUE"
    case .caseless: "id TEXT NOT NULL COLLATE NOCASE, %"
    }
  }

  /// Creates the empty table, and tables beside it that must not change.
  func make(in directory: TemporaryDirectory) throws -> String {
    let path = try TestDatabase.make(in: directory)
    let connection = try Connection(path: path)
    let columns = "n INTEGER, r, s TEXT, g AS (n * 2)"
    try connection.execute(
      "CREATE TABLE t (\(definition.replacing("%", with: columns)))"
        + ([.withoutRowID, .clustered].contains(self) ? " WITHOUT ROWID" : "")
    )
    // An index in which the rows of a chunk do not come in the order of their keys.
    if [.rowID, .clustered].contains(self) { try connection.execute("CREATE INDEX by_s ON t (s)") }
    if self == .caseless {
      try connection.execute("CREATE UNIQUE INDEX i ON t (id COLLATE BINARY)")
    }
    return path
  }

  /// A key from a domain so small that keys come again.
  func randomKey(using random: inout SeededGenerator) -> [SQLValue] {
    let integers: [Int64] = [.min, .min + 1, .max, .max - 1, -1, 0, 1]
    func integer() -> Int64 {
      Int.random(in: 0..<8, using: &random) == 0
        ? integers.randomElement(using: &random) ?? 0 : .random(in: -60...60, using: &random)
    }
    func text() -> String {
      let parts = ["a", "A", "b", "é", "e\u{301}", "", "0", "\0", "x y", "'", "\"", "🧵"]
      return (0..<3).map { _ in parts.randomElement(using: &random) ?? "" }.joined()
    }
    func bytes() -> [UInt8] {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        [0, 1, 0x61, 0x80, 0xff].randomElement(using: &random) ?? 0
      }
    }
    switch self {
    case .rowID, .descending: return [.integer(integer())]
    case .text, .caseless: return [.text(text())]
    case .blob: return [.blob(bytes())]
    case .unique: return [.real(Double(integer()) / 4)]
    case .composite, .clustered: return [.integer(integer() / 20), .text(text())]
    case .integer, .withoutRowID:
      switch Int.random(in: 0..<10, using: &random) {
      case 0: return [.text(text())]
      case 1: return [.real(Double(integer()) + 0.5)]
      case 2: return [.blob(bytes())]
      default: return [.integer(integer())]
      }
    }
  }

  /// A statement that inserts random rows unless their keys are taken, and its values.
  func insertion(using random: inout SeededGenerator) -> (sql: String, values: [SQLValue]) {
    let names = columns.map { "\"\($0)\"" }.joined(separator: ", ")
    let places = columns.map { _ in "?" }.joined(separator: ", ")
    let mixed: [SQLValue] = [.null, .real(0.5), .text("0.5"), .text("x"), .blob([1]), .integer(1)]
    let values: [SQLValue] = [
      Int.random(in: 0..<9, using: &random) == 0
        ? .null : .integer(.random(in: 0..<10, using: &random)),
      mixed.randomElement(using: &random) ?? .null,
      .text("s\(Int.random(in: 0..<5, using: &random))"),
    ]
    return (
      "INSERT OR IGNORE INTO t (\(names), n, r, s) VALUES (\(places), ?, ?, ?)",
      randomKey(using: &random) + values
    )
  }

  /// A condition over other columns than the key, and values for its parameters.
  static func condition(
    using random: inout SeededGenerator
  ) -> (sql: String, parameters: [String: SQLValue])? {
    let number = SQLValue.integer(.random(in: 0..<10, using: &random))
    let conditions: [(String, [String: SQLValue])?] = [
      nil, ("n < :p", ["p": number]), ("n >= :p OR n IS NULL", ["p": number]), ("r", [:]),
      ("s = :s AND n", ["s": .text("s1")]), ("r * 0.25", [:]), ("NULL", [:]), ("1 -- all", [:]),
      ("s IN ('s0', 's3') /* ) */", [:]), ("r IS :b", ["b": .blob([1])]), ("g > 6", [:]),
      ("r = :r", ["r": .real(0.5)]), ("n IS :nothing", ["nothing": .null]),
    ]
    return conditions.randomElement(using: &random) ?? nil
  }
}

extension Connection {
  func run(_ sql: String, _ values: [SQLValue]) throws {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    try statement.run()
  }

  /// Runs a statement with the named parameters that it uses.
  func run(_ sql: String, _ parameters: [String: SQLValue]) throws {
    let statement = try prepare(sql)
    for (name, value) in parameters {
      if let index = statement.parameterIndex(":" + name) { try statement.bind(value, at: index) }
    }
    try statement.run()
  }
}

extension SQLValue {
  /// A component of a key as a value.
  init(_ component: KeyComponent) {
    switch component {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let value): self = .text(value)
    case .invalidText(let value): self = .invalidText(value)
    case .blob(let value): self = .blob(value)
    }
  }
}
