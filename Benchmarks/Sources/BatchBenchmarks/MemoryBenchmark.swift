import Foundation

/// An update of a third of the rows of ever larger tables: memory and log must not grow with them.
struct MemoryBenchmark {
  let tools: Tools
  let folder: URL

  struct Result: Codable {
    let rows: Int
    let seconds: Double
    let peakResidentBytes: Int
    let peakWALBytes: Int
    let checkpointBytes: Int

    static let header = ["rows", "time (s)", "memory (MB)", "log (MB)", "checkpoint (MB)"]

    var cells: [String] {
      func megabytes(_ bytes: Int) -> String { Report.text(Double(bytes) / 1e6, digits: 1) }
      return [
        "\(rows)", Report.text(seconds, digits: 1), megabytes(peakResidentBytes),
        megabytes(peakWALBytes), megabytes(checkpointBytes),
      ]
    }
  }

  /// Creates a table of `count` rows, and updates every third of them.
  func run(rows: Int) throws -> Result {
    let directory = folder.appendingPathComponent("memory")
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let database = directory.appendingPathComponent("flights.db").path
    try tools.run([
      "sqlite3", database, "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF",
      """
      CREATE TABLE thin (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, s TEXT);
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows))
      INSERT INTO thin SELECT i, i * 2654435761 % 1000, 'row ' || i FROM c
      """,
    ])
    let job = directory.appendingPathComponent("job.json")
    try Data(
      """
      {"version": 1, "name": "thin", "database": {"path": "flights.db"},
       "source": {"entity": "thin", "where": "n < 333"},
       "action": {"type": "update", "set": {"s": "s || '!'"}}}
      """.utf8
    )
    .write(to: job)
    try tools.run([tools.batch, "run", job.path, "--quiet"])
    let text = try tools.run([tools.batch, "status", job.path, "--json"])
    let status = try JSONDecoder().decode(RunStatus.self, from: Data(text.utf8))
    let checkpoint = directory.appendingPathComponent("job.batch").path
    let size = try FileManager.default.attributesOfItem(atPath: checkpoint)[.size] as? Int
    return Result(
      rows: rows,
      seconds: status.elapsedSeconds,
      peakResidentBytes: status.peakResidentBytes,
      peakWALBytes: status.peakWALBytes,
      checkpointBytes: size ?? 0
    )
  }
}
