import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Loads files into tables, as a user does: by a job and the program.
@Suite(.timeLimit(.minutes(5))) struct LoadCommandTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("shop.db")
    try TestDatabase.make(
      "shop.db",
      in: directory,
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL, note TEXT, paid BOOLEAN, scan BLOB)",
      "CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, visits INTEGER)"
    )
  }

  private func write(_ action: String, adding tuning: String = "") throws {
    try directory.write(
      """
      { "version": 1, "name": "import", "database": { "path": "shop.db" },
        "action": { "type": "load", \(action) } \(tuning) }
      """,
      to: "job.json"
    )
  }

  @discardableResult
  private func succeed(_ arguments: String..., status: Int32 = 0) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.errors)")
    return result
  }

  private func rows(_ sql: String) throws -> [String] { try TestDatabase.texts(path, sql) }

  private static let shown = """
    SELECT id || '|' || quote(price) || '|' || quote(note) || '|' || quote(paid) || '|' ||
      quote(scan) FROM orders ORDER BY id
    """

  private static let sum = "SELECT count(*) || '|' || sum(visits) FROM customers"

  /// Stops a load at one record until it is dropped.
  private static let stop = """
    CREATE TRIGGER stop BEFORE INSERT ON customers WHEN NEW.visits = 1500
    BEGIN SELECT RAISE(FAIL, 'no'); END
    """

  // MARK: What is read

  @Test func `a CSV file becomes rows, with quotes, line ends, NULL, booleans and bytes`() throws {
    try directory.write(
      "\u{feff}note,id,price,paid,scan\r\n"
        + "\"a \"\"b\"\", c\",1,2.5,true,AAE=\r\n"
        + "\"two\nlines\",2,,false,\r\n\r\n"
        + "\"\",3,1e3,,\"\"\r\n"
        + "é,-4,.5,1,",
      to: "orders.csv"
    )
    try write(#""files": "orders.csv", "format": "csv", "into": "orders""#)
    try succeed("run", "job.json")
    #expect(
      try rows(Self.shown) == [
        "-4|0.5|'é'|1|NULL", "1|2.5|'a \"b\", c'|1|X'0001'", "2|NULL|'two\nlines'|0|NULL",
        "3|1000.0|''|NULL|X''",
      ]
    )
  }

  @Test func `an NDJSON file becomes rows, with nested values as JSON`() throws {
    try directory.write(
      #"{"id": 1, "price": 2, "note": {"a": [1, "x\"}"]}, "paid": true}"# + "\n\n"
        + #"{"note": null, "id": "2", "scan": {"$base64":true,"encoded":"AAE="}}"# + "\n"
        + #"  {"id":3,"note":[1,2],"price":1.5e1}"#,
      to: "orders.ndjson"
    )
    try write(#""files": "orders.ndjson", "format": "ndjson", "into": "orders""#)
    try succeed("run", "job.json")
    #expect(
      try rows(Self.shown) == [
        #"1|2.0|'{"a": [1, "x\"}"]}'|1|NULL"#, "2|NULL|NULL|NULL|X'0001'",
        "3|15.0|'[1,2]'|NULL|NULL",
      ]
    )
  }

  @Test func `an export that is loaded gives the same rows`() throws {
    for format in ["csv", "ndjson"] {
      let directory = try TemporaryDirectory()
      let path = directory.file("shop.db")
      let columns = "(id INTEGER PRIMARY KEY, r REAL, t TEXT, b BLOB, i INTEGER, x TEXT)"
      try TestDatabase.make(
        "shop.db",
        in: directory,
        "CREATE TABLE a \(columns)",
        "CREATE TABLE b \(columns)"
      )
      let connection = try Connection(path: path)
      var random = SeededGenerator(seed: .random(in: 0...1_000_000))
      let texts = ["", " ", "é\"", "a,b", "\r\n", "null", "NULL", "0", "\t", "{\"a\":1}", "😀"]
      func orNull(_ value: SQLValue) -> SQLValue { Bool.random(using: &random) ? .null : value }
      for id in 1...200 {
        let text = texts.randomElement(using: &random) ?? ""
        try connection.execute(
          "INSERT INTO a VALUES (?, ?, ?, ?, ?, ?)",
          .integer(Int64(id)),
          orNull(.real(.random(in: -1e9...1e9, using: &random))),
          orNull(.text(text + String(id))),
          orNull(.blob((0..<(id % 6)).map { _ in .random(in: 0...255, using: &random) })),
          orNull(.integer(.random(in: .min ... .max, using: &random))),
          orNull(.text(text))
        )
      }
      try directory.write(
        """
        { "version": 1, "name": "out", "database": { "path": "shop.db" },
          "source": { "entity": "a" },
          "action": { "type": "export", "file": "a.\(format)", "format": "\(format)" } }
        """,
        to: "out.json"
      )
      try directory.write(
        """
        { "version": 1, "name": "in", "database": { "path": "shop.db" },
          "action": { "type": "load", "files": "a.\(format)", "format": "\(format)",
            "into": "b" } }
        """,
        to: "in.json"
      )
      for job in ["out.json", "in.json"] {
        let result = try BatchProgram(["run", job], in: directory).wait()
        #expect(result.status == 0, "\(format): \(result.errors)")
      }
      let difference = "SELECT count(*) FROM (SELECT * FROM a EXCEPT SELECT * FROM b)"
      #expect(try TestDatabase.value(path, difference) == .integer(0), "\(format)")
      #expect(try TestDatabase.value(path, "SELECT count(*) FROM b") == .integer(200))
    }
  }

  @Test func `files are loaded in the order of their names, in any order of columns`() throws {
    try directory.write("id;note\n7;c\n", to: "o-2.csv")
    try directory.write("note;id\nb;2\na;NA\n", to: "o-10.csv")
    try directory.write("id;note\n9;no\n", to: "p.csv")
    try write(
      #""files": "o-*.csv", "format": "csv", "into": "orders", "delimiter": ";", "null": "NA""#
    )
    try succeed("run", "job.json")
    // A NULL in an INTEGER PRIMARY KEY gets the next rowid.
    #expect(try rows("SELECT id || note FROM orders ORDER BY id") == ["2b", "3a", "7c"])
  }

  @Test func `columns are expressions over the record, which may read other tables`() throws {
    try directory.write("order_id,mail,price\n1,ADA@X.ORG,1.005\n2,nobody@x.org,3\n", to: "o.csv")
    try succeed("schema", "shop.db")
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO customers VALUES (7, 'ada@x.org', 0)")
    try write(
      #"""
      "files": "o.csv", "format": "csv", "into": "orders", "types": { "price": "real" },
      "columns": { "id": "order_id", "price": "price * :factor",
        "note": "(SELECT id FROM customers WHERE email = lower(mail))" }
      """#,
      adding: #", "parameters": { "factor": { "type": "integer", "default": 10 } }"#
    )
    try succeed("run", "job.json")
    #expect(
      try rows("SELECT id || '|' || price || '|' || quote(note) FROM orders ORDER BY id")
        == ["1|10.05|'7'", "2|30.0|NULL"]
    )
  }

  // MARK: Conflicts and failures

  @Test(arguments: ["fail", "ignore", "update", "by index"])
  func `a record whose row exists does what the job says`(conflict: String) throws {
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO customers VALUES (1, 'a@x', 10), (2, 'b@x', 20)")
    let byIndex = conflict == "by index"
    try directory.write(
      byIndex ? "email,visits\na@x,11\nc@x,30\n" : "id,email,visits\n1,a@x,11\n3,c@x,30\n",
      to: "c.csv"
    )
    let setting = byIndex ? #"{ "update": ["email"] }"# : #""\#(conflict)""#
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers", "onConflict": \#(setting)"#,
      adding: #", "skip": { "limit": 5 }"#
    )
    let result = try succeed("run", "job.json", "--json", status: conflict == "fail" ? 4 : 0)
    let summary = try #require(try JSONOutput.lines(result.output).last)
    let outcomes = try #require(summary["outcomes"] as? [String: Any])
    let first = conflict == "update" || byIndex ? "1|a@x|11" : "1|a@x|10"
    #expect(
      try rows("SELECT id || '|' || email || '|' || visits FROM customers ORDER BY id")
        == [first, "2|b@x|20", "3|c@x|30"]
    )
    #expect(outcomes["failed"] as? Int == (conflict == "fail" ? 1 : 0))
    #expect(outcomes["unchanged"] as? Int == (conflict == "ignore" ? 1 : 0))
    #expect(outcomes["succeeded"] as? Int == (conflict == "fail" || conflict == "ignore" ? 1 : 2))
  }

  @Test func `each record that fails is named with its file, its line, the value and the reason`()
    throws
  {
    let bad = [
      "x,1,a,,": "id is \"x\", which is not a whole number",
      "2,1.2.3,a,,": "price is \"1.2.3\", which is not a number",
      "3,1,a,maybe,": "paid is \"maybe\", which is neither true nor false",
      "4,1,a,,***": "scan is \"***\", which is not Base64",
      "5,1": "has 2 fields, and the file 5 columns",
      "6,1,a,,,": "has 6 fields, and the file 5 columns",
      "7,1,\"a\"b,,": "has text behind the closing quote of field 3",
      "9223372036854775808,1,a,,": "which is not a whole number of 64 bits",
      "100,1,a,,": "UNIQUE constraint failed: orders.id (id is 100)",
    ]
    var lines = ["id,price,note,paid,scan", "100,1,\"two", "lines\",,"]
    var places: [String: Int] = [:]
    for (line, reason) in bad.sorted(by: { $0.key < $1.key }) {
      lines.append(line)
      places[reason] = lines.count
      lines.append("\(1000 + lines.count),1,good,,")
    }
    try directory.write(lines.joined(separator: "\n") + "\n", to: "o.csv")
    try write(
      #""files": "o.csv", "format": "csv", "into": "orders""#,
      adding: #", "skip": { "limit": 100 }"#
    )
    try succeed("run", "job.json", status: 4)
    #expect(try rows("SELECT count(*) FROM orders") == ["\(bad.count + 1)"])
    let failures = try succeed("ids", "job.json", "--outcome", "failed", "--reasons").output
    for (reason, line) in places {
      #expect(failures.contains("o.csv:\(line): "), "\(failures)")
      let escaped = reason.replacing("\"", with: "\"\"")
      #expect(failures.contains(escaped), "\(reason) in \(failures)")
    }
  }

  @Test func `an empty file has no records`() throws {
    try directory.write("", to: "a.csv")
    try directory.write("email,visits\na@x,1\n", to: "b.csv")
    try directory.write("", to: "c.csv")
    try write(#""files": "*.csv", "format": "csv", "into": "customers""#)
    try succeed("run", "job.json")
    #expect(try rows(Self.sum) == ["1|1"])
    try directory.write("{\"email\":\"b@x\",\"visits\":2}\n", to: "b.ndjson")
    try directory.write("", to: "a.ndjson")
    try write(#""files": "*.ndjson", "format": "ndjson", "into": "customers""#)
    try succeed("run", "job.json", "--fresh")
    #expect(try rows(Self.sum) == ["2|3"])
  }

  @Test func `failed records are loaded by retry-failed when the table takes them`() throws {
    try directory.write("email,visits\na@x,1\na@x,2\nb@x,3\n", to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers""#,
      adding: #", "skip": { "limit": 5 }"#
    )
    try succeed("run", "job.json", status: 4)
    #expect(try rows("SELECT email || visits FROM customers ORDER BY id") == ["a@x1", "b@x3"])
    try Connection(path: path).execute("DELETE FROM customers WHERE visits = 1")
    try succeed("retry-failed", "job.json")
    #expect(try rows("SELECT email || visits FROM customers ORDER BY visits") == ["a@x2", "b@x3"])
  }

  @Test func `a load stops at the first failure without skip, and resumes when mended`() throws {
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO customers VALUES (1, 'x', 0)")
    let lines = (0..<3_000).map { $0 == 2_500 ? "x,1" : "\($0)@x,\($0)" }
    try directory.write("email,visits\n" + lines.joined(separator: "\n") + "\n", to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers""#,
      adding: #", "chunk": { "size": 100 }"#
    )
    let failed = try succeed("run", "job.json", status: 1)
    let reason = "c.csv:2502: UNIQUE constraint failed: customers.email (email is 'x')"
    #expect(failed.errors.contains(reason), "\(failed.errors)")
    try connection.execute("DELETE FROM customers WHERE email = 'x'")
    try succeed("run", "job.json")
    #expect(try rows(Self.sum) == ["3000|\((0..<3_000).reduce(0, +) - 2_500 + 1)"])
  }

  @Test(arguments: ["fail", "update"])
  func `a record fails whatever the constraint's own clause says`(conflict: String) throws {
    let connection = try Connection(path: path)
    try connection.execute(
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY ON CONFLICT REPLACE, email TEXT UNIQUE ON CONFLICT REPLACE,
        n INTEGER NOT NULL ON CONFLICT IGNORE)
      """
    )
    try connection.execute("INSERT INTO own VALUES (1, 'a', 1), (2, 'b', 2)")
    try directory.write("id,email,n\n1,c,3\n3,b,4\n4,d,\n5,e,5\n", to: "own.csv")
    try write(
      #""files": "own.csv", "format": "csv", "into": "own", "onConflict": "\#(conflict)""#,
      adding: #", "skip": { "limit": 10 }"#
    )
    try succeed("run", "job.json", status: 4)
    let first = conflict == "update" ? "1c3" : "1a1"
    #expect(try rows("SELECT id || email || n FROM own ORDER BY id") == [first, "2b2", "5e5"])
  }

  @Test(arguments: ["fail", "ignore", "update"])
  func `a record that a trigger ignores fails`(conflict: String) throws {
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO customers VALUES (1, 'a', 1)")
    try connection.execute(
      """
      CREATE TRIGGER quiet BEFORE INSERT ON customers WHEN NEW.visits IS NULL
      BEGIN SELECT RAISE(IGNORE); END
      """
    )
    try directory.write("id,email,visits\n1,a,5\n2,b,\n3,c,7\n", to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers", "onConflict": "\#(conflict)""#,
      adding: #", "skip": { "limit": 10 }"#
    )
    let result = try succeed("run", "job.json", status: 4)
    #expect(
      result.output.contains("the trigger \"quiet\" keeps the record out"),
      "\(result.output)"
    )
    let failed = try succeed("ids", "job.json", "--outcome", "failed").output
    #expect(failed == (conflict == "fail" ? "1\n2\n" : "2\n"))
  }

  @Test func `names are those of SQL, in files, in expressions and in subqueries`() throws {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TABLE record (x)")
    try connection.execute("INSERT INTO record VALUES ('stored')")
    try directory.write(
      #"{"ID": 1, "Note": "a"}"# + "\n" + #"{"id": 2, "NOTE": "b"}"#,
      to: "o.ndjson"
    )
    try write(
      #"""
      "files": "o.ndjson", "format": "ndjson", "into": "orders", "columns": { "id": "id",
        "note": "(SELECT x FROM record) || _batch_record.note", "price": "CASE WHEN id > 10 THEN 1 ELSE 0 END" }
      """#
    )
    try succeed("run", "job.json")
    #expect(try rows("SELECT id || note || price FROM orders") == ["1storeda0.0", "2storedb0.0"])
    try directory.write("id,Id\n1,2\n", to: "o.csv")
    try write(#""files": "o.csv", "format": "csv", "into": "orders""#)
    try Refusal.expect(["plan", "job.json"], in: directory, says: ["two columns are called"])
  }

  @Test func `a value that only an expression uses has the type of the column of its name`() throws
  {
    try directory.write("id,email,visits\n1,a,7\n2,b,500\n", to: "c.csv")
    try write(
      #"""
      "files": "c.csv", "format": "csv", "into": "customers", "columns": { "id": "id", "email": "email",
        "visits": "CASE WHEN visits > 100 THEN 100 ELSE visits END" }
      """#
    )
    try succeed("run", "job.json")
    #expect(try rows("SELECT visits FROM customers ORDER BY id") == ["7", "100"])
  }

  @Test func `failures that differ only in line and values are one reason`() throws {
    let lines = (1...30).map { $0 < 20 ? "\($0),x\($0),a" : "1,1,b" }
    try directory.write("id,price,note\n" + lines.joined(separator: "\n"), to: "o.csv")
    try write(
      #""files": "o.csv", "format": "csv", "into": "orders""#,
      adding: #", "skip": { "limit": 100 }"#
    )
    let output = try succeed("run", "job.json", status: 4).output
    #expect(output.contains("19 failed: ") && output.contains("10 failed: "), "\(output)")
  }

  @Test func `a load that was undone half-way does not resume`() throws {
    let connection = try Connection(path: path)
    try connection.execute(Self.stop)
    let text = "email,visits\n" + (0..<3_000).map { "\($0)@x,\($0)\n" }.joined()
    try directory.write(text, to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers""#,
      adding: #", "chunk": { "size": 100 }, "undo": true"#
    )
    try succeed("run", "job.json", status: 1)
    try succeed("undo", "job.json")
    #expect(try rows("SELECT count(*) FROM customers") == ["0"])
    try connection.execute("DROP TRIGGER stop")
    let errors = try succeed("run", "job.json", status: 2).errors
    #expect(errors.contains("what it has done was undone"), "\(errors)")
    try succeed("run", "job.json", "--fresh")
    #expect(try rows("SELECT count(*) FROM customers") == ["3000"])
  }

  // MARK: Files that do not stay

  @Test(arguments: ["longer", "another byte", "gone"])
  func `a file that has changed under the run is refused`(change: String) throws {
    let text = "email,visits\n" + (0..<3_000).map { "\($0)@x,\($0)\n" }.joined()
    try directory.write(text, to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers""#,
      adding: #", "chunk": { "size": 100 }"#
    )
    let connection = try Connection(path: path)
    try connection.execute(Self.stop)
    try succeed("run", "job.json", status: 1)
    try connection.execute("DROP TRIGGER stop")
    let done = try rows("SELECT count(*) FROM customers")
    switch change {
    case "longer": try directory.write(text + "more@x,1\n", to: "c.csv")
    case "another byte": try directory.write(text.replacing("2900@x", with: "2901@y"), to: "c.csv")
    default: try FileManager.default.removeItem(atPath: directory.file("c.csv"))
    }
    let errors = try succeed("run", "job.json", status: 2).errors
    #expect(errors.contains("since the run began, the file has changed"), "\(errors)")
    #expect(try rows("SELECT count(*) FROM customers") == done)
    try directory.write(text, to: "c.csv")
    try succeed("run", "job.json")
    #expect(try rows("SELECT count(*) FROM customers") == ["3000"])
  }

  // MARK: Refusals

  private static let good = #""files": "c.csv", "format": "csv", "into": "orders""#

  @Test(arguments: [
    (#""files": "none.csv", "format": "csv", "into": "orders""#, "cannot be opened"),
    (#""files": "none-*.csv", "format": "csv", "into": "orders""#, "no file is called"),
    (#""files": "c.csv", "format": "csv", "into": "ordres""#, "did you mean \"orders\"?"),
    (#""files": "c.csv", "format": "csv", "into": "orders""#, "has no attribute \"mail\""),
    (good + #", "columns": { "id": "idd" }"#, "no such column: idd"),
    (good + #", "columns": { "id": "id); DELETE FROM orders; --" }"#, "action.columns.id"),
    (good + #", "columns": { "id": "id" }, "types": { "x": "real" }"#, "have no value \"x\""),
    (good + #", "columns": { "note": "id" }, "onConflict": "update""#, "sets no \"id\""),
    (#""files": "open.csv", "format": "csv", "into": "orders""#, "begins in line 2 is not closed"),
    (#""files": "twice.csv", "format": "csv", "into": "orders""#, "two columns are called \"id\""),
    (#""files": "c.gz", "format": "csv", "into": "orders""#, "the file is compressed"),
    (#""files": "c.csv", "format": "ndjson", "into": "orders""#, "is a JSON object"),
    (good + #", "delimiter": ";;""#, "action.delimiter"),
    (#""files": "semi.csv", "format": "csv", "into": "orders""#, "set action.delimiter to \";\""),
    (#""files": "tab.csv", "format": "csv", "into": "orders""#, "set action.delimiter to \"\\t\""),
    (good + #", "delimiter": ";""#, "set action.delimiter to \",\""),
    (#""files": "a.json", "format": "ndjson", "into": "orders""#, "jq -c '.[]'"),
    (#""files": "wide.csv", "format": "csv", "into": "orders""#, "the file is UTF-16"),
    (#""files": "empty*.csv", "format": "csv", "into": "orders""#, "nothing in any of the files"),
    (#""files": "empty.csv", "format": "csv", "into": "orders""#, "nothing in the file"),
    (
      #""files": "c.csv", "format": "ndjson", "into": "orders", "delimiter": ",""#,
      "only files of CSV have it"
    ),
  ])
  func `a load that cannot work is refused in one line, and nothing is written`(
    action: String,
    reason: String
  ) throws {
    try directory.write("id,mail\n1,a\n", to: "c.csv")
    try directory.write("id,note\n1,\"a\n2,b\n", to: "open.csv")
    try directory.write("id,id\n1,2\n", to: "twice.csv")
    try directory.write("id;note\n1;a\n", to: "semi.csv")
    try directory.write("id\tnote\n1\ta\n", to: "tab.csv")
    try directory.write("[\n  {\"id\": 1},\n  {\"id\": 2}\n]\n", to: "a.json")
    for name in ["empty.csv", "empty2.csv"] { try directory.write("", to: name) }
    try "id,note\n1,a\n".data(using: .utf16LittleEndian)?
      .write(to: URL(filePath: directory.file("wide.csv")))
    try Data([0x1f, 0x8b, 8, 0]).write(to: URL(filePath: directory.file("c.gz")))
    try write(action)
    try Refusal.expect(["run", "job.json"], in: directory, says: [reason])
  }

  // MARK: Plan and rehearsal

  @Test func `plan names files, types and first rows, and which records would fail`() throws {
    try directory.write("id,price,note\n1,2.5,a\nx,1,b\n1,3,c\n4,0,d\n", to: "o.csv")
    try write(#""files": "o.csv", "format": "csv", "into": "orders""#)
    let plan = try JSONOutput.object(succeed("plan", "job.json", "--json").output)
    #expect(plan["matches"] as? Int == 4)
    let load = try #require(plan["load"] as? [String: Any])
    let types = load["types"] as? [String: String]
    #expect(types == ["id": "integer", "price": "real", "note": "text"])
    let files = try #require(load["files"] as? [[String: Any]])
    #expect(files.count == 1 && files[0]["records"] as? Int == 4)
    let warnings = try #require(plan["warnings"] as? [String])
    #expect(
      warnings.contains {
        $0.hasPrefix("2 of the first 4 records would fail: ") && $0.contains("o.csv:3: id is \"x\"")
      },
      "\(warnings)"
    )
    let text = try succeed("plan", "job.json").output
    #expect(text.contains("4 records in 1 chunk") && text.contains("id integer"), "\(text)")
    #expect(try rows("SELECT count(*) FROM orders") == ["0"])
    let rehearsal = try succeed("rehearse", "job.json", status: 1)
    #expect(rehearsal.errors.contains("o.csv:3"), "\(rehearsal.errors)")
    #expect(try rows("SELECT count(*) FROM orders") == ["0"])
  }

  @Test func `undo takes back what a load inserted and updated, with what triggers wrote`() throws {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TABLE log (x)")
    try connection.execute(
      "CREATE TRIGGER note AFTER INSERT ON customers BEGIN INSERT INTO log VALUES (NEW.id); END"
    )
    try connection.execute("INSERT INTO customers VALUES (3, 'c@x', 30)")
    let all = """
      SELECT group_concat(quote(id) || quote(email) || visits) || (SELECT count(*) FROM log)
      FROM customers
      """
    let before = try rows(all)
    try directory.write("id,email,visits\n1,a@x,1\n3,c2@x,3\n4,a@x,4\n", to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers", "onConflict": "update""#,
      adding: #", "undo": true, "skip": { "limit": 5 }"#
    )
    try succeed("run", "job.json", status: 4)
    #expect(
      try rows("SELECT id || email || visits FROM customers ORDER BY id") == ["1a@x1", "3c2@x3"]
    )
    try succeed("verify", "job.json")
    try succeed("undo", "job.json")
    #expect(try rows(all) == before)
  }

  @Test func `a run resumes although its folder was moved, and files were added`() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("in"),
      withIntermediateDirectories: false
    )
    let text = "email,visits\n" + (0..<3_000).map { "\($0)@x,\($0)\n" }.joined()
    try directory.write(text, to: "in/c-1.csv")
    try write(
      #""files": "in/c-*.csv", "format": "csv", "into": "customers""#,
      adding: #", "chunk": { "size": 100 }"#
    )
    let connection = try Connection(path: path)
    try connection.execute(Self.stop)
    let failed = try succeed("run", "job.json", status: 1)
    #expect(failed.errors.contains("c-1.csv:1502: no"), "\(failed.errors)")
    try connection.execute("DROP TRIGGER stop")
    try directory.write("email,visits\nlater@x,1\n", to: "in/c-0.csv")
    let job = directory.file("job.json")
    let result = try BatchProgram(["run", job], in: try TemporaryDirectory()).wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try rows(Self.sum) == ["3000|4498500"])
    let added = "a file has come since the run began, and was not loaded: c-0.csv"
    #expect(result.errors.contains(added), "\(result.errors)")
  }

  // MARK: Kills

  @Test func `a load killed at random moments loads each record once`() throws {
    let count = KillLoop.rows(200_000)
    var lines = ["email,visits"]
    for number in 0..<count {
      lines.append(number % 97 == 5 ? "bad\(number),x" : "\(number)@x,\(number)")
    }
    try directory.write(lines.joined(separator: "\n") + "\n", to: "c.csv")
    try write(
      #""files": "c.csv", "format": "csv", "into": "customers""#,
      adding: #"""
        , "skip": { "limit": 100000 }, "chunk": { "size": 50 }, "checkpoint": { "interval": "1ms" }
        """#
    )
    let good = (0..<count).filter { $0 % 97 != 5 }
    let expected = "\(good.count)|\(good.reduce(0, +))"
    var loop = KillLoop("load", in: directory, failing: true)
    try loop.run(rows: count) { _ in
      defer { try? Connection(path: path).execute("DELETE FROM customers") }
      return try rows(Self.sum) == [expected]
    }
  }
}
