import BatchTestSupport
import Foundation
import Testing

/// The forms of CSV and NDJSON that a job may ask for, as a user runs them.
@Suite(.timeLimit(.minutes(3))) struct TextExportTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, j)",
      #"""
      INSERT INTO t (a, b, j) VALUES (1, 'x', '{"a": [1.50, 2]}'), (NULL, '', 'null'), ('NA', x'', NULL),
        (1.5, x'0001', '[1,' || char(10) || ' 2]'), (';a', 'q"', 5)
      """#
    )
  }

  private func write(_ action: [String: Any], _ more: [String: Any] = [:]) throws {
    var keys = more
    keys["action"] = ["type": "export", "file": "out"].merging(action) { $1 } as [String: Any]
    try directory.write(JobText.export(to: "out", entity: "t", adding: keys), to: "job.json")
  }

  private func exported(_ action: [String: Any], _ more: [String: Any] = [:]) throws -> String {
    try write(action, more)
    let result = try BatchProgram.run("run", "job.json", "--fresh", in: directory)
    #expect([0, 4].contains(result.status), "\(result.errors)")
    return String(decoding: try directory.read("out"), as: UTF8.self)
  }

  @Test func `CSV has the job's delimiter, text of NULL, and byte order mark`() throws {
    let text = try exported(["format": "csv", "delimiter": ";", "null": "NA", "bom": true])
    let lines = [
      "\u{feff}id;a;b;j", #"1;1;x;"{""a"": [1.50, 2]}""#, #"2;NA;"";null"#, #"3;"NA";"";NA"#,
      "4;1.5;AAE=;\"[1,\n 2]\"", #"5;";a";"q""";5"#,
    ]
    #expect(text == lines.map { $0 + "\r\n" }.joined())
  }

  @Test func `CSV may quote all but NULL`() throws {
    let action: [String: Any] = ["format": "csv", "quote": "all", "columns": ["id", "a", "b"]]
    #expect(
      try exported(action)
        == ##""id","a","b"|"1","1","x"|"2",,""|"3","NA",""|"4","1.5","AAE="|"5",";a","q"""|"##
        .replacing("|", with: "\r\n")
    )
  }

  @Test func `NDJSON has the values of columns that are JSON`() throws {
    let text = try exported(["format": "ndjson", "json": ["J"], "columns": ["id", "j"]])
    #expect(
      text == """
        {"id":1,"j":{"a":[1.50,2]}}
        {"id":2,"j":null}
        {"id":3,"j":null}
        {"id":4,"j":[1,2]}
        {"id":5,"j":5}

        """
    )
  }

  @Test func `a row whose text is no JSON fails, as skip allows`() throws {
    let action: [String: Any] = ["format": "ndjson", "json": ["b"], "columns": ["b"]]
    try write(action)
    let failed = try BatchProgram.run("run", "job.json", in: directory)
    #expect(failed.status == 1)
    #expect(
      failed.errors.contains(#"identifier 1: column "b" holds "x", which is no JSON; correct it"#)
    )

    try TestDatabase.make(in: directory, "UPDATE t SET b = '[]' WHERE id = 2")
    #expect(try exported(action, ["skip": ["limit": 4]]) == "{\"b\":[]}\n")
    let keys = try BatchProgram.run("ids", "job.json", "--outcome", "failed", in: directory)
    #expect(keys.output == "1\n3\n4\n5\n")
  }

  @Test(arguments: [
    (
      #"{"format": "ndjson", "delimiter": ";"}"#,
      #"action.delimiter: only the format "csv" has it; remove it"#
    ),
    (
      #"{"format": "ndjson", "null": "x"}"#,
      #"action.null: only the format "csv" has it; remove it"#
    ),
    (
      #"{"format": "parquet", "bom": true}"#,
      #"action.bom: only the format "csv" has it; remove it"#
    ),
    (
      #"{"format": "parquet", "quote": "all"}"#,
      #"action.quote: only the format "csv" has it; remove it"#
    ),
    (
      #"{"format": "csv", "json": ["j"]}"#,
      #"action.json: only the format "ndjson" has it; remove it"#
    ),
    (#"{"format": "cvs", "delimiter": ";"}"#, #"unknown format "cvs"; did you mean "csv"?"#),
    (#"{"format": "csv", "delimiter": ";;"}"#, "action.delimiter: expected a character"),
    (
      #"{"format": "csv", "delimiter": "é"}"#, #"action.delimiter: "é" cannot stand between fields"#
    ),
    (#"{"format": "csv", "delimiter": "\""}"#, "cannot stand between fields"),
    (#"{"format": "csv", "delimiter": "\r\n"}"#, "cannot stand between fields"),
    (#"{"format": "csv", "null": "a,b"}"#, #"action.null: "a,b" would need quotes"#),
    (#"{"format": "csv", "delimiter": "N", "null": "NA"}"#, #""NA" would need quotes"#),
    (#"{"format": "csv", "quote": "none"}"#, #"unknown quote "none""#),
    (
      #"{"format": "ndjson", "json": ["k"]}"#,
      #"action.json[0]: the export writes no column "k"; remove it, or name one of id, a, b, j"#
    ),
    (#"{"format": "ndjson", "json": ["j"], "columns": ["a"]}"#, #"writes no column "j""#),
    (
      #"{"format": "ndjson", "json": ["j", "J"]}"#,
      #"action.json[1]: the column "J" is named twice"#
    ),
  ])
  func `a key that does not fit is refused with one error`(action: String, error: String) throws {
    try write(JSONOutput.object(action))
    try Refusal.expect(["run", "job.json"], in: directory, says: [error])
  }

  @Test func `a run resumes only with the settings that it began with`() throws {
    let more: [String: Any] = ["chunk": ["size": 1], "skip": ["limit": 0]]
    try write(["format": "ndjson", "json": ["b"]], more)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    try write(["format": "ndjson"], more)
    try Refusal.expect(
      ["run", "job.json"],
      in: directory,
      says: [#"json was ["b"], is now not set"#]
    )
  }
}
