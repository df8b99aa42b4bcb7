import BatchTestSupport
import Foundation
import Testing

/// Random commands in random order over a few rows: each run changes a row once, what a run, its plan and
/// its status say is so, and all who are asked say the same.
///
/// The oracle is in the database: a trigger notes which run has changed which row, so a backup
/// restores it with the rows.
struct RandomSequence {
  static let total = 60
  static let set = ["n": "n + 1", "label": ":run"]
  static var settings: [String: Any] {
    [
      "parameters": ["run": ["type": "text", "default": "$runID"]],
      "chunk": ["size": 10], "skip": ["limit": 60], "throttle": ["identifiersPerSecond": 600],
    ]
  }

  /// The rows of a store and a job `job.json` that changes them.
  protocol Rows {
    /// Whether another process takes part in a live run, instead of being refused.
    var isShared: Bool { get }
    var directory: TemporaryDirectory { get }
    func texts(_ sql: String) throws -> [String]
    func execute(_ sql: String...) throws
    /// Waits until what a killed process began is committed or rolled back.
    func waitForClients() throws
    func backUp() throws
    func restore() throws
    func loseRecord() throws
    func keepRecord() throws
    func returnRecord() throws
  }

  private let rows: any Rows
  private var random: SeededGenerator
  private(set) var steps: [String]
  private var isBackedUp = false
  /// The runs reported as finished, by ID, with the rows that they have changed.
  private var finished: [String: [String: Int]] = [:]
  private var runs: Set<String> = []

  init(seed: UInt64, over rows: any Rows) {
    self.rows = rows
    random = SeededGenerator(seed: seed)
    steps = ["seed \(seed)"]
  }

  mutating func step() throws {
    switch Int.random(in: 0..<22, using: &random) {
    case 0..<9: try run()
    case 9..<12: try retry()
    case 12, 13:
      steps.append("a backup is made")
      try rows.backUp()
      isBackedUp = true
    case 14, 15:
      guard isBackedUp else { break }
      steps.append("the backup is restored")
      try rows.restore()
    case 16:
      steps.append("the record is lost")
      try rows.loseRecord()
    case 17:
      steps.append("the record is copied")
      try rows.keepRecord()
    case 18:
      steps.append("the copy of the record is put back")
      try rows.returnRecord()
    case 19, 20: try live()
    default:
      steps.append("cleanup, and other rows are bad")
      _ = try BatchProgram.run("cleanup", "job.json", in: rows.directory)
      let row = Int.random(in: 1...Self.total, using: &random)
      try rows.execute("DELETE FROM bad", "INSERT INTO bad VALUES (\(row))")
    }
    let twice = "SELECT run || ' ' || id FROM changes GROUP BY run, id HAVING count(*) > 1"
    #expect(try rows.texts(twice) == [], "\(steps)")
  }

  // MARK: Commands

  private func answer(_ command: [String]) throws -> String? {
    let result = try BatchProgram(command + ["job.json", "--json"], in: rows.directory).wait()
    guard result.status == 0 else { return nil }
    return try JSONOutput.object(result.output)["next"] as? String
  }

  /// What `batch run` would do next, of which `plan`, `status` and `--dry-run` say the same.
  private func next(_ id: String?) throws -> String? {
    let arguments = id.map { ["--run-id", $0] } ?? []
    let next = try answer(["plan"] + arguments)
    #expect(try answer(["run", "--dry-run"] + arguments) == next, "\(steps)")
    if id == nil, let status = try answer(["status"]) { #expect(status == next, "\(steps)") }
    return next
  }

  /// How a command may end besides, while a host that was killed counts as alive until its lease is over:
  /// it is in the way of --fresh, and a request to cancel may still be meant for it.
  private var endings: [Int32] { rows.isShared ? [3, 5] : [] }

  private mutating func chooseID() -> String? {
    ["a", "b", nil].randomElement(using: &random) ?? nil
  }

  private mutating func run() throws {
    let id = chooseID()
    var arguments = id.map { ["--run-id", $0] } ?? []
    var next = try next(id)
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
    case "resume":
      let resumed = rows.isShared ? ["resumed", "joined"] : ["resumed"]
      #expect(result.status == 6 || resumed.contains(names.first ?? ""), "\(steps) \(names)")
    default: break
    }
    guard result.status == 0 || result.status == 4 else {
      #expect(([2, 6] + endings).contains(result.status), "\(steps) \(result.errors)")
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
    #expect(([0, 2, 3, 4, 6] + endings).contains(result.status), "\(steps) \(result.errors)")
    guard result.status == 0 || result.status == 4 else { return }
    let last = try JSONOutput.lines(result.output).last
    try note(last?["run"] as? String ?? "", told: last)
  }

  /// Asks what comes next, and does it, while a process is held in the middle of a run.
  private mutating func live() throws {
    let first = try BatchProgram(["run", "job.json", "--json"], in: rows.directory)
    steps.append("run job.json, alive")
    let names = ["started", "resumed", "joined", "finished"]
    var event: [String: Any]?
    repeat {
      event = try first.nextLine().map(JSONOutput.object)
    } while event.map {
      !names.contains($0["event"] as? String ?? "")
    } ?? false
    let pause = try BatchProgram(["pause", "job.json"], in: rows.directory).wait()
    guard event != nil, event?["event"] as? String != "finished", pause.status == 0 else {
      steps.append("it is over")
      return try noteEnd(of: first.wait(), event)
    }
    // The run may have ended instead, before it saw the request.
    func isHeld() throws -> Bool {
      let status = try BatchProgram(["status", "job.json", "--json"], in: rows.directory).wait()
      return try JSONOutput.object(status.output)["state"] as? String == "paused"
    }
    while try !isHeld() {
      guard first.isRunning else {
        steps.append("it is over before the pause")
        return try noteEnd(of: first.wait())
      }
    }
    let id = chooseID()
    let next = try next(id)
    let arguments = id.map { ["--run-id", $0] } ?? []
    let second = try BatchProgram(["run", "job.json", "--json"] + arguments, in: rows.directory)
    steps.append("run \(arguments), which is to \(next ?? "nothing")")
    switch next {
    case "refuse", "nothing", "acknowledge":
      let result = second.wait()
      #expect((next == "refuse" ? [2, 5] : [0, 4]).contains(result.status), "\(steps)")
    case "resume" where rows.isShared:
      var joined = second.nextLine()
      while let line = joined, try JSONOutput.object(line)["event"] as? String != "joined" {
        joined = second.nextLine()
      }
      #expect(joined != nil, "\(steps)")
      second.send([SIGTERM, SIGKILL].randomElement(using: &random) ?? SIGKILL)
      #expect([3, -SIGKILL].contains(second.wait().status), "\(steps)")
    default:
      Issue.record("\(next ?? "no answer") beside a live run: \(steps)")
      second.send(SIGKILL)
      _ = second.wait()
    }
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      steps.append("it is killed")
      first.send(SIGKILL)
      _ = first.wait()
      try rows.waitForClients()
    case 1:
      steps.append("it is terminated")
      first.send(SIGTERM)
      #expect(first.wait().status == 3, "\(steps)")
    case 2:
      steps.append("it is cancelled")
      #expect(try BatchProgram(["cancel", "job.json"], in: rows.directory).wait().status == 0)
      #expect(first.wait().status == 3, "\(steps)")
    default:
      steps.append("it is continued")
      #expect(try BatchProgram(["resume", "job.json"], in: rows.directory).wait().status == 0)
      try noteEnd(of: first.wait())
    }
  }

  private mutating func noteEnd(
    of result: BatchProgram.Result,
    _ event: [String: Any]? = nil
  ) throws {
    #expect(([0, 2, 4] + endings).contains(result.status), "\(steps) \(result.errors)")
    guard result.status == 0 || result.status == 4 else { return }
    let last = try JSONOutput.lines(result.output).last ?? event
    try note(last?["run"] as? String ?? "", told: last)
  }

  /// Gives a command, whose answer may be lost.
  ///
  /// - Returns: What came of it; nil if it was killed.
  private mutating func carryOut(_ arguments: [String]) throws -> BatchProgram.Result? {
    let line = arguments.joined(separator: " ")
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1:
      let program = try BatchProgram(arguments, in: rows.directory)
      let events = Int.random(in: 0...3, using: &random)
      steps.append("\(line), killed after \(events) events")
      for _ in 0..<events { _ = program.nextLine() }
      program.send(SIGKILL)
      _ = program.wait()
      try rows.waitForClients()
      return nil
    case 2:
      steps.append("\(line), to a full device")
      let status = try BatchProgram.shell("\(line) >/dev/full", in: rows.directory).status
      #expect(([2, 3, 6] + endings).contains(status), "\(steps)")
      return nil
    default:
      let result = try BatchProgram(arguments, in: rows.directory).wait()
      steps.append("\(line): \(result.status)")
      return result
    }
  }

  /// Checks that a run reported as finished has changed all rows except those reported as failed.
  private mutating func note(_ run: String, told summary: [String: Any]?) throws {
    runs.insert(run)
    let failed = (summary?["outcomes"] as? [String: Int])?["failed"] ?? -1
    let count = try changes(of: run)
    #expect(count == Self.total - failed, "\(steps)")
    if let id = summary?["runID"] as? String { finished[id, default: [:]][run] = count }
  }

  private func changes(of run: String? = nil) throws -> Int {
    let condition = run.map { "run = '\($0)'" } ?? "1 = 1"
    let sql = "SELECT CAST(count(*) AS text) FROM changes WHERE \(condition)"
    return try rows.texts(sql).first.flatMap { Int($0) } ?? -1
  }
}
