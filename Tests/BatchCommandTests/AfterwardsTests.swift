import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Space that a run gives back after its last row.
@Suite(.timeLimit(.minutes(5))) struct AfterwardsTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("test.db")
  }

  private func makeRows(_ count: Int = 20_000, _ pragma: String = "PRAGMA journal_mode = wal")
    throws
  {
    try TestDatabase.make(
      in: directory,
      pragma,
      "CREATE TABLE numbers (id TEXT PRIMARY KEY, n INTEGER, label TEXT)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(count))
      INSERT INTO numbers SELECT printf('%08d', i), i, hex(zeroblob(200)) || i FROM c
      """,
      "CREATE TABLE loose (n)"
    )
  }

  private func writeJob(_ kind: String, keeping kept: Int, adding more: [String: Any] = [:]) throws
  {
    let base: [String: Any] = ["afterwards": kind, "chunk": ["size": 1000]]
    try directory.write(
      JobText.delete(where: "n > \(kept)", adding: base.merging(more) { $1 }),
      to: "job.json"
    )
  }

  @discardableResult
  private func batch(_ arguments: String..., environment: [String: String] = [:]) throws
    -> BatchProgram.Result
  {
    try BatchProgram(arguments, in: directory, environment: environment).wait()
  }

  private func status() throws -> [String: Any] {
    try JSONOutput.object(batch("status", "job.json", "--json").output)
  }

  private func afterwards() throws -> [String: Any]? {
    try status()["afterwards"] as? [String: Any]
  }

  private var fileBytes: Int {
    get throws {
      try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
    }
  }

  private func rows() throws -> [String] {
    try TestDatabase.texts(path, "SELECT id || ' ' || n || ' ' || label FROM numbers ORDER BY id")
  }

  private func expectIntact(_ count: Int) throws {
    #expect(try TestDatabase.texts(path, "PRAGMA integrity_check") == ["ok"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers") == ["\(count)"])
  }

  @Test(arguments: ["vacuum", "incremental"])
  func `a purge gives the space back, and tells how much before and after`(kind: String) throws {
    try makeRows(20_000, kind == "vacuum" ? "PRAGMA journal_mode = wal" : "PRAGMA auto_vacuum = 2")
    try writeJob(kind, keeping: 100, adding: ["report": ["path": "run.html"]])
    let before = try fileBytes
    let plan = try JSONOutput.object(batch("plan", "job.json", "--json").output)
    let planned = try #require(plan["afterwards"] as? [String: Any])
    #expect(planned["by"] as? String == kind && planned["bytes"] as? Int == before)
    #expect((planned["neededBytes"] as? Int == before * 2) == (kind == "vacuum"))
    let warnings = plan["warnings"] as? [String] ?? []
    #expect(warnings.contains { $0.contains("rowids of \"loose\"") } == (kind == "vacuum"))
    #expect(try batch("plan", "job.json").output.contains("\nafterwards"))
    #expect(try fileBytes == before)

    let run = try batch("run", "job.json", "--json")
    #expect(run.status == 0, "\(run.errors)")
    let space = try #require(JSONOutput.lines(run.output).last?["afterwards"] as? [String: Any])
    #expect(space["by"] as? String == kind && space["error"] == nil)
    #expect(space["bytesBefore"] as? Int ?? 0 >= before)
    #expect(try space["bytesAfter"] as? Int == fileBytes)
    #expect(try fileBytes < before / 5)
    #expect(try TestDatabase.texts(path, "PRAGMA freelist_count") == ["0"])
    try expectIntact(100)
    #expect(try batch("status", "job.json").output.contains(" before, "))
    #expect(try batch("history", "job.json", "--json").output.contains("\"bytesAfter\""))
    let page = try String(decoding: directory.read("run.html"), as: UTF8.self)
    #expect(page.contains("<th>Afterwards</th><td>\(kind): "))

    // With no row to delete, nothing is rebuilt.
    #expect(try batch("run", "job.json").status == 0)
    #expect(try afterwards() == nil)
  }

  @Test func `a vacuum killed or stopped at random moments is done by the next process`() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    try makeRows(60_000)
    try writeJob("vacuum", keeping: 40_000)
    // A run that ended before its signal leaves no vacuum to interrupt: another purge of the same rows follows.
    let again = """
      WITH RECURSIVE c(i) AS (SELECT 40001 UNION ALL SELECT i + 1 FROM c WHERE i < 60000)
      INSERT INTO numbers SELECT printf('%08d', i), i, hex(zeroblob(200)) || i FROM c
      """
    var interrupted = 0
    var longest = 0.1
    var isOver = false
    for attempt in 0..<40 where interrupted < 4 {
      if isOver { try TestDatabase.make(in: directory, again) }
      let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
      while let line = program.nextLine() {
        let event = try JSONOutput.object(line)
        if (event["waiting"] as? String)?.hasPrefix("vacuum") == true { break }
      }
      let signal = Bool.random(using: &random) ? SIGKILL : SIGTERM
      let isInTime = program.send(
        signal,
        afterSeconds: Double.random(in: 0...longest, using: &random)
      )
      // However fast the machine is, moments within the vacuum come.
      if !isInTime { longest /= 2 }
      _ = program.wait()
      try expectIntact(40_000)
      let status = try status()
      isOver = status["next"] as? String != "resume"
      guard !isOver else { continue }
      interrupted += 1
      #expect(status["done"] as? Int == 20_000 && status["state"] as? String == "stopped")
      // A kill between the vacuum and the end of the run leaves a vacuum that is done.
      if let bytes = (status["afterwards"] as? [String: Any])?["bytesAfter"] {
        #expect(try bytes as? Int == fileBytes, "\(attempt)")
      }
    }
    #expect(interrupted > 0, "no kill came in time")
    let before = try fileBytes
    // Killed after its end, the run is over, and the same command would begin another.
    if try status()["next"] as? String != "begin" {
      let last = try batch("run", "job.json")
      #expect(last.status == 0, "\(last.errors)")
    }
    #expect(try afterwards()?["bytesAfter"] as? Int == fileBytes)
    #expect(try fileBytes <= before)
    #expect(try TestDatabase.texts(path, "PRAGMA freelist_count") == ["0"])
    try expectIntact(40_000)
  }

  @Test func `what holds a run holds the vacuum, and a cancelled one is left for the next process`()
    throws
  {
    try makeRows(5000)
    let slow = JobText.slowZero.replacing("id", with: "n")
    let settings: [String: Any] = [
      "afterwards": "vacuum", "chunk": ["size": 1000], "throttle": ["flagFile": "hold"],
    ]
    try directory.write(
      JobText.update(["n": "n + \(slow)"], where: "n <= 2000", adding: settings),
      to: "job.json"
    )
    let held = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = try held.wait(forEvent: "started")
    while try status()["done"] as? Int != 1000 {}
    // The last chunk has begun, so only what follows it can be held.
    try directory.write("", to: "hold")
    let event = try held.wait(forEvent: "throttled")
    #expect((event["throttle"] as? String)?.hasPrefix("flagFile") == true)
    while try status()["done"] as? Int != 2000 {}
    #expect(try status()["state"] as? String == "throttled")
    #expect(try batch("cancel", "job.json").status == 0)
    let cancelled = held.wait()
    #expect(cancelled.status == 3, "\(cancelled.errors)")
    #expect(try JSONOutput.lines(cancelled.output).last?["stopReason"] as? String == "batch cancel")
    #expect(try afterwards() == nil)
    #expect(try status()["next"] as? String == "resume")
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(try batch("run", "job.json").status == 0)
    #expect(try afterwards()?["bytesAfter"] as? Int == fileBytes)
    try expectIntact(5000)
  }

  @Test func `rows deleted before a vacuum return by undo, also without an integer key`() throws {
    try makeRows(3000)
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE n % 3 = 0")
    let before = try rows()
    try writeJob("vacuum", keeping: 500, adding: ["undo": true])
    #expect(try batch("run", "job.json").status == 0)
    #expect(try afterwards()?["bytesAfter"] != nil)
    let undone = try batch("undo", "job.json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try rows() == before)
  }

  @Test func `a vacuum that fails leaves the run complete, and says what to do`() throws {
    try makeRows(5000)
    try writeJob("vacuum", keeping: 100)
    // A reader keeps the log, from which the file would shrink.
    try TestDatabase.make(
      in: directory,
      "INSERT INTO numbers SELECT 'x' || id, 1000, label FROM numbers"
    )
    let reader = try Connection(path: path)
    try reader.execute("BEGIN")
    _ = try reader.value("SELECT count(*) FROM numbers")
    #expect(try batch("run", "job.json").status == 0)
    let other = try afterwards()?["error"] as? String
    #expect(other?.contains("shrinks only when its log can be emptied") == true, "\(other ?? "")")
    try reader.execute("COMMIT")
    try expectIntact(100)
  }

  @Test func `incremental is refused for a file that cannot do it, and both for an export`() throws
  {
    try makeRows(10)
    try writeJob("incremental", keeping: 5)
    for command in ["plan", "run", "validate"] {
      let result = try batch(command, "job.json")
      #expect(
        result.status == 2 && result.errors.contains("auto_vacuum = incremental"),
        "\(result)"
      )
    }
    try expectIntact(10)
    try directory.write(
      JobText.export(to: "x.csv", adding: ["afterwards": "vacuum"]),
      to: "job.json"
    )
    let export = try batch("validate", "job.json")
    #expect(
      export.status == 2 && export.errors.contains("no space to give back"),
      "\(export.errors)"
    )
  }
}
