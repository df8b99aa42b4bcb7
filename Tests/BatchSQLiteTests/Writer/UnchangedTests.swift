@testable import BatchSQLite
import BatchTestSupport
import Testing

/// Whether a row has what it would be set to, compared with what SQLite makes of setting it.
@Suite struct UnchangedTests {
  private static let values = [
    "NULL", "0", "1", "-1", "9007199254740993", "9223372036854775807", "1.0", "0.5", "1e3",
    "9007199254740992.0", "'1'", "'01'", "'1.0'", "' 1'", "'1e3'", "''", "'a'", "'A'", "'ä'",
    "'a '",
    "x''", "x'61'", "x'31'",
  ]

  @Test(arguments: [
    "c", "c BLOB", "c INTEGER", "c REAL", "c NUMERIC", "c TEXT", "c TEXT COLLATE NOCASE",
    "c TEXT COLLATE RTRIM", "c ANY", "c any", "c ANY STRICT", "c Any COLLATE NOCASE", "c DATE",
    "c VARCHAR(10)",
  ])
  func `a row counts as unchanged only if every bit of its values stays`(column: String) throws {
    let directory = try TemporaryDirectory()
    let rows = Self.values.flatMap { v in Self.values.map { "(\(v), \($0), \($0))" } }
    let isStrict = column.hasSuffix(" STRICT")
    let definition = column.replacing(" STRICT", with: "")
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, \(definition), e \(isStrict ? "ANY" : ""),
        i \(isStrict ? "ANY" : "INTEGER"), u INTEGER, w TEXT) \(isStrict ? "STRICT" : "")
      """,
      "INSERT INTO t (c, e, i) VALUES \(rows.joined(separator: ", "))"
    )
    let connection = try Connection(path: path)
    let entity = try Schema(reading: connection).entity(named: "t")
    let expressions = ["e", "i", "CAST(e AS TEXT)", "CAST(e AS INTEGER)", "upper(e)", "(SELECT e)"]
    for expression in expressions {
      let condition = BulkChange.unchanged([("c", SQLExpression(expression))], of: entity)
      try connection.execute("BEGIN")
      try connection.execute("UPDATE t SET u = \(condition.sql), w = typeof(c) || quote(c)")
      try connection.execute("UPDATE t SET c = \(expression)")
      let wrong = try connection.texts(
        """
        SELECT w || ' set to ' || typeof(e) || quote(e) || ' is said to be '
          || iif(u, 'unchanged', 'changed')
        FROM t WHERE u IS NOT (w = typeof(c) || quote(c))
          AND NOT (\(column == "c REAL") AND typeof(\(expression)) = 'text' AND NOT u AND e > 1e15)
        """
      )
      #expect(wrong == [], "\(column), \(expression)")
      try connection.execute("ROLLBACK")
    }
  }
}
