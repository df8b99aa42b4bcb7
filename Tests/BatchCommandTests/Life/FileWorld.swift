import BatchTestSupport
import Foundation

/// Rows of SQLite, and runs that files keep.
final class FileWorld: RunWorld {
  let world: World
  let directory: TemporaryDirectory
  var rows: Int
  let entity = "numbers"
  var settings: [String: Any] = [:]
  var isChanged = false
  private let path: String

  init(_ world: World, rows: Int?) throws {
    self.world = world
    self.rows = rows ?? 60
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(self.rows, in: directory)
    if self.rows == 0 { try TestDatabase.make(in: directory, "DELETE FROM numbers") }
    try writeJob()
    guard world == .undo else { return }
    let result = try BatchProgram.run("run", "job.json", "--quiet", in: directory)
    guard result.status == 0 else { throw CocoaError(.coderInvalidValue) }
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE touched (id INTEGER)",
      """
      CREATE TRIGGER touch AFTER UPDATE OF n ON numbers
      BEGIN INSERT INTO touched VALUES (old.id); END
      """
    )
  }

  var program: String { world == .objects ? "CrashingContexts" : "batch" }

  var command: [String] {
    // What an undo does is named by its arguments, and not by the job.
    [world == .undo ? "undo" : "run", "job.json"]
      + (world == .undo && isChanged ? ["--ids", "some.ids"] : [])
  }

  var subject: String {
    switch world {
    case .objects: "job.batch"
    case .undo: "job.undo"
    default: "job.json"
    }
  }

  func writeJob() throws {
    // A run by objects does what its closure says, so that its name must tell it from others.
    let isOther = isChanged && world == .objects
    let base: [String: Any] = [
      "name": isOther ? "other" : "job", "chunk": ["size": 10], "workers": 1,
      "checkpoint": ["interval": "1ms"], "undo": world == .undo,
    ]
    let more = base.merging(settings) { $1 }
    if world == .sqliteExport {
      var export = more
      export["undo"] = nil
      if isChanged {
        export["action"] = [
          "type": "export", "file": "out.ndjson", "format": "ndjson", "columns": ["id"],
        ]
      }
      try directory.write(JobText.export(to: "out.ndjson", adding: export), to: "job.json")
    } else {
      let set = isChanged && world == .sqlite ? "n + 2" : "n + 1"
      try directory.write(JobText.update(["n": set], adding: more), to: "job.json")
    }
    if world == .undo, isChanged, try !directory.names().contains("some.ids") {
      try BatchProgram.run("ids", "job.json", "--output", "some.ids", in: directory)
    }
  }

  func counts() throws -> [String] {
    switch world {
    case .sqliteExport: return try Self.counts(of: directory, "out.ndjson", rows)
    case .undo:
      // A row that was restored has its old value.
      return try TestDatabase.texts(
        path,
        """
        SELECT times || ' x ' || count(*) || iif((times > 0) = (n = 0), '', ' wrong')
        FROM (SELECT n, (SELECT count(*) FROM touched AS t WHERE t.id = numbers.id) AS times FROM numbers)
        GROUP BY times, n ORDER BY times, n
        """
      )
    default:
      return try TestDatabase.texts(
        path,
        "SELECT n || ' x ' || count(*) FROM numbers GROUP BY n ORDER BY n"
      )
    }
  }

  /// How often the lines of a file of an export are there, each of which names its row.
  static func counts(
    of directory: TemporaryDirectory,
    _ file: String,
    _ rows: Int
  ) throws -> [String] {
    let bytes = try directory.names().contains(file) ? directory.read(file) : []
    return counts(ofLines: bytes, rows)
  }

  static func counts(ofLines bytes: [UInt8], _ rows: Int) -> [String] {
    var times: [ArraySlice<UInt8>: Int] = [:]
    for line in bytes.split(separator: UInt8(ascii: "\n")) { times[line, default: 0] += 1 }
    var counts: [Int: Int] = [:]
    for count in times.values { counts[count, default: 0] += 1 }
    if rows > times.count { counts[0] = rows - times.count }
    return counts.sorted { $0.key < $1.key }.map { "\($0.key) x \($0.value)" }
  }

  func execute(_ sql: String) throws { try TestDatabase.make(in: directory, sql) }

  func poison(_ rows: [Int]) throws {
    let list = rows.map(String.init).joined(separator: ", ")
    try TestDatabase.make(
      in: directory,
      "DROP TRIGGER IF EXISTS poison",
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id IN (\(list))
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
  }

  func attempts() throws -> [Int] {
    let inspection = try BatchProgram.run("inspect", "job.batch", "--json", in: directory)
    let run = try JSONOutput.object(inspection.output)["run"] as? [String: Any]
    return (run?["failed"] as? [[String: Any]] ?? []).compactMap { $0["attempt"] as? Int }
  }

  func loseRecord() throws {
    let name = world == .undo ? "job.undo" : "job.batch"
    try FileManager.default.moveItem(
      atPath: directory.file(name),
      toPath: directory.file("\(name).lost")
    )
  }
}
