import BatchTestSupport
import Foundation
import Testing

/// Texts other than a single read-only expression, in every place.
private let hostileTexts = [
  "1); DROP TABLE numbers; --", "1; DROP TABLE numbers", "1;", ";", "1) OR (1", "1) OR (1 --",
  "1) --", "1 /*", "1 /* )", "*/ 1 /*", "(1", "1)", ")(", "((1)", "n) FROM numbers; --",
  "1)) UNION SELECT 1, 2 --", "1 UNION SELECT 2", "(SELECT 1, 2)", "n, id", "(n, id)",
  "n AS m", "*", "numbers.*", "", "--", "-- all of it", "/* nothing */",
  "(SELECT load_extension('x'))", "load_extension('x', 'y')", "LOAD_EXTENSION('x')",
  "\"load_extension\"('x')", "writefile('x','y')", "readfile('/etc/passwd')", "edit('x')",
  "fts3_tokenizer('simple')", "ATTACH 'other.db' AS other", "(ATTACH 'other.db' AS other)",
  "PRAGMA user_version = 1", "(PRAGMA user_version)", "VACUUM INTO 'copy.db'", "BEGIN", "COMMIT",
  "(SELECT count(*) FROM pragma_table_list)", "EXISTS (SELECT 1 FROM pragma_user_version)",
  "(SELECT * FROM pragma_optimize)", "(SELECT file FROM pragma_database_list LIMIT 1)",
  "(SELECT count(*) FROM PRAGMA_TABLE_INFO('numbers'))", "(DELETE FROM numbers)",
  "(INSERT INTO numbers (n) VALUES (1) RETURNING n)", "(UPDATE numbers SET n = 0)",
  "(WITH x AS (DELETE FROM numbers RETURNING 1) SELECT * FROM x)", "1\0",
  "1\0); DROP TABLE numbers",
  "'", "'open", "\"open", "[open", "`open", "'a''", "x'1", "'a' || 'b", ":a(", ":a(1)", ":a::b(1)",
  ":", ": a", "?", "?1", "@x", "$x", "$x::y(')')", "#1", "@first", "@key0", "count(*)", "sum(n)",
  "group_concat(label)", "row_number() OVER ()", "sum(n) OVER (ORDER BY id)", "n IN", "n IN (",
  "CASE WHEN 1 THEN 2", "RAISE(ABORT, 'no')", "excluded.n", "new.n", "old.n", "rowid.n",
  "sqlite_schema.name", "1 WHERE 1", "1 FROM numbers", "1 LIMIT 1", "1 ORDER BY 1", "n = 1, id = 5",
  "1 RETURNING n", "1\n); DROP TABLE numbers;\n--", "1\u{b}; DROP TABLE numbers", "\\", "!",
  "\u{1b}[31mred", "n\u{202e}", "n !",
  "\u{2019}; DROP TABLE numbers", "1 /* */ ) /* ( */",
]

/// Valid expressions, however they look, which hold for every row.
private let friendlyTexts = [
  "1", " 1 ", "((((n)))) IS n", "label = label || '' OR 1", "'()' = '()'", "')' <> '('",
  "'it''s); --' IS NOT NULL", "\"label\" IS label", "[label] IS label", "`label` IS label",
  "1 -- a comment", "1 -- ) ; '", "/* ) ' \" ; */ 1", "-- first\n1",
  "n IN (SELECT n FROM numbers)", "EXISTS (SELECT 1 FROM numbers AS o WHERE o.id = numbers.id)",
  "(SELECT count(*) FROM numbers) > 0", "(SELECT max(n) FROM numbers) IS NOT NULL",
  "(SELECT row_number() OVER (ORDER BY id) FROM numbers LIMIT 1) = 1",
  "(WITH x(y) AS (SELECT 1) SELECT y FROM x) = 1", "(VALUES (1))", "SELECT 1", "max(n, 0) >= 0",
  "CASE WHEN n > 0 THEN 1 ELSE 1 END", "label LIKE 'l%' ESCAPE '\\' OR 1", "label GLOB 'l*' OR 1",
  "json_extract('{\"a\": [1]}', '$.a[0]')", "'{\"a\":1}' ->> '$.a'", "CAST('1' AS INTEGER)",
  "x'414243' IS NOT NULL", "1e3 > 0x10", "label COLLATE NOCASE IS label", "(n, id) = (n, id)",
  "n BETWEEN n AND n", "n ISNULL OR n NOTNULL", "datetime('now') > '2000'", "random() IS NOT NULL",
  "'\u{1F600} \u{e9}' <> ''", ":threshold < 1", "instr(label, ';') = 0", "';' <> '--'",
  "\"gr\u{f6}\u{df}e (cm)\" IS NULL", "numbers.n IS n", "main.numbers.n IS n", "rowid = id",
  "(SELECT count(*) FROM json_each('[1,2]')) = 2", "1 = 1 AND NOT 0", "iif(1, 1, 0)",
]

@Suite struct HostileExpressionTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE numbers
        (id INTEGER PRIMARY KEY, n INTEGER, label TEXT, "gr\u{f6}\u{df}e (cm)" REAL)
      """,
      "INSERT INTO numbers (n, label) VALUES (1, 'label 1'), (2, 'label 2')"
    )
  }

  @Test(arguments: hostileTexts) func `a hostile where is refused`(text: String) throws {
    try directory.write(JobText.delete(where: text), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["source.where"])
    try directory.write(JobText.export(to: "out.csv", where: text), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["source.where"])
  }

  @Test(arguments: hostileTexts) func `a hostile set is refused`(text: String) throws {
    try directory.write(JobText.update(["n": text]), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["action.set.n"])
  }

  @Test(arguments: friendlyTexts)
  func `a harmless expression is accepted`(text: String) throws {
    let parameters = ["threshold": ["type": "integer", "default": 0]]
    let job = try JobText.update(["label": text], where: text, adding: ["parameters": parameters])
    try directory.write(job, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(text): \(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["done"] as? Int == 2, "\(text)")
    let outcomes = last["outcomes"] as? [String: Int]
    #expect(outcomes?["succeeded"] == 2, "\(text)")
  }
}
