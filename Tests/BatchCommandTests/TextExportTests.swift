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
    (
      #"{"format": "csv", "compression": "lz4"}"#,
      #"unknown compression "lz4"; there are "none", "gzip", "zstd""#
    ),
    (
      #"{"format": "parquet", "compression": "zstd"}"#,
      #"unknown compression "zstd"; there are "none", "snappy", "lz4""#
    ),
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

  @Test(arguments: ["gzip", "zstd"])
  func `a compressed file has the text of a plain one, even of no rows`(
    compression: String
  ) throws {
    for action in [
      ["format": "ndjson"], ["format": "csv"], ["format": "csv", "bom": true, "null": "-"],
    ] as [[String: Any]] {
      for count in [5, 0] {
        let more = ["source": ["entity": "t", "where": "id <= \(count)"]]
        let text = try exported(action, more)
        _ = try exported(action.merging(["compression": compression]) { $1 }, more)
        let read = try CompressedText.read(directory.read("out"), compression)
        #expect(String(decoding: read.text, as: UTF8.self) == text)
      }
    }
  }

  @Test(arguments: [("ndjson", "zstd"), ("csv", "zstd"), ("csv", "gzip")])
  func `a compressed file that was killed and stopped has the bytes of one that was not`(
    format: String,
    compression: String
  ) throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    let count = 150_000
    // Completed with failures.
    let end: Int32 = format == "ndjson" ? 4 : 0
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE many (id INTEGER PRIMARY KEY, s TEXT, j TEXT)",
      """
      WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < \(count))
      INSERT INTO many SELECT x, 'row "' || x || '", ' || hex(x * 7919),
        iif(x * 7919 % 40000 = 0, '{', '[' || x || ']') FROM r
      """
    )
    func write(_ file: String, _ compression: String, _ more: [String: Any] = [:]) throws {
      var action: [String: Any] = [
        "type": "export", "file": file, "format": format, "compression": compression,
      ]
      // Some of these fail, which splits their chunks.
      if format == "ndjson" { action["json"] = ["j"] }
      let more = more.merging(["skip": ["limit": 100]]) { $1 }
      try directory.write(
        JobText.export(to: file, entity: "many", adding: more.merging(["action": action]) { $1 }),
        to: "job.json"
      )
    }
    for (file, compression) in [("plain", "none"), ("whole", compression)] {
      try write(file, compression)
      let whole = try BatchProgram.run("run", "job.json", "--fresh", in: directory)
      #expect(whole.status == end, "\(whole.errors)")
    }
    for round in 0..<40 {
      try write(
        "killed",
        compression,
        [
          "checkpoint": ["interval": "1ms"], "throttle": ["identifiersPerSecond": 200_000],
          "chunk": ["size": Int.random(in: 1...20_000, using: &random)],
          "workers": Int.random(in: 1...3, using: &random),
        ]
      )
      let program = try BatchProgram(
        ["run", "job.json", "--json"] + (round == 0 ? ["--fresh"] : []),
        in: directory
      )
      for _ in 0..<Int.random(in: 1...4, using: &random) { _ = program.nextLine() }
      program.send(Bool.random(using: &random) ? SIGKILL : SIGTERM)
      if program.wait().status == end { break }
    }
    let last = try BatchProgram.run("run", "job.json", in: directory)
    #expect(last.status == end, "\(last.errors)")
    let told: Comment = "seed \(seed)"
    let killed = try directory.read("killed")
    #expect(try killed == directory.read("whole"), told)
    let read = try CompressedText.read(killed, compression)
    #expect(try read.text == directory.read("plain"), told)
    #expect(read.frames > 5, told)
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
