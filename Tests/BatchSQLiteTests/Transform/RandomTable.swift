import BatchSQLite
import BatchTestSupport

/// A table `t` of a random schema: any kind of key, every way for SQLite to refuse or alter a
/// change, and rows.
///
/// In addition to its key it has the columns `a`, `b`, `c` and the generated `g`.
struct RandomTable {
  let key: [String]
  /// Whether foreign keys are enforced.
  let enforcesForeignKeys: Bool
  /// Creates the table, the tables around it and the rows, a statement each.
  let statements: [String]

  init(using random: inout SeededGenerator) {
    func pick(_ choices: String...) -> String { choices.randomElement(using: &random) ?? "" }
    func small() -> Int { .random(in: 0..<10, using: &random) }
    func conflict() -> String {
      let kind = pick("", "REPLACE", "IGNORE", "FAIL", "ROLLBACK", "ABORT")
      return kind.isEmpty ? "" : "ON CONFLICT \(kind)"
    }

    let kind = pick("dense", "gaps", "sparse", "text", "composite", "withoutRowID")
    var definition: String
    switch kind {
    case "text":
      key = ["id"]
      definition = "id TEXT PRIMARY KEY"
    case "composite", "withoutRowID":
      key = ["p", "q"]
      definition = "p INTEGER NOT NULL, q TEXT NOT NULL"
    default:
      key = ["id"]
      definition = "id INTEGER PRIMARY KEY"
    }
    let isUnique = Bool.random(using: &random)
    definition += ", a INTEGER DEFAULT 3 " + (isUnique ? "UNIQUE \(conflict()) " : "")
    definition += pick("", "", "CHECK (a <> 7)", "NOT NULL \(conflict())", "REFERENCES other (n)")
    definition += ", b DEFAULT 1 "
    definition += pick(
      "",
      "UNIQUE \(conflict())",
      "CHECK (b <> 5)",
      isUnique ? "REFERENCES t (a)" : "",
      isUnique ? "REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED" : ""
    )
    definition += ", c TEXT, g AS (a * 2) " + pick("VIRTUAL", "STORED")
    definition += pick("", "", " UNIQUE \(conflict())", " CHECK (g <> 8)")
    if key.count == 2 { definition += ", PRIMARY KEY (p, q)" }
    var statements = [
      "CREATE TABLE t (\(definition))" + (kind == "withoutRowID" ? " WITHOUT ROWID" : ""),
      "CREATE TABLE other (n INTEGER PRIMARY KEY)",
      "INSERT INTO other VALUES (0), (1), (2), (3), (4), (9)",
      "CREATE TABLE log (what, a, b)",
    ]
    if isUnique, Bool.random(using: &random) {
      let action = pick("CASCADE", "SET NULL", "RESTRICT", "NO ACTION")
      let deferral = pick("", "DEFERRABLE INITIALLY DEFERRED")
      statements.append(
        "CREATE TABLE child (p REFERENCES t (a) ON UPDATE \(action) \(deferral))"
      )
    }

    // The rows are inserted before the triggers exist; refused ones stay out.
    for row in 0..<Int.random(in: 1...40, using: &random) {
      let identity: String
      switch kind {
      case "dense": identity = "\(row)"
      case "gaps": identity = "\(row * 3)"
      case "sparse": identity = "\(row * 1000)"
      case "text": identity = "'\(pick("x", "y", "é"))\(row)'"
      default: identity = "\(row / 4), '\(pick("x", "y"))\(row)'"
      }
      let a = isUnique ? "\(row)" : pick("\(small())", "NULL")
      let values = "\(identity), \(a), \(pick("NULL", "\(row)", "\(small())")), '\(pick("x", "y"))'"
      statements.append(
        "INSERT OR IGNORE INTO t (\(key.joined(separator: ", ")), a, b, c) VALUES (\(values))"
      )
    }
    statements.append("UPDATE OR IGNORE t SET b = NULL WHERE b NOT IN (SELECT a FROM t)")
    if statements.contains(where: { $0.hasPrefix("CREATE TABLE child") }) {
      statements.append("INSERT INTO child SELECT a FROM t LIMIT 3")
    }
    for number in 0..<pick("0", "0", "1", "2").utf8.reduce(0, { Int($1 - 48) + $0 }) {
      let time = pick("BEFORE", "AFTER")
      let body = pick(
        "SELECT RAISE(ABORT, 'no'); ",
        "SELECT RAISE(FAIL, 'no'); ",
        "SELECT RAISE(IGNORE); ",
        "SELECT RAISE(ROLLBACK, 'no'); ",
        "INSERT INTO log VALUES ('u', new.a, old.b); ",
        "UPDATE t SET c = 'z' WHERE a = \(small()); ",
        "UPDATE t SET b = NULL WHERE a = \(small()); ",
        "DELETE FROM t WHERE a = \(small()); "
      )
      statements.append(
        """
        CREATE TRIGGER trigger\(number) \(time) UPDATE \(pick("", "OF a ", "OF b "))ON t
        \(pick("", "WHEN new.a = \(small())", "WHEN old.a < \(small())")) BEGIN \(body)END
        """
      )
    }
    self.statements = statements
    enforcesForeignKeys = Bool.random(using: &random)
  }
}
