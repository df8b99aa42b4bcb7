#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports from a server to Parquet, against the values that the server has.
@Suite(.timeLimit(.minutes(5))) struct SharedParquetTests {
  private static func write(
    _ job: SharedJob,
    _ action: [String: Any] = [:],
    _ more: [String: Any] = [:],
    file: String = "out.parquet"
  ) throws {
    var keys = more
    keys["source"] = ["entity": "items", "everything": true]
    keys["action"] =
      ["type": "export", "file": file, "format": "parquet"].merging(action) { $1 } as [String: Any]
    try job.writeJob(keys)
  }

  private static func rows(_ job: SharedJob, _ file: String = "out.parquet") throws -> ParquetTwin {
    ParquetTwin(try job.directory.read(file))
  }

  /// Columns with the type in a plan, the values of row `i`, and the text that the twin of the file has of `c`.
  private static let columns:
    [(name: String, type: String, inPlan: String, value: String, text: String)] = [
      ("a", "smallint", "integer", "i - 100", "c::text"),
      ("b", "bigint", "integer", "i * 9000000000000", "c::text"),
      ("c1", "real", "real", "i / 10.0", "c::text"),
      (
        "d", "double precision", "real",
        "CASE i % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE i / 7.0 END", "c::text"
      ),
      ("e", "numeric(10,2)", "decimal(10,2)", "i / -3.0", "(c * 100)::bigint::text"),
      (
        "f", "numeric(30,5)", "decimal(30,5)", "i * -12345678901234567.5",
        "(c * 100000)::numeric(35,0)::text"
      ),
      ("g", "numeric", "text", "i / 3.0", "c::text"),
      ("h", "boolean", "boolean", "i % 3 = 0", "c::text"),
      ("j", "date", "date", "date '1900-01-01' + i::int * 500", "(c - date '1970-01-01')::text"),
      (
        "k", "timestamp", "timestamp",
        "timestamp '1969-12-31 23:59:59.5' + i * interval '1.000001 s'",
        "(extract(epoch FROM c) * 1000000)::bigint::text"
      ),
      (
        "l", "timestamptz", "timestamptz",
        "timestamptz '2026-03-29 01:59:59+01' + i * interval '1 h'",
        "(extract(epoch FROM c) * 1000000)::bigint::text"
      ),
      ("m", "uuid", "uuid", "md5(i::text)::uuid", "replace(c::text, '-', '')"),
      ("n", "bytea", "blob", "decode(md5(i::text), 'hex')", "encode(c, 'hex')"),
      ("o", "jsonb", "json", "jsonb_build_array(i, NULL)", "c::text"),
      ("p", "text", "text", "repeat('é', i::int % 40)", "c"),
      ("q", "char(5)", "text", "'x'", "c || repeat(' ', 4)"),
      ("r", "int[]", "text", "ARRAY[i, NULL]", "c::text"),
      ("s", "interval", "text", "i * interval '1 day'", "c::text"),
      ("t", "money_code", "text", "'EUR'", "c::text"),
    ]

  @Test func `a file from a server has each value as its column's type, and NULL`() throws {
    let columns = Self.columns
    let definitions = columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
    let values = columns.map { "CASE WHEN i % 7 = 0 THEN NULL ELSE (\($0.value))::\($0.type) END" }
    let job = try SharedJob(
      rows: 1,
      """
      CREATE DOMAIN money_code AS varchar(3);
      CREATE TABLE items (id int PRIMARY KEY, \(definitions));
      INSERT INTO items SELECT i, \(values.joined(separator: ", ")) FROM generate_series(1, 500) AS i
      """
    )
    try Self.write(job)
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    let types = try #require(plan["types"] as? [String: String])
    for column in columns { #expect(types[column.name] == column.inPlan, "\(column.name)") }
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    let file = try Self.rows(job)
    #expect(file.names == ["id"] + columns.map(\.name) && file.rows.count == 500)
    let session = try job.database.session()
    for (place, column) in columns.enumerated() {
      let text = column.text.replacing(/\bc\b/, with: column.name)
      let found = try session.execute(
        "SELECT \(text) FROM items ORDER BY id"
      )
      for row in 0..<500 {
        let expected = found.text(row, 0)
        let value = file.rows[row][place + 1].map { Self.normal($0, column.inPlan) }
        #expect(
          value == expected.map { Self.normal($0, column.inPlan, isExpected: true) },
          "\(column.name) \(row)"
        )
      }
    }
  }

  /// The text of a value of a type, whoever wrote it.
  private static func normal(_ text: String, _ type: String, isExpected: Bool = false) -> String {
    switch type {
    case "real": return Double(text).map { "\($0)" } ?? text
    case "decimal(30,5)" where !isExpected:
      // A long decimal is in two's complement.
      var number: Int128 = text.first.map { "89abcdef".contains($0) } == true ? -1 : 0
      for digit in text { number = number << 4 | Int128(digit.hexDigitValue ?? 0) }
      return "\(number)"
    default: return text
    }
  }

  @Test func `a value without a form in Parquet fails its row on a server, or is NULL`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE items (id int PRIMARY KEY, day date, price numeric(6, 2), free numeric);
      INSERT INTO items VALUES (1, '2026-11-29', 1.5, 2), (2, 'infinity', 2, 2.5), (3, '2026-11-30', 'NaN', 7),
        (4, '10000-01-01', 3, 1000.00), (5, NULL, NULL, NULL)
      """
    )
    let types = ["free": "integer"]
    try Self.write(job, ["types": types])
    let plan = try job.batch("plan", "job.json")
    let words = (plan.output + plan.errors).replacing(#/\s+/#, with: " ")
    #expect(
      words.contains(
        "3 of the first 5 rows fail, and the first stops the run: column \"day\" holds \"infinity\""
      ),
      "\(words)"
    )
    #expect(try job.start().wait().status == 1)
    try Self.write(job, ["types": types], ["skip": ["limit": 3]])
    let skipped = try job.start("--fresh").wait()
    #expect(skipped.status == 4, "\(skipped.errors)")
    #expect(try Self.rows(job).rows == [["1", "20786", "150", "2"], ["5", nil, nil, nil]])
    try Self.write(job, ["types": types, "onMismatch": "null"], file: "null.parquet")
    #expect(try job.start("--fresh").wait().status == 0)
    #expect(
      try Self.rows(job, "null.parquet").rows == [
        ["1", "20786", "150", "2"], ["2", nil, "200", nil], ["3", "20787", nil, "7"],
        ["4", nil, "300", "1000"], ["5", nil, nil, nil],
      ]
    )
  }

  @Test func `a text that is no JSON is not written as JSON`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE items (id int PRIMARY KEY, doc text);
      INSERT INTO items VALUES (1, '{"a": 1}'), (2, 'none'), (3, ''), (4, NULL)
      """
    )
    try Self.write(job, ["types": ["doc": "json"], "onMismatch": "null"])
    #expect(try job.start().wait().status == 0)
    #expect(
      try Self.rows(job).rows == [["1", #"{"a": 1}"#], ["2", nil], ["3", nil], ["4", nil]]
    )
  }

  @Test func `a killed export to Parquet from a server has the bytes of one that was not`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE items (id int PRIMARY KEY, a text, b float8);
      INSERT INTO items SELECT i, md5(i::text) || repeat('x', i % 900), i / 7.0 FROM generate_series(1, 40000) AS i
      """
    )
    try Self.write(job, file: "whole.parquet")
    #expect(try job.start().wait().status == 0)
    try Self.write(job, [:], ["throttle": ["identifiersPerSecond": 20_000]])
    for attempt in 0..<3 {
      let killed = try attempt == 0 ? job.start("--fresh") : job.start()
      _ = killed.send(SIGKILL, afterSeconds: Double.random(in: 0.3...1.2))
      _ = killed.wait()
    }
    try Self.write(job)
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.directory.read("out.parquet") == job.directory.read("whole.parquet"))
  }
}
#endif
