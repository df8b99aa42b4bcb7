import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct QueryCompilerTests {
  let directory: TemporaryDirectory
  let connection: Connection
  let compiler: QueryCompiler

  init() throws {
    directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, c REAL, d TEXT)",
      "CREATE TABLE u (id INTEGER PRIMARY KEY, t INTEGER, \"odd \"\"name\" TEXT)",
      "INSERT INTO t VALUES (1, 5, 'one'), (2, 6, 'two')"
    )
    connection = try Connection(path: path)
    compiler = QueryCompiler(
      connection: connection,
      schema: try Schema(reading: connection),
      parameters: ["p"]
    )
  }

  @Test(arguments: [
    ("SELECT * FROM t", ["id INTEGER", "c REAL", "d TEXT"]),
    ("SELECT id, c + :p AS \"c d\" FROM t -- a comment", ["id INTEGER", "c d "]),
    (
      "SELECT t.*, u.id AS u FROM t JOIN u ON u.t = t.id",
      ["id INTEGER", "c REAL", "d TEXT", "u INTEGER"]
    ),
    ("WITH w AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT a FROM w", ["a "]),
    (
      "WITH RECURSIVE w(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM w LIMIT 9) SELECT a FROM w",
      ["a "]
    ),
    (
      "SELECT date(c) AS a, strftime('%Y', d) AS b, time FROM (SELECT *, 1 AS time FROM t)",
      ["a ", "b ", "time "]
    ),
    ("VALUES (1, 2)", ["column1 ", "column2 "]),
    (
      "SELECT id, (SELECT d FROM t ORDER BY d LIMIT 1) AS first FROM t",
      ["id INTEGER", "first TEXT"]
    ),
    ("SELECT id, row_number() OVER (ORDER BY c) AS n FROM t", ["id INTEGER", "n "]),
    ("SELECT \"odd \"\"name\" FROM u", ["odd \"name TEXT"]),
    ("SELECT value AS v FROM t, json_each('[1]')", ["v "]),
  ])
  func `a query is an entity with the columns of its result`(
    text: String,
    columns: [String]
  ) throws {
    let entity = try compiler.entity(of: SQLExpression(text))
    #expect(entity.kind == .query)
    #expect(entity.attributes.map { "\($0.column) \($0.type)" } == columns)
  }

  @Test(arguments: [
    "", " -- nothing", "DELETE FROM t", "UPDATE t SET c = 1", "INSERT INTO t VALUES (1, 2, 3)",
    "SELECT 1 AS a; DROP TABLE t", "SELECT 1 AS a;", "SELECT 1 AS a) UNION (SELECT 2",
    "SELECT 1 AS a) AS x, (SELECT 2 AS b", "PRAGMA table_list", "EXPLAIN SELECT 1", "t",
    "SELECT * FROM t ORDER BY c", "SELECT * FROM t LIMIT 1", "SELECT 1 AS a UNION SELECT 2 LIMIT 1",
    "SELECT id, datetime('now') AS r FROM t", "SELECT id FROM t WHERE d > CURRENT_TIMESTAMP",
    "SELECT id, julianday() AS r FROM t", "SELECT id, strftime ( '%f' ) AS r FROM t",
    "SELECT id, random() AS r FROM t", "SELECT id FROM t WHERE changes() = 0",
    "SELECT * FROM t JOIN u", "SELECT c, C FROM t", "SELECT \"nme\" FROM t", "SELECT nme FROM t",
    "SELECT * FROM missing", "SELECT :q AS a", "SELECT ?1 AS a", "SELECT @p AS a",
    "SELECT load_extension('x') AS a", "SELECT writefile('/tmp/x', 'y') AS a",
    "SELECT * FROM pragma_optimize", "SELECT * FROM fsdir('/')",
    "WITH w AS (DELETE FROM t) SELECT 1",
    "SELECT 1 AS a /*", "SELECT 'a", "SELECT 1 AS a FROM t\0",
  ])
  func `a query that is not a single read-only SELECT is refused`(text: String) throws {
    let error = #expect(throws: BatchError.self) {
      try compiler.entity(of: SQLExpression(text, at: "here"))
    }
    #expect(error?.code == .invalidSQL)
    #expect(error?.place == "here")
    #expect(try connection.value("SELECT count(*) FROM t") == .integer(2))
  }
}
