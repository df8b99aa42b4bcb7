import BatchTestSupport
import Foundation
import Testing

/// Rows that are each a good part of the memory that a run may take.
@Suite(.serialized) struct LargeRowTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0, b NOT NULL)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 12)
      INSERT INTO numbers (b) SELECT printf('%.*c', 10000000, 'a') FROM c
      """
    )
  }

  /// The most memory that the job took, in bytes.
  private func peak(_ job: String, rows: Int = 12) throws -> Int {
    try directory.write(job, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect((last["outcomes"] as? [String: Int])?["succeeded"] == rows)
    return try #require(last["peakResidentBytes"] as? Int)
  }

  @Test func `an export holds about one large row in memory`() throws {
    #expect(try peak(JobText.export(to: "out.ndjson")) < 128_000_000)
    let size = try FileManager.default.attributesOfItem(atPath: directory.file("out.ndjson"))[.size]
    #expect(try #require(size as? Int) > 120_000_000)
  }

  @Test func `a command that returns large values is given one row at a time`() throws {
    try directory.write(
      """
      #!/bin/sh
      while read -r line; do
        printf '{"b":"'; head -c 10000000 /dev/zero | tr '\\0' z; printf '"}\\n'
      done
      """,
      to: "compute.sh"
    )
    let action: [String: Any] = [
      "type": "transform", "columns": ["id"], "writes": ["b"], "command": ["sh", "compute.sh"],
    ]
    // The answers to all of these rows exceed the limit, and only as much as necessary is read.
    let job = try JobText.update(where: "id <= 7", adding: ["action": action])
    #expect(try peak(job, rows: 7) < 96_000_000)
    let lengths = try TestDatabase.texts(
      path,
      "SELECT DISTINCT length(b) || rtrim(b, 'z') FROM numbers WHERE id <= 7"
    )
    #expect(lengths == ["10000000"])
  }

  @Test func `an update of large rows runs in bounded memory`() throws {
    #expect(try peak(JobText.update(["b": "replace(b, 'a', 'c')"])) < 128_000_000)
  }
}
