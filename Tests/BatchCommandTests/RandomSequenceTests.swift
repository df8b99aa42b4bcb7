import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random commands in random order: each run changes a row once, and its reports are true.
///
/// The oracle is in the database: a trigger notes which run has changed which row, so a backup
/// restores it with the rows.
@Suite(.timeLimit(.minutes(20))) struct RandomSequenceTests {
  private static let total = 60
  /// The number of sequences; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 12

  @Test(arguments: 0..<count)
  func `a run keeps its guarantees under random commands, kills, backups and losses`(
    seed: UInt64
  ) throws {
    var sequence = try Sequence(seed: seed)
    for _ in 0..<14 { try sequence.step() }
  }

  private struct Sequence {
    private let directory: TemporaryDirectory
    private let path: String
    private var random: SeededGenerator
    private var steps: [String]
    /// The runs reported as finished, by ID, with the rows that they have changed.
    private var finished: [String: [String: Int]] = [:]
    private var runs: Set<String> = []

    init(seed: UInt64) throws {
      directory = try TemporaryDirectory()
      path = try TestDatabase.makeNumbers(total, in: directory)
      random = SeededGenerator(seed: seed)
      steps = ["seed \(seed)"]
      try TestDatabase.make(
        in: directory,
        "CREATE TABLE changes (run TEXT, id INTEGER)",
        "CREATE TABLE bad (id INTEGER PRIMARY KEY)",
        """
        CREATE TRIGGER change AFTER UPDATE ON numbers BEGIN
          SELECT RAISE(ABORT, 'bad') WHERE new.id IN (SELECT id FROM bad);
          INSERT INTO changes VALUES (new.label, new.id);
        END
        """
      )
      let more: [String: Any] = [
        "parameters": ["run": ["type": "text", "default": "$runID"]],
        "chunk": ["size": 10], "skip": ["limit": 60], "throttle": ["identifiersPerSecond": 600],
        "checkpoint": ["interval": "1ms", "list": seed % 2 == 0 ? "file" : "store"],
        "database": ["path": "test.db", "journalMode": seed % 4 == 3 ? "keep" : "wal"],
      ]
      let set = ["n": "n + 1", "label": ":run"]
      try directory.write(JobText.update(set, adding: more), to: "job.json")
    }

    mutating func step() throws {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9: try run()
      case 9..<12: try retry()
      case 12, 13: try copy("test.db", to: "backup.db")
      case 14, 15: try restore()
      case 16: try lose("job.batch")
      case 17: try copy("job.batch", to: "old.batch")
      case 18: try copy("old.batch", to: "job.batch")
      default:
        steps.append("cleanup, and other rows are bad")
        _ = try BatchProgram.run("cleanup", "job.json", in: directory)
        let row = Int.random(in: 1...RandomSequenceTests.total, using: &random)
        try TestDatabase.make(in: directory, "DELETE FROM bad", "INSERT INTO bad VALUES (\(row))")
      }
      let twice = "SELECT run || ' ' || id FROM changes GROUP BY run, id HAVING count(*) > 1"
      #expect(try TestDatabase.texts(path, twice) == [], "\(steps)")
    }

    // MARK: Commands

    private mutating func run() throws {
      let id = ["a", "b", nil].randomElement(using: &random) ?? nil
      var arguments = id.map { ["--run-id", $0] } ?? []
      func answer(_ command: [String]) throws -> String? {
        let result = try BatchProgram(command + ["job.json", "--json"], in: directory).wait()
        guard result.status == 0 else { return nil }
        return try JSONOutput.object(result.output)["next"] as? String
      }
      var next = try answer(["plan"] + arguments)
      // All who are asked say the same.
      #expect(try answer(["run", "--dry-run"] + arguments) == next, "\(steps)")
      if id == nil, let status = try answer(["status"]) { #expect(status == next, "\(steps)") }
      if Int.random(in: 0..<5, using: &random) == 0 {
        arguments.append("--fresh")
        next = nil
      }
      let before = try changes()
      let done = try id.map { try finished[$0]?.filter { try changes(of: $0.key) == $0.value } }
      let result = try carryOut(["run", "job.json", "--json"] + arguments)
      guard let result else { return }
      let events = try JSONOutput.lines(result.output)
      let last = events.last
      let run = last?["run"] as? String ?? ""
      let names = events.compactMap { $0["event"] as? String }.filter { $0 != "message" }
      switch next {
      case "refuse":
        #expect(try result.status == 2 && changes() == before, "\(steps)")
      case "acknowledge", "nothing":
        #expect(try [0, 4, 6].contains(result.status) && changes() == before, "\(steps)")
      case "begin", "acknowledgeAndBegin":
        // The end of the last run may be told first.
        #expect(result.status == 6 || !runs.contains(run), "\(steps)")
        #expect(result.status == 6 || names.contains("started"), "\(steps)")
      case "resume": #expect(result.status == 6 || names.first == "resumed", "\(steps)")
      default: break
      }
      guard result.status == 0 || result.status == 4 else {
        #expect([2, 6].contains(result.status), "\(steps) \(result.errors)")
        return
      }
      try note(run, told: last)
      if let id { #expect(last?["runID"] as? String == id, "\(steps)") }
      if let done = done ?? nil, !done.isEmpty {
        #expect(try done.keys.contains(run) && changes() == before, "\(steps)")
      }
    }

    private mutating func retry() throws {
      guard let result = try carryOut(["retry-failed", "job.json", "--json"]) else { return }
      #expect([0, 2, 3, 4, 6].contains(result.status), "\(steps) \(result.errors)")
      guard result.status == 0 || result.status == 4 else { return }
      let last = try JSONOutput.lines(result.output).last
      try note(last?["run"] as? String ?? "", told: last)
    }

    /// Gives a command, whose answer may be lost.
    ///
    /// - Returns: What came of it; nil if it was killed.
    private mutating func carryOut(_ arguments: [String]) throws -> BatchProgram.Result? {
      let line = arguments.joined(separator: " ")
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1:
        let program = try BatchProgram(arguments, in: directory)
        let events = Int.random(in: 0...3, using: &random)
        steps.append("\(line), killed after \(events) events")
        for _ in 0..<events { _ = program.nextLine() }
        program.send(SIGKILL)
        _ = program.wait()
        return nil
      case 2:
        steps.append("\(line), to a full device")
        let status = try BatchProgram.shell("\(line) >/dev/full", in: directory).status
        #expect([2, 3, 6].contains(status), "\(steps)")
        return nil
      default:
        let result = try BatchProgram(arguments, in: directory).wait()
        steps.append("\(line): \(result.status)")
        return result
      }
    }

    /// Checks that a run reported as finished has changed all rows except those reported as failed.
    private mutating func note(_ run: String, told summary: [String: Any]?) throws {
      runs.insert(run)
      let failed = (summary?["outcomes"] as? [String: Int])?["failed"] ?? -1
      let count = try changes(of: run)
      #expect(count == RandomSequenceTests.total - failed, "\(steps)")
      if let id = summary?["runID"] as? String { finished[id, default: [:]][run] = count }
    }

    private func changes(of run: String? = nil) throws -> Int {
      let condition = run.map { "run = '\($0)'" } ?? "1"
      let sql = "SELECT count(*) FROM changes WHERE \(condition)"
      return try TestDatabase.texts(path, sql).first.flatMap { Int($0) } ?? -1
    }

    // MARK: Files

    private mutating func copy(_ name: String, to other: String) throws {
      steps.append("\(name) is copied to \(other)")
      guard FileManager.default.fileExists(atPath: directory.file(name)) else { return }
      if name == "test.db" {
        try? FileManager.default.removeItem(atPath: directory.file(other))
        try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file(other))'")
      } else {
        try Data(directory.read(name)).write(to: URL(fileURLWithPath: directory.file(other)))
      }
    }

    private mutating func restore() throws {
      guard FileManager.default.fileExists(atPath: directory.file("backup.db")) else { return }
      steps.append("the backup is restored")
      for end in ["-wal", "-shm", "-journal"] {
        try? FileManager.default.removeItem(atPath: path + end)
      }
      try Data(directory.read("backup.db")).write(to: URL(fileURLWithPath: path))
    }

    private mutating func lose(_ name: String) throws {
      steps.append("\(name) is lost")
      try? FileManager.default.removeItem(atPath: directory.file(name))
    }
  }
}
