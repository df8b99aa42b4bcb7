import BatchTestSupport
import Foundation
import Testing

/// Exports to Parquet, as a user runs them, against the rows that SQLite has.
@Suite(.timeLimit(.minutes(3))) struct ParquetExportTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func write(
    _ action: [String: Any],
    _ more: [String: Any] = [:],
    file: String = "out.parquet",
    _ entity: String = "t"
  ) throws {
    var keys = more
    keys["action"] =
      ["type": "export", "file": file, "format": "parquet"].merging(action) { $1 } as [String: Any]
    try directory.write(JobText.export(to: file, entity: entity, adding: keys), to: "job.json")
  }

  private func batch(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory).wait()
  }

  private func rows(_ file: String = "out.parquet") throws -> ParquetTwin {
    ParquetTwin(try directory.read(file))
  }

  @Test(arguments: ["none", "snappy"])
  func `a file has each value as its column's type, and NULL`(compression: String) throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10, 2), w REAL, ok BOOLEAN, b BLOB,
        day, at, big, u, plain)
      """,
      """
      INSERT INTO t VALUES
        (1, 'é', 12.5, 0.1, 1, x'00ff', '2026-11-29', '2026-11-29 08:30:00.125',
          '-12345678901234567890.5', '00000000-0000-4000-8000-00000000000f', 7),
        (-2, '', -0.07, 3, 0, x'', '1969-12-31', '1969-12-31T23:59:59Z', 1, x'000102030405060708090a0b0c0d0e0f',
          1.5),
        (9223372036854775807, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
      """
    )
    try write([
      "compression": compression,
      "types": ["day": "date", "at": "timestamp", "big": "decimal(30,2)", "u": "uuid"],
    ])
    let result = try batch("run", "job.json")
    #expect(result.status == 0, "\(result.errors)")
    let file = try rows()
    #expect(
      file.names == ["id", "name", "price", "w", "ok", "b", "day", "at", "big", "u", "plain"]
    )
    // Decimals are unscaled, and long ones 13 bytes in two's complement.
    #expect(
      file.rows.map { $0.map { $0 ?? "NULL" } } == [
        [
          "-2", "", "-7", "3.0", "false", "", "-1", "-1000000", "00000000000000000000000064",
          "000102030405060708090a0b0c0d0e0f", "1.5",
        ],
        [
          "1", "é", "1250", "0.1", "true", "00ff", "20786", "1795941000125000",
          "ffffffffbd12edc4f427dfc5c6", "0000000000004000800000000000000f", "7",
        ],
        ["9223372036854775807"] + Array(repeating: "NULL", count: 10),
      ]
    )
  }

  @Test func `a value of another type fails its row, as skip allows, or is NULL`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, price)",
      "INSERT INTO t VALUES (1, 1, 1.25), (2, 'many', 2), (3, 3, 'n/a'), (4, 4.5, 0.125), (5, 5, '1e1')"
    )
    let types = ["price": "decimal(4,2)"]
    try write(["types": types])
    let plan = try batch("plan", "job.json")
    let told = """
      3 of the first 5 rows fail, and the first stops the run: column "n" holds "many", which is no \
      integer
      """
    let words = (plan.output + plan.errors).replacing(#/\s+/#, with: " ")
    #expect(words.contains(told), "\(words)")
    #expect(plan.output.contains("types     id integer, n integer, price decimal(4,2)"))
    let failed = try batch("run", "job.json")
    #expect(failed.status == 1 && failed.errors.contains(#"column "n" holds "many""#))

    try write(["types": types], ["skip": ["limit": 3]])
    let skipped = try batch("run", "job.json", "--fresh")
    #expect(skipped.status == 4, "\(skipped.errors)")
    #expect(try rows().rows == [["1", "1", "125"], ["5", "5", "1000"]])
    #expect(try batch("ids", "job.json", "--outcome", "failed").output == "2\n3\n4\n")

    try write(["types": types, "onMismatch": "null"], file: "null.parquet")
    #expect(try batch("run", "job.json", "--fresh").status == 0)
    #expect(
      try rows("null.parquet").rows == [
        ["1", "1", "125"], ["2", nil, "200"], ["3", "3", nil], ["4", nil, nil], ["5", "5", "1000"],
      ]
    )
    #expect(
      try TestDatabase.texts(directory.file("test.db"), "SELECT typeof(n) FROM t WHERE id = 4")
        == ["real"]
    )
  }

  @Test func `types are refused where a file has none, and where they name no column`() throws {
    try TestDatabase.make(in: directory, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    func refusal(_ action: [String: Any]) throws -> String {
      try write(action)
      let result = try batch("validate", "job.json")
      #expect(result.status == 2)
      return result.errors
    }
    #expect(
      try refusal(["types": ["idd": "text"]]).contains(
        #"action.types.idd: the export writes no column "idd"; remove it, or name one of id"#
      )
    )
    #expect(
      try refusal(["types": ["id": "decimal(39,2)"]]).contains("decimal(PRECISION,SCALE)")
    )
    #expect(
      try refusal(["format": "csv", "types": ["id": "text"]]).contains(
        #"types: only the format "parquet" has it; remove it"#
      )
    )
  }

  @Test func `an export of no rows is a file with columns`() throws {
    try TestDatabase.make(in: directory, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    try write([:])
    #expect(try batch("run", "job.json").status == 0)
    let file = try rows()
    #expect(file.names == ["id", "a"] && file.rows.isEmpty && file.groups.isEmpty)
  }

  @Test func `a file that was killed and stopped has the bytes of one that was not`() throws {
    let count = 300_000
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)",
      """
      WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < \(count))
      INSERT INTO t SELECT x, x * 7919 % 1000 FROM r
      """
    )
    try write([:], file: "whole.parquet")
    #expect(try batch("run", "job.json").status == 0)
    let settings: [String: Any] = [
      "checkpoint": ["interval": "1ms"], "throttle": ["identifiersPerSecond": 400_000],
    ]
    try write([:], settings, file: "killed.parquet")
    var random = SeededGenerator(seed: 7)
    for round in 0..<40 {
      let program = try BatchProgram(
        ["run", "job.json", "--json"] + (round == 0 ? ["--fresh"] : []),
        in: directory
      )
      for _ in 0..<Int.random(in: 1...4, using: &random) { _ = program.nextLine() }
      program.send(Bool.random(using: &random) ? SIGKILL : SIGTERM)
      let result = program.wait()
      if result.status == 0 { break }
      let status = try JSONOutput.object(batch("status", "job.json", "--json").output)
      // What is done is in the file, in whole groups.
      let done = try #require(status["done"] as? Int)
      #expect(done % (1 << 17) == 0 || done == count)
    }
    #expect(try batch("run", "job.json").status == 0)
    #expect(try directory.read("killed.parquet") == directory.read("whole.parquet"))
    let file = try rows("killed.parquet")
    #expect(file.groups == [1 << 17, 1 << 17, count - 2 << 17])
    #expect(
      file.rows.count == count && file.rows[count - 1] == ["\(count)", "\(count * 7919 % 1000)"]
    )
  }
}
