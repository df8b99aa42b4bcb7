import BatchTestSupport
import Foundation
import Testing

/// `batch new`, which writes jobs.
@Suite struct NewCommandTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2500, in: directory)
    try TestDatabase.make(
      in: directory,
      #"CREATE TABLE "order items" ("a ""b""" TEXT, "größe" REAL, PRIMARY KEY ("a ""b""")) WITHOUT ROWID"#,
      #"INSERT INTO "order items" VALUES ('k', 1.5), ('ü', 2)"#,
      "CREATE VIEW small AS SELECT id AS number, label FROM numbers WHERE id < 10 LIMIT 5",
      "CREATE VIEW shared AS SELECT id / 2 AS kind, label FROM numbers WHERE id < 10"
    )
  }

  /// Writes a job to standard output, and checks that it is valid.
  private func make(_ arguments: String...) throws -> String {
    let result = try BatchProgram(["new"] + arguments, in: directory).wait()
    #expect(result.status == 0, "\(arguments): \(result.errors)")
    try directory.write(result.output, to: "job.json")
    let check = try BatchProgram.run("validate", "job.json", in: directory)
    #expect(check.status == 0, "\(arguments): \(check.errors)")
    return result.output
  }

  private func run(_ status: Int32 = 0) throws {
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == status, "\(result.errors)")
  }

  @Test func `new writes an update with the columns in order`() throws {
    let text = try make(
      "update",
      "test.db",
      "numbers",
      "--set",
      "n = id = 3",
      "--set",
      "label='it''s \"x\"'",
      "--where",
      "id <= 100"
    )
    let n = try #require(text.range(of: #""n": "id = 3""#))
    let label = try #require(text.range(of: #""label": "'it''s \"x\"'""#))
    #expect(n.lowerBound < label.lowerBound)
    try run()
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["1"])
    #expect(
      try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE label = 'it''s \"x\"'")
        == ["100"]
    )
  }

  @Test func `new writes a delete with an archive for a table with odd names`() throws {
    let text = try make(
      "delete",
      "test.db",
      "order items",
      "--everything",
      "--archive",
      "old \"items\""
    )
    #expect(text.contains(#""name": "delete-order-items""#))
    try run()
    #expect(try TestDatabase.texts(path, #"SELECT count(*) FROM "old ""items""""#) == ["2"])
    #expect(try TestDatabase.texts(path, #"SELECT count(*) FROM "order items""#) == ["0"])
  }

  @Test func `new writes an export of a table or a view`() throws {
    _ = try make(
      "export",
      "test.db",
      "small",
      "--key",
      "number",
      "--everything",
      "--file",
      "small.csv",
      "--column",
      "label"
    )
    try run()
    #expect(try String(decoding: directory.read("small.csv"), as: UTF8.self).contains("label 5"))
    let text = try make("export", "test.db", "numbers", "--where", "id < 3", "--file", "n.jsonl")
    #expect(text.contains(#""format": "ndjson""#))
    let all = try make("export", "test.db", "numbers", "--file", "n.txt", "--format", "csv")
    #expect(all.contains(#""format": "csv""#) && !all.contains("everything"))
  }

  @Test func `new writes a transform whose script leaves rows unchanged`() throws {
    _ = try make(
      "transform",
      "test.db",
      "numbers",
      "--where",
      "id < 50",
      "--read",
      "label",
      "--write",
      "n",
      "--name",
      "count"
    )
    try run()
    let status = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(status.contains("unchanged: 49"), "\(status)")
    // What was filled in counts.
    let script = try String(decoding: directory.read("count.py"), as: UTF8.self)
    try directory.write(
      script.replacing("# answer[\"n\"] = …", with: "answer[\"n\"] = len(row[\"label\"])"),
      to: "count.py"
    )
    try run()
    #expect(try TestDatabase.texts(path, "SELECT n FROM numbers WHERE id = 7") == ["7"])
  }

  @Test(.timeLimit(.minutes(5)))
  func `new writes a transform in Swift that compiles`() throws {
    let result = try BatchProgram.run(
      "new",
      "transform",
      "test.db",
      "order items",
      "--everything",
      "--read",
      "größe",
      "--read",
      "a \"b\"",
      "--write",
      "größe",
      "--language",
      "swift",
      "--name",
      "items",
      "--output",
      "items.json",
      in: directory
    )
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.names().contains("items.json"))
    let source = String(
      decoding: try directory.read("items/Sources/items/main.swift"),
      as: UTF8.self
    )
    let check = try SwiftCompiler.typecheck(
      // The call at the end is of a module whose dependencies are not all among the tests' modules.
      source.replacing(/import BatchTool\n/, with: "").replacing(/await BatchTool[^\n]*/, with: ""),
      in: directory
    )
    #expect(check.status == 0, "\(check.messages)")
    #expect(source.contains(#"await BatchTool(handlers: ["items": handler]).run()"#))
  }

  @Test func `new names the schema only in an installed program`() throws {
    #expect(try !make("delete", "test.db", "numbers", "--everything").contains("$schema"))
    for folder in ["bin", "share/batch"] {
      try FileManager.default.createDirectory(
        atPath: directory.file("my prefix/\(folder)"),
        withIntermediateDirectories: true
      )
    }
    let program = directory.file("my prefix/bin/batch")
    try FileManager.default.copyItem(atPath: BatchProgram.path, toPath: program)
    let schema = try Repository.text("Documentation/job.schema.json")
    try directory.write(schema, to: "my prefix/share/batch/job.schema.json")
    let arguments = ["new", "delete", "test.db", "numbers", "--everything"]
    let result = try BatchProgram(arguments, of: program, in: directory).wait()
    let named = try #require(JSONOutput.object(result.output)["$schema"] as? String)
    let url = try #require(URL(string: named))
    #expect(url.isFileURL && named.contains("my%20prefix"))
    #expect(try String(contentsOf: url, encoding: .utf8) == schema)
    try directory.write(result.output, to: "job.json")
    #expect(try BatchProgram.run("validate", "job.json", in: directory).status == 0)
  }

  @Test func `new replaces no file`() throws {
    try directory.write("mine", to: "job.json")
    let arguments = [
      "new", "update", "test.db", "numbers", "--everything", "--set", "n = 1", "--output",
      "job.json",
    ]
    try Refusal.expect(arguments, in: directory, says: ["job.json: there is already a file"])
    let elsewhere = Array(arguments.dropLast()) + ["no/job.json"]
    try Refusal.expect(elsewhere, in: directory, says: ["error: no: there is no such folder"])
    try directory.write("mine", to: "count.py")
    try Refusal.expect(
      [
        "new", "transform", "test.db", "numbers", "--everything", "--read", "n", "--write", "n",
        "--name", "count", "--output", "count.json",
      ],
      in: directory,
      says: ["count.py: there is already a file"]
    )
  }

  @Test(arguments: [
    (["update", "none.db", "numbers", "--everything", "--set", "n=1"], "none.db: no such file"),
    (["update", "test.db", "nubers", "--everything", "--set", "n=1"], "did you mean \"numbers\"?"),
    (
      ["update", "test.db", "numbers", "--everything", "--set", "lable=1"],
      "did you mean \"label\"?"
    ),
    (["update", "test.db", "numbers", "--where", "n >", "--set", "n=1"], "syntax error"),
    (
      ["update", "test.db", "numbers", "--where", "1; DROP TABLE x", "--set", "n=1"],
      "error: --where: "
    ),
    (["update", "test.db", "numbers", "--everything", "--set", "m=2"], "error: --set m: "),
    (
      ["export", "test.db", "small", "--key", "label", "--key", "nmber", "--file", "small.csv"],
      "error: --key: "
    ),
    (["export", "test.db", "shared", "--key", "kind", "--file", "a.csv"], "have the same kind"),
    (["delete", "test.db", "small", "--everything"], "is a view, which cannot be written"),
    (["transform", "test.db", "numbers", "--everything", "--read", "m", "--write", "n"], "\"m\""),
    (["export", "test.db", "numbers", "--everything", "--file", "no/n.csv"], "no folder"),
  ])
  func `new reports a problem and writes nothing`(arguments: [String], says: String) throws {
    try Refusal.expect(["new"] + arguments, in: directory, says: [says])
    try Refusal.expect(["new"] + arguments + ["--output", "new.json"], in: directory, says: [says])
  }

  @Test func `new without a terminal says what is missing`() throws {
    for (arguments, missing) in [
      (["new"], "the database, the table, --where or --everything, an action"),
      (["new", "update", "test.db"], "the table, --where or --everything, --set"),
      (["new", "export", "test.db", "numbers"], "give --file or --folder;"),
    ] {
      try Refusal.expect(arguments, in: directory, status: 64, says: [missing])
    }
    let result = try BatchProgram.run(
      "new",
      "update",
      "test.db",
      "numbers",
      "--everything",
      "--set",
      "n",
      in: directory
    )
    #expect(result.status == 64 && result.errors.contains("not of the form column=expression"))
    let export = try BatchProgram(
      ["new", "export", "test.db", "numbers", "--file", "out.xlsx"],
      in: directory
    ).wait()
    let reason = "error: the extension of \"out.xlsx\" does not say the format; give --format"
    #expect(export.status == 64 && export.errors.hasPrefix(reason), "\(export.errors)")
  }

  // MARK: - Questions

  @Test func `new on a terminal asks, counts the rows of a condition and shows the plan`() throws {
    let terminal = try PseudoTerminal(["new"], in: directory)
    #expect(terminal.shows("Database file: "))
    terminal.type("no.db\r")
    #expect(terminal.shows("no such file or directory"))
    terminal.type("test.db\r")
    #expect(terminal.shows("2,500 rows"))
    #expect(terminal.shows("Table: "))
    terminal.type("nubers\r")
    #expect(terminal.shows("did you mean \"numbers\"?"))
    terminal.type("numbers\r")
    #expect(terminal.shows("What to do: "))
    terminal.type("update\r")
    #expect(terminal.shows("columns: id, "))
    #expect(terminal.shows("Rows where (SQL, or all): "))
    terminal.type("\r")
    #expect(terminal.shows("or all for every row"))
    terminal.type("label = 'x\r")
    #expect(terminal.shows("is not closed"))
    terminal.type("id <= 500\r")
    #expect(terminal.shows("  500 rows, of 2,500 rows"))
    #expect(terminal.shows("Set (column = expression): "))
    terminal.type("lable = 1\r")
    #expect(terminal.shows("did you mean"))
    terminal.type("n = 7\r")
    #expect(terminal.shows("Set (empty to continue): "))
    terminal.type("\r")
    #expect(terminal.shows("[update-numbers.json]: "))
    terminal.type("no\r")
    #expect(terminal.shows("is not the name of a job file"))
    terminal.type("\r")
    #expect(terminal.shows("500 rows in 1 chunk"))
    let end = terminal.wait()
    #expect(end.status == 0)
    #expect(end.rest.contains("update-numbers.json is written"))
    let result = try BatchProgram.run("run", "update-numbers.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["3500"])
  }

  @Test func `new prints the command with the answers if its questions end early`() throws {
    let terminal = try PseudoTerminal(["new"], in: directory)
    for (question, answer) in [
      ("Database file: ", "test.db"), ("Table: ", "numbers"), ("What to do: ", "update"),
      ("or all): ", "label <> 'it''s'"), ("expression): ", "n = id + 1"), ("to continue): ", ""),
    ] {
      #expect(terminal.shows(question))
      terminal.type("\(answer)\r")
    }
    #expect(terminal.shows("[update-numbers.json]: "))
    terminal.type("\u{4}")
    let end = terminal.wait()
    #expect(end.status == 3)
    let start = try #require(end.rest.range(of: "batch new update "))
    let command = end.rest[start.lowerBound...].prefix { !$0.isNewline }
    let words = #"test.db numbers --where 'label <> '\''it'\'''\''s'\''' --set 'n = id + 1'"#
    #expect(command == "batch new update \(words)")
    let script = command.replacing("batch ", with: "'\(BatchProgram.path)' ", maxReplacements: 1)
    let again = try BatchProgram(["-c", "\(script) > job.json"], of: "/bin/sh", in: directory)
      .wait()
    #expect(again.status == 0, "\(again.errors)")
    let job = try String(decoding: directory.read("job.json"), as: UTF8.self)
    #expect(job.contains(#""n": "id + 1""#) && job.contains("label <> 'it''s'"))
  }

  @Test func `new asks again after a bad answer and gives the reason`() throws {
    let terminal = try PseudoTerminal(["new", "transform", "test.db", "numbers"], in: directory)
    #expect(terminal.shows("or all): "))
    terminal.type("ALL\r")
    #expect(terminal.shows("Columns that the program reads"))
    terminal.type(" , \r")
    #expect(terminal.shows("name at least one of id, "))
    terminal.type("label\r")
    #expect(terminal.shows("Columns that it may set"))
    terminal.type("n\r")
    #expect(terminal.shows("Language (python or swift) [python]: "))
    terminal.type("perl\r")
    #expect(terminal.shows("type python or swift"))
    #expect(terminal.shows("Language (python or swift) [python]: "))
    terminal.type("\r")
    #expect(terminal.shows("[transform-numbers.json]: "))
    terminal.type("\r")
    let end = terminal.wait()
    #expect(end.status == 0, "\(end.rest)")
    #expect(end.rest.contains("transform-numbers.py: fill in what the script computes"))
    let result = try BatchProgram.run("run", "transform-numbers.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test func `new asks only for missing values and prints only the job to standard output`() throws
  {
    let terminal = try PseudoTerminal(
      ["new", "export", "test.db", "numbers", "--everything"],
      in: directory,
      output: "out.json"
    )
    #expect(terminal.shows("[export-numbers.csv]: "))
    terminal.type("all.xlsx\r")
    #expect(terminal.shows("Format (csv or ndjson) [csv]: "))
    terminal.type("xls\r")
    #expect(terminal.shows("type csv or ndjson"))
    terminal.type("ndjson\r")
    #expect(terminal.wait().status == 0)
    let result = try BatchProgram.run("run", "-", in: directory, input: "out.json")
    #expect(result.status == 0, "\(result.errors)")
    let first = try directory.read("all.xlsx").first
    #expect(first == UInt8(ascii: "{"))
  }

  @Test(arguments: [true, false])
  func `new writes nothing after Ctrl-C or Ctrl-D`(isInterrupt: Bool) throws {
    let before = try directory.contents()
    let terminal = try PseudoTerminal(["new", "delete", "test.db"], in: directory)
    #expect(terminal.shows("Table: "))
    terminal.type("numbers\r")
    #expect(terminal.shows("or all): "))
    if isInterrupt {
      terminal.type("id = 1")
      terminal.interrupt()
    } else {
      terminal.type("\u{4}")
    }
    let end = terminal.wait()
    #expect(end.status == 3)
    #expect(end.rest.contains("batch new delete test.db numbers"))
    #expect(end.rest.contains("no job was written"))
    #expect(try directory.changes(since: before) == [])
  }
}
