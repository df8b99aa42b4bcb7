import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct ExpressionCompilerTests {
  let directory: TemporaryDirectory
  let connection: Connection
  let compiler: ExpressionCompiler

  init() throws {
    directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, c, d TEXT, \"the \"\"end\"\"\" INTEGER)",
      "CREATE TABLE other (x)",
      "CREATE INDEX i ON t (d)",
      "INSERT INTO t VALUES (1, 5, 'one', 1), (2, 6, 'two', 2), (3, 7, 'three', 3)",
      "INSERT INTO other VALUES ('kept')"
    )
    connection = try Connection(path: path)
    let entity = try Schema(reading: connection).entity(named: "t")
    compiler = ExpressionCompiler(connection: connection, entity: entity, parameters: ["p", "q"])
  }

  @Test(arguments: [
    ("c + 1", []), ("(c)", []), ("c IN (1, 2)", []), ("d = 'it''s ; -- ) fine'", []),
    ("c -- a comment", []), ("c /* ) */ + 1", []), ("c > :p AND d < :q", ["p", "q"]),
    ("(SELECT count(*) FROM other)", []), ("EXISTS (SELECT 1 FROM other WHERE x = d)", []),
    ("c IN (SELECT value FROM json_each('[1,2]'))", []), ("\"the \"\"end\"\"\" + 1", []),
    ("[c] + `c` + \"c\"", []), ("x'00ff' || d", []), ("CASE WHEN c THEN :p ELSE d END", ["p"]),
    ("d ->> '$.a'", []), ("c - -1", []), ("date('now')", []),
    ("d LIKE '%' || :p ESCAPE '\\'", ["p"]),
    ("d COLLATE NOCASE = 'ONE'", []), ("(WITH w AS (SELECT 1) SELECT * FROM w)", []),
    ("abs(c) \n\t -- last", []),
  ])
  func `an allowed expression compiles and reports its parameters`(
    text: String,
    parameters: [String]
  ) throws {
    #expect(try compiler.check(SQLExpression(text)) == Set(parameters))
  }

  @Test(arguments: [
    "1); DROP TABLE other; --", "1) OR (1", "c; DELETE FROM other", "c)", "(c", ")(", "",
    " \n ", "-- only a comment", "/* open", "c /* ) ", "'open", "\"open", "`open", "[open", "c, d",
    "c AS x", "c FROM other --", "*", "t.*", "1 UNION SELECT 2", "DELETE FROM other",
    "(DELETE FROM other RETURNING x)", "(SELECT load_extension('x'))", "load_extension('x')",
    "LOAD_EXTENSION('x')", "\"load_extension\"('x')", "writefile('/tmp/x', 'y')",
    "readfile('/etc/passwd')", "edit('x')", "fts3_tokenizer('simple')", "ATTACH 'x' AS y",
    "PRAGMA user_version = 5", "(PRAGMA user_version)", "(SELECT 1 FROM pragma_optimize)",
    "(SELECT count(*) FROM PRAGMA_optimize(0xfffe))", "(SELECT * FROM pragma_table_list LIMIT 1)",
    "(SELECT name FROM fsdir('/'))", "c = ?", "c = ?1", "c = @p", "c = $p", "c = #1", "c = :none",
    "c = :", "c = :p(1)", "c = :p::q", "c\0; DROP TABLE other", "d = 'a\0b'", "none + 1",
    "nofunction(c)", "c c", "1 2", "c)\n, (d", "c) FROM t WHERE (1", "(SELECT c, d)",
    "RAISE(IGNORE)",
    "c = 1 RETURNING d", "VACUUM", "BEGIN", "sum(c) OVER () )", "c ORDER BY 1", "c LIMIT 1",
    "c WHERE 1", "c\u{b}+1", "\u{feff}", "(SELECT x FROM nothere)", "excluded.c", "new.c",
    "\"no such column\" = 1", "d = \"one\"", "(SELECT \"missing\" FROM other)",
  ])
  func `a forbidden expression is refused without side effects`(text: String) throws {
    let before = try TestDatabase.dump(connection)
    let error = try #require(
      #expect(throws: BatchError.self) {
        try compiler.check(SQLExpression(text, at: "job.json:3:4: source.where"))
      }
    )
    #expect(error.code == .invalidSQL)
    #expect(error.place == "job.json:3:4: source.where")
    #expect(try TestDatabase.dump(connection) == before)
    // The authorizer does not stay.
    try connection.execute("UPDATE other SET x = x")
  }

  @Test func `the error of a misspelt name in double quotes suggests the nearest name`() throws {
    let error = #expect(throws: BatchError.self) {
      try compiler.check(SQLExpression(#""idd" <> 'done'"#))
    }
    #expect(error?.message.contains("no such column") == true)
    #expect(error?.remedy?.contains("\"id\"") == true)
  }

  /// Pieces that between them make up most of the trouble there is.
  private static let pieces = [
    "c", "d", "id", "\"c\"", "[d]", "`c`", "t.c", "other.x", "1", "0", "-1", "2.5", "'x'", "''",
    "x'ff'", ":p", ":q", "NULL", "+", "-", "*", "/", "||", "=", "<", ">", "AND", "OR", "NOT", "IS",
    "IN", "LIKE", "BETWEEN", "(", ")", "(", ")", ",", ";", "--", "/*", "*/", "'", "\"", "`", "[",
    "]",
    " ", "\n", "SELECT", "FROM", "other", "t", "WHERE", "UPDATE", "SET", "DELETE", "INSERT INTO",
    "VALUES", "RETURNING", "CASE", "WHEN", "THEN", "ELSE", "END", "EXISTS", "count(*)", "abs(",
    "max(",
    "random()", "COLLATE", "NOCASE", "CAST(c AS TEXT)", "UNION", "AS", "x", "@first", "?", "$1",
    "#",
    "\u{0}", "é", "\u{feff}", "->", "->>", "\\", "OVER ()", "LIMIT 1", "DROP TABLE other", "1e3",
    "0x1",
  ]

  @Test(arguments: 0..<8 as Range<UInt64>)
  func `an accepted random expression affects no row but its own`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let others = try TestDatabase.dump(connection, except: ["t"])
    let rest = try TestDatabase.dump(connection, table: "t", where: "id <> 1")
    var accepted = 0
    for _ in 0..<3_000 {
      let length = Int.random(in: 1...9, using: &random)
      var text = ""
      for _ in 0..<length {
        text += Self.pieces.randomElement(using: &random) ?? ""
        if Bool.random(using: &random) { text += " " }
      }
      let expression = SQLExpression(text)
      guard (try? compiler.check(expression)) != nil else { continue }
      accepted += 1
      try connection.execute("SAVEPOINT s")
      for (sets, tests) in [(text, "1"), ("5", text), (text, text)] {
        let statement: String = """
          UPDATE t SET c = (\(sets)\n) WHERE id BETWEEN 1 AND 1 AND (\(tests)\n)
          """
        // An aggregate is one expression, and SQLite refuses it in this place.
        try? connection.execute(statement)
        #expect(connection.changes <= 1)
        #expect(try TestDatabase.dump(connection, except: ["t"]) == others, "\(text)")
        #expect(
          try TestDatabase.dump(connection, table: "t", where: "id <> 1") == rest,
          "\(text)"
        )
      }
      try connection.execute("ROLLBACK TO s")
      try connection.execute("RELEASE s")
    }
    #expect(accepted > 20)
  }
}
