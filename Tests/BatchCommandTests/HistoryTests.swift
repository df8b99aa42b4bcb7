import BatchTestSupport
import Foundation
import Testing

/// The records of earlier runs.
@Suite struct HistoryTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func write(_ more: [String: Any] = [:], where condition: String = "id <= :last") throws {
    let parameters: [String: Any] = [
      "last": ["type": "integer", "default": 100],
      "token": ["type": "text", "secret": true, "required": false],
    ]
    let job = try JobText.update(
      where: condition,
      adding: ["parameters": parameters].merging(more) { $1 }
    )
    try directory.write(job, to: "job.json")
  }

  @discardableResult
  private func succeed(_ arguments: String...) throws -> String {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 0, "\(arguments): \(result.errors)")
    return result.output
  }

  /// The runs, the last one first.
  private func history() throws -> [[String: Any]] {
    try #require(
      JSONOutput.object(succeed("history", "job.json", "--json"))["runs"] as? [[String: Any]]
    )
  }

  private func names() throws -> [String] { try history().compactMap { $0["run"] as? String } }

  @Test func `the history tells who retried a run, set it aside and undid it`() throws {
    func kinds(_ run: Int = 0) throws -> [String] {
      let actions = try history()[run]["actions"] as? [[String: Any]]
      return actions?.compactMap { $0["kind"] as? String } ?? []
    }
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers WHEN old.id = 7
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """
    )
    try write(["skip": ["limit": 5], "undo": true])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    try TestDatabase.make(in: directory, "DROP TRIGGER refuse")
    try succeed("retry-failed", "job.json")
    try succeed("undo", "job.json")
    #expect(try kinds() == ["began", "retried", "undid"])
    #expect(try succeed("status", "job.json").contains("undid: "))
    #expect(try succeed("history", "job.json").contains("retried by "))

    try write(["throttle": ["identifiersPerSecond": 0.001]])
    let stopped = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try stopped.wait(forEvent: "throttled")
    stopped.send(SIGTERM)
    #expect(stopped.wait().status == 3)
    // What is refused has set nothing aside.
    let refused = try BatchProgram.run(
      "run",
      "job.json",
      "--fresh",
      "--param=last=x",
      in: directory
    )
    #expect(refused.status == 2)
    #expect(try kinds() == ["began"])
    try write()
    try succeed("run", "job.json", "--fresh")
    #expect(try kinds() == ["began"])
    #expect(try kinds(1) == ["began", "setAside"])
    let aside = try #require(names().dropFirst().first)
    #expect(try succeed("status", "job.json", "--run", aside).contains(#/set aside: +by .*, at /#))
  }

  @Test func `the history keeps each run with its rows and its user, even one of no rows`() throws {
    try write(["undo": true])
    for last in ["10", "20", "0", "30"] {
      try succeed("run", "job.json", "--param", "last=\(last)", "--param=token=hunter2")
    }
    let runs = try history()
    #expect(runs.map { $0["total"] as? Int } == [30, 0, 20, 10])
    #expect(runs.allSatisfy { $0["state"] as? String == "completed" })
    let parameters = runs.compactMap { $0["parameters"] as? [String: String] }
    #expect(parameters.map { $0["last"] } == ["30", "0", "20", "10"])
    let invocation = try #require(runs[2]["invocation"] as? [String: Any])
    #expect(invocation["user"] is String && invocation["host"] is String)
    #expect(
      (invocation["command"] as? [String])?.suffix(2) == ["last=20", "--param=token=(secret)"]
    )
    #expect((invocation["jobFile"] as? String)?.hasSuffix("/job.json") == true)
    for bytes in try directory.contents().values {
      #expect(bytes.range(of: Data("hunter2".utf8)) == nil)
    }

    let lines = try succeed("history", "job.json").split(separator: "\n")
    let table = lines.filter { !$0.hasPrefix(" ") }
    #expect(table.count == 5 && table.allSatisfy { $0.count <= 80 }, "\(table)")
    let names = try names()
    #expect(table[3].hasPrefix(names[2].prefix(8)))
    // Below each run, who began it and with which values.
    let who =
      try #require(invocation["user"] as? String) + " on " + (invocation["host"] as? String ?? "")
    #expect(lines.count == 9)
    #expect(lines[4] == "         \(who), last=0, token=(secret)", "\(lines)")

    let second = String(names[2].prefix(8)).lowercased()
    #expect(try succeed("ids", "job.json", "--run", second) == (1...20).map { "\($0)\n" }.joined())
    #expect(try succeed("ids", "job.json", "--run", second, "--outcome", "unchanged") == "")
    #expect(try succeed("status", "job.json", "--run", second).contains("last = 20"))
    try succeed("report", "job.json", "--run", second, "--output", "run.html")
    try succeed("report", "job.json", "--output", "run.html")
    let page = try String(decoding: directory.read("run.html"), as: UTF8.self)
    #expect(page.contains(names[0]))

    // A list of an earlier run is the rows of another job, and of an undo.
    try succeed("ids", "job.json", "--run", second, "--output", "some.ids")
    try directory.write(
      JobText.update(
        ["label": "'x'"],
        adding: ["source": ["entity": "numbers", "identifiers": "some.ids"], "name": "other"]
      ),
      to: "other.json"
    )
    try succeed("run", "other.json")
    #expect(try TestDatabase.texts(path, "SELECT max(id) FROM numbers WHERE label = 'x'") == ["20"])
    try succeed("ids", "job.json", "--run", String(names[3].prefix(8)), "--output", "ten.ids")
    try succeed("undo", "job.json", "--run", String(names[0].prefix(8)), "--ids", "ten.ids")
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers WHERE id <= 10") == ["20"])
  }

  @Test func `an unknown run of the history is refused`() throws {
    try write()
    try succeed("run", "job.json")
    for arguments in [
      ["ids", "job.json", "--run", "nothing"], ["status", "job.json", "--run", ""],
      ["report", "job.json", "--run", "zz", "--output", "a.html"],
    ] {
      try Refusal.expect(arguments, in: directory, says: ["there is no record of run"])
    }
  }

  @Test(arguments: [(0, 1), (2, 3), (20, 5)])
  func `the history keeps as many earlier runs as the job says`(history: Int, expected: Int) throws
  {
    try write(["history": history])
    for _ in 1...5 { try succeed("run", "job.json") }
    #expect(try names().count == expected)
    try succeed("cleanup", "job.json", "--history")
    #expect(try names().count == 1)
    #expect(try !directory.names().contains("job.batch.history"))
  }

  @Test func `records older than the job's limit are removed from the history`() throws {
    try write(["history": "30d"])
    for _ in 1...3 { try succeed("run", "job.json") }
    let folder = directory.file("job.batch.history")
    let oldest = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder).sorted().first
    )
    let earlier = "20200101T000000" + oldest.dropFirst(15)
    try FileManager.default.moveItem(atPath: "\(folder)/\(oldest)", toPath: "\(folder)/\(earlier)")
    try succeed("run", "job.json")
    #expect(try names().count == 3)
    let inspected = try succeed("inspect", "job.batch.history")
    #expect(inspected.contains("2 records"), "\(inspected)")
    // A damaged one does not hide the others, and fails the command.
    let record = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder).sorted().first
    )
    try Data("cut".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(record)"))
    let damaged = try BatchProgram.run("inspect", "job.batch.history", in: directory)
    #expect(damaged.status == 2 && damaged.output.contains("100 identifiers"), "\(damaged)")
  }

  @Test func `runs of one second are listed in the order in which they began`() throws {
    // The first row fails, so each run is unfinished, and set aside by the next.
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER no BEFORE UPDATE ON numbers BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    try write()
    var begun: [String] = []
    func run(status: Int32) throws {
      let result = try BatchProgram.run("run", "job.json", "--fresh", "--json", in: directory)
      #expect(result.status == status, "\(result.errors)")
      let line = result.output.split(separator: "\n").first { $0.contains("\"started\"") }
      let event = try JSONOutput.object(String(try #require(line)))
      begun.insert(try #require(event["run"] as? String), at: 0)
    }
    for _ in 1...6 { try run(status: 1) }
    #expect(try names() == begun)
    // Copied files lose their modification times, and their names may be new.
    for name in try directory.names() where name.hasSuffix(".batch") {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1)],
        ofItemAtPath: directory.file(name)
      )
    }
    try FileManager.default.moveItem(
      atPath: directory.file("job.1.batch"),
      toPath: directory.file("job.9.batch")
    )
    #expect(try names() == begun)

    // Those that were finished are in the folder, by names that tell their order.
    try TestDatabase.make(in: directory, "DROP TRIGGER no")
    for _ in 1...6 { try run(status: 0) }
    let folder = directory.file("job.batch.history")
    let records = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    #expect(records.count == 5)
    for (record, run) in zip(records, begun.dropFirst().reversed().suffix(5)) {
      #expect(record.contains(run))
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1)],
        ofItemAtPath: "\(folder)/\(record)"
      )
    }
    #expect(try names() == begun)
    try write(["history": 2])
    try run(status: 0)
    #expect(Set(try names()).isSuperset(of: begun.prefix(3)))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 2)
  }

  @Test func `a job file may have any name`() throws {
    try write()
    try FileManager.default.moveItem(
      atPath: directory.file("job.json"),
      toPath: directory.file("nightly.conf")
    )
    try succeed("run", "nightly.conf")
    #expect(try succeed("ids", "nightly.conf") == (1...100).map { "\($0)\n" }.joined())
    #expect(try succeed("status", "nightly.conf").contains("completed"))
    #expect(try succeed("history", "nightly.conf").contains("completed"))
    // Its checkpoint is none.
    let checkpoint = try #require(try directory.names().first { $0.hasSuffix(".batch") })
    #expect(try succeed("ids", checkpoint) == (1...100).map { "\($0)\n" }.joined())
    try Refusal.expect(["run", checkpoint], in: directory, says: ["not a job file"])
  }

  @Test func `a kill loses no finished record of the history`() throws {
    try write(["chunk": ["size": 5], "history": 1000])
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    var finished: Set<String> = []
    for _ in 1...12 {
      let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
      let seconds = Double.random(in: 0.02...0.4, using: &random)
      _ = program.send(SIGKILL, afterSeconds: seconds)
      _ = program.wait()
      guard try directory.names().contains("job.batch") else { continue }
      let runs = try history()
      let names = Set(runs.compactMap { $0["run"] as? String })
      #expect(finished.isSubset(of: names) && names.count == runs.count, "seed \(seed)")
      finished.formUnion(
        runs.filter { $0["state"] as? String == "completed" }.compactMap { $0["run"] as? String }
      )
    }
    try succeed("run", "job.json")
    #expect(try finished.isSubset(of: names()), "seed \(seed)")
    print("history: \(finished.count) finished records after 12 kills, seed \(seed)")
  }

  @Test func `an undo stores no secret, and an unwritable history stops no run`() throws {
    try write(["undo": true])
    try succeed("run", "job.json", "--param", "token=hunter2")
    try succeed("undo", "job.json", "--param", "token=hunter2", "--param=token=hunter2")
    for bytes in try directory.contents().values {
      #expect(bytes.range(of: Data("hunter2".utf8)) == nil)
    }
    try directory.write("", to: "job.batch.history")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0)
    let says = "the record of the previous run is not kept"
    #expect(result.errors.contains(says), "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }
}
