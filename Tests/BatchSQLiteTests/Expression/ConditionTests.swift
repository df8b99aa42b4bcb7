import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

/// The terms of a condition, and what each reads.
@Suite struct ConditionTests {
  let connection: Connection
  let schema: Schema
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, \"end\", \"x AND y\", day, g AS (a + 1))",
      "CREATE TABLE other (x, t_id)",
      "CREATE VIEW shown AS SELECT t.id, a, x FROM t JOIN other ON t_id = t.id"
    )
    connection = try Connection(path: path)
    schema = try Schema(reading: connection)
  }

  private func condition(_ text: String, of entity: String = "t") throws -> Condition {
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: try schema.entity(named: entity),
      parameters: ["p"]
    )
    return try compiler.condition(SQLExpression(text))
  }

  /// Conditions, and their terms.
  private static let splits: [(String, [String]?)] = [
    ("a = 1", ["a = 1"]),
    ("a = 1 AND b = 2", ["a = 1", "b = 2"]),
    ("a and b And a AND b", ["a", "b", "a", "b"]),
    ("(a AND (b AND a > :p))", ["a", "b", "a > :p"]),
    ("((a) AND ((b)))", ["a", "b"]),
    ("(a) = (b)", ["(a) = (b)"]),
    ("(a AND b) = (a AND b)", ["(a AND b) = (a AND b)"]),
    ("(a AND b) OR (a AND g)", ["(a AND b) OR (a AND g)"]),
    ("a OR b AND g", ["a OR b AND g"]),
    ("a AND (b OR g)", ["a", "b OR g"]),
    ("NOT a AND b", ["NOT a", "b"]),
    ("NOT (a AND b) AND g", ["NOT (a AND b)", "g"]),
    ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2", "b"]),
    (
      "a NOT BETWEEN 1 AND b BETWEEN 2 AND 3 AND g", ["a NOT BETWEEN 1 AND b BETWEEN 2 AND 3", "g"]
    ),
    (
      "CASE WHEN a AND b THEN 1 ELSE b OR a END AND g",
      ["CASE WHEN a AND b THEN 1 ELSE b OR a END", "g"]
    ),
    ("CASE a WHEN 1 THEN CASE WHEN b AND g THEN 1 END END AND b", nil),
    ("CASE WHEN end AND a THEN 1 END AND b", ["CASE WHEN end AND a THEN 1 END AND b"]),
    ("end > 1 AND a", ["end > 1", "a"]),
    ("\"x AND y\" = 1 AND [x AND y] = 'a AND b' AND `x AND y` = 2", nil),
    ("a /* AND */ = 1 -- AND b\n AND b = 2", ["a /* AND */ = 1", "b = 2"]),
    ("a = 1 AND b = 2 -- the end", ["a = 1", "b = 2"]),
    ("a LIKE 'x' ESCAPE '!' AND b IS NOT DISTINCT FROM 2", nil),
    (
      "(SELECT a AND b FROM other WHERE x AND t_id)",
      ["(SELECT a AND b FROM other WHERE x AND t_id)"]
    ),
    ("(VALUES (1 AND 2)) AND a", ["(VALUES (1 AND 2))", "a"]),
    ("a IN (SELECT x FROM other WHERE x AND t_id) AND b", nil),
  ]

  @Test(arguments: splits)
  func `a condition is split at the ANDs between its terms`(
    text: String,
    terms: [String]?
  ) throws {
    let found = try condition(text).terms.map(\.expression.text)
    if let terms { #expect(found == terms) }
    for (values, end) in zip(Self.rows, Self.rows.indices) {
      try connection.execute("DELETE FROM t")
      try connection.execute("DELETE FROM other")
      try connection.execute("INSERT INTO other VALUES (1, 1), (0, 1)")
      try connection.execute(
        "INSERT INTO t VALUES (\(end + 1), \(values.0), \(values.1), \(end), 1, NULL)"
      )
      let split = found.map { "(\($0)\n)" }.joined(separator: " AND ")
      #expect(try truth(text) == truth(split))
    }
  }

  private static let rows = [("0", "1"), ("1", "1"), ("1", "0"), ("NULL", "2"), ("2", "NULL")]

  private func truth(_ condition: String) throws -> SQLValue? {
    try connection.value("SELECT (\(condition.replacing(":p", with: "0"))\n) IS TRUE FROM t")
  }

  @Test(arguments: [
    "a = 1", "g > 2", "a IN (1, 2)", "a NOT IN ()", "day < date('now')", "a = :p", "abs(a) > 2",
    "a IN /* SELECT */ (1)", "'SELECT' = a", "\"x AND y\" IS NULL", "a AND b OR g",
    "rowid > 5", "t.a > 5", "main.t.a > 5", "1", "json_extract(a, '$.x') = 2",
    "CASE WHEN a THEN b END",
  ])
  func `a term without a subquery concerns only the row`(text: String) throws {
    let condition = try condition(text)
    #expect(condition.terms.map(\.isAboutRow) == [true])
    for recheck in Recheck.allCases {
      #expect(condition.applied(by: recheck)?.text == (recheck == .off ? nil : text))
    }
  }

  /// Terms, the tables that they read, and what they call.
  private static let others: [(String, [String], [String])] = [
    ("a > (SELECT avg(a) FROM t)", ["t"], []),
    ("id NOT IN (SELECT min(id) FROM t GROUP BY b)", ["t"], []),
    ("id IN (SELECT t_id FROM other)", ["other"], []),
    ("EXISTS (SELECT 1 FROM other WHERE t_id = t.id)", ["other"], []),
    ("EXISTS (SELECT 1 FROM t AS u WHERE u.b = t.b AND u.id < t.id)", ["t"], []),
    ("(SELECT count(*) FROM other) > 3", ["other"], []),
    ("id IN (SELECT id FROM shown)", ["other", "shown", "t"], []),
    ("a OR EXISTS (SELECT 1 FROM other)", ["other"], []),
    ("a = (SELECT 1)", [], []), ("a IN (VALUES (1))", [], []),
    ("a = (WITH w(y) AS (SELECT x FROM other) SELECT y FROM w)", ["other"], []),
    ("a = (SELECT max(u.a) FROM t u WHERE main.t.b = u.b)", ["t"], []),
    ("random() > 0", [], ["random"]), ("length(randomblob(2)) = a", [], ["randomblob"]),
    ("changes() > 0", [], ["changes"]), ("Total_Changes() = 0", [], ["total_changes"]),
    ("last_insert_rowid() = id", [], ["last_insert_rowid"]),
  ]

  @Test(arguments: others)
  func `a term that reads other rows or varies does not concern only the row`(
    text: String,
    reads: [String],
    calls: [String]
  ) throws {
    let condition = try condition("b = 2 AND \(text.contains(" OR ") ? "(\(text))" : text)")
    #expect(condition.terms.map(\.isAboutRow) == [true, false])
    #expect(condition.terms[1].reads.sorted() == reads)
    #expect(condition.terms[1].calls.sorted() == calls)
    #expect(condition.applied(by: .row)?.text == "(b = 2\n)")
    #expect(condition.applied(by: .skip)?.text == condition.expression.text)
    #expect(try self.condition(text).applied(by: .row) == nil)
  }

  @Test func `a table name after IN without parentheses is a subquery`() throws {
    try connection.execute("CREATE TABLE ids (id)")
    for text in ["id IN ids", "id NOT IN main.ids"] {
      #expect(try condition(text).terms.map(\.isAboutRow) == [false])
    }
    try connection.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)")
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: try Schema(reading: connection).entity(named: "one"),
      parameters: []
    )
    let term = try compiler.condition(SQLExpression("id IN one")).terms[0]
    #expect(!term.isAboutRow && term.reads == ["one"])
  }

  @Test func `a condition on a view's columns concerns only the row`() throws {
    let condition = try condition("a > 1 AND x IN (SELECT x FROM other)", of: "shown")
    #expect(condition.terms.map(\.isAboutRow) == [true, false])
  }
}
