#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation

/// Rows of PostgreSQL, and runs that its tables keep, or a file.
final class ServerWorld: RunWorld {
  let world: World
  var rows: Int
  let entity = "t"
  var settings: [String: Any] = [:]
  var isChanged = false
  private let job: SharedJob

  init(_ world: World, rows: Int?) throws {
    self.world = world
    // A file of the export is a span, and a span has 10,000 identifiers or more.
    self.rows = rows ?? (world == .postgresParts ? 20_100 : 60)
    job = try SharedJob(rows: self.rows)
    try writeJob()
    guard world == .postgresUndo else { return }
    guard try job.batch("run", "job.json", "--quiet").status == 0 else {
      throw CocoaError(.coderInvalidValue)
    }
  }

  var directory: TemporaryDirectory { job.directory }
  var program: String { "batch" }
  var command: [String] {
    // What an undo does is named by its arguments, and not by the job.
    [world.isUndo ? "undo" : "run", "job.json"]
      + (world.isUndo && isChanged ? ["--ids", "some.ids"] : [])
  }
  var subject: String { world.isUndo ? "job.undo" : "job.json" }

  func writeJob() throws {
    var more: [String: Any] = [
      "database": ["url": job.url(), "lease": "1s"], "workers": 1,
      "chunk": ["size": world == .postgresParts ? 2_000 : 10],
    ]
    var action: [String: Any] =
      switch world {
      case .postgresExport: ["type": "export", "file": "out.ndjson", "format": "ndjson"]
      case .postgresParts: ["type": "export", "folder": "out", "format": "ndjson"]
      default: ["type": "update", "set": ["n": isChanged && !world.isUndo ? "n + 2" : "n + 1"]]
      }
    if isChanged, !world.adds, !world.isUndo { action["columns"] = ["id"] }
    if world.isUndo { more["undo"] = true }
    if world.isUndo, isChanged, try !directory.names().contains("some.ids") {
      try job.batch("ids", "job.json", "--output", "some.ids")
    }
    if world == .postgresExport { more["checkpoint"] = ["interval": "1ms"] }
    more["action"] = action
    try job.writeJob(more.merging(settings) { $1 })
  }

  func counts() throws -> [String] {
    switch world {
    case .postgresExport: return try FileWorld.counts(of: directory, "out.ndjson", rows)
    case .postgresParts:
      guard FileManager.default.fileExists(atPath: directory.file("out/manifest.json")) else {
        return rows == 0 ? [] : ["0 x \(rows)"]
      }
      let manifest = try JSONOutput.object(
        String(decoding: directory.read("out/manifest.json"), as: UTF8.self)
      )
      let parts = (manifest["parts"] as? [[String: Any]] ?? []).compactMap { $0["file"] as? String }
      return FileWorld.counts(ofLines: try parts.flatMap { try directory.read("out/\($0)") }, rows)
    case .postgresUndo:
      // A row that was restored has its old value.
      return try job.counts().map { count in
        count.hasPrefix("0 ") ? "1\(count.dropFirst())" : "0\(count.dropFirst())"
      }.sorted()
    default: return try job.counts()
    }
  }

  func execute(_ sql: String) throws { try job.database.run(sql) }

  func poison(_ rows: [Int]) throws {
    let list = (rows + [-1]).map(String.init).joined(separator: ", ")
    try job.database.run(
      """
      ALTER TABLE t DROP CONSTRAINT IF EXISTS poison;
      ALTER TABLE t ADD CONSTRAINT poison CHECK (id NOT IN (\(list)) OR n < 1) NOT VALID
      """
    )
  }

  func attempts() throws -> [Int] {
    let rows = try job.database.session().execute("SELECT attempt::text FROM _batch_failure")
    return (0..<rows.count).compactMap { rows.text($0, 0).flatMap { Int($0) } }
  }

  func loseRecord() throws {
    guard !world.isShared else {
      return try job.database.run("TRUNCATE _batch_run CASCADE")
    }
    try FileManager.default.moveItem(
      atPath: directory.file("job.batch"),
      toPath: directory.file("job.batch.lost")
    )
  }
}
#endif
