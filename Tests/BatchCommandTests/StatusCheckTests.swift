import BatchRuns
import BatchTestSupport
import Foundation
import Testing

/// What monitoring asks: `batch status --check`, and `batch status FOLDER`.
@Suite struct StatusCheckTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(50, in: directory)
  }

  private func write(_ more: [String: Any] = [:], set: String = "n + 1", to file: String) throws {
    let name = String(file.prefix { $0 != "." })
    let tuning: [String: Any] = ["name": name, "chunk": ["size": 5]]
    let job = try JobText.update(["n": set], adding: tuning.merging(more) { $1 })
    try directory.write(job, to: file)
  }

  private func check(_ arguments: String..., expecting status: Int32) throws -> String {
    let result = try BatchProgram(["status"] + arguments + ["--check"], in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.errors)\(result.output)")
    return result.output + result.errors
  }

  @Test func `status --check has the exit status of the last run`() throws {
    try write(to: "a.json")
    #expect(try check("a.json", expecting: 2).contains("run it first"))
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    #expect(try check("a.json", expecting: 0).contains("completed"))

    try write(set: "CASE WHEN id = 9 THEN NULL ELSE 2 END", to: "b.json")
    #expect(try BatchProgram.run("run", "b.json", in: directory).status == 1)
    #expect(try check("b.json", expecting: 1).contains("failed"))
    try write(["skip": ["limit": 5]], set: "CASE WHEN id = 9 THEN NULL ELSE 2 END", to: "b.json")
    #expect(try BatchProgram.run("run", "b.json", in: directory).status == 4)
    #expect(try check("b.json", expecting: 4).contains("completed with failures"))

    try write(["throttle": ["identifiersPerSecond": 0.001]], to: "c.json")
    let program = try BatchProgram(["run", "c.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    #expect(try check("c.json", expecting: 0).contains("running"))
    program.send(SIGKILL)
    _ = program.wait()
    #expect(try check("c.json", expecting: 3).contains("killed"))

    let all = try check(".", expecting: 3).split(separator: "\n")
    #expect(all.count == 3, "\(all)")
    #expect(all[0].contains(#/^a.json: +completed, 50 of 50 done, ended /#), "\(all)")
    #expect(all[1].contains(#/^b.json: +completed with failures, 50 of 50 done, 1 failed/#))
    #expect(all[2].contains(#/^c.json: +killed.*, [0-9]+ of 50 done$/#), "\(all)")
    #expect(
      try TestDatabase.value(path, "SELECT count(*) FROM numbers WHERE n = 2 OR n = 3")
        == .integer(49)
    )
  }

  @Test func `a run that was undone is no success`() throws {
    try write(["undo": true], to: "a.json")
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    #expect(try !check(".", expecting: 0).contains("undone"))
    #expect(try BatchProgram.run("undo", "a.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["0"])
    #expect(try check("a.json", expecting: 3).contains("a: last run: undone by "))
    #expect(try check(".", expecting: 3).contains("undone by "))
    #expect(try BatchProgram.run("status", ".", in: directory).output.contains("; undone by "))
    #expect(try BatchProgram.run("run", "a.json", "--again", in: directory).status == 0)
    #expect(try check("a.json", expecting: 0).contains("completed"))
  }

  @Test func `a check of a folder without jobs fails`() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("none"),
      withIntermediateDirectories: false
    )
    #expect(try check("none", expecting: 2).contains("there is no job file in none"))
    #expect(try BatchProgram.run("status", "none", in: directory).status == 0)
  }

  @Test func `a run whose last hook does not end says what it waits for`() throws {
    for name in ["begun", "go"] { #expect(mkfifo(directory.file(name), 0o600) == 0) }
    let hooks = ["onFinish": ["/bin/sh", "-c", "echo begun > begun; cat go"]]
    try write(["hooks": hooks], to: "a.json")
    let program = try BatchProgram(["run", "a.json"], in: directory)
    // Blocks until the hook has written to it.
    let begun = try #require(FileHandle(forReadingAtPath: directory.file("begun")))
    #expect(try begun.readToEnd() == Data("begun\n".utf8))
    let status = try BatchProgram.run("status", "a.json", in: directory).output
    #expect(status.contains("completed, 50 of 50 done"), "\(status)")
    #expect(status.contains("waiting for: the last steps of its end"), "\(status)")
    try directory.write("", to: "go")
    #expect(program.wait().status == 0)
    let after = try BatchProgram.run("status", "a.json", in: directory).output
    #expect(!after.contains("waiting for"), "\(after)")
  }

  @Test func `a run that is selecting its rows is alive, and is not the last run`() throws {
    try write(to: "a.json")
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    // A selection that takes as long as the test wants.
    let slowly =
      "n > 0 AND (WITH RECURSIVE c(i) AS (SELECT id UNION ALL SELECT i + 1 FROM c WHERE i < 20000000)"
      + " SELECT count(*) FROM c) > 0"
    for file in ["a.json", "b.json"] {
      let name = String(file.prefix(1))
      try directory.write(
        JobText.update(where: slowly, adding: ["name": name]),
        to: file
      )
      let program = try BatchProgram(["run", file, "--json"], in: directory)
      var text = ""
      for _ in 0..<1_000 where !text.contains("the selection of its identifiers") {
        text = try BatchProgram(["status", file], in: directory).wait().output
      }
      #expect(
        text.contains("waiting for: the database, or the selection of its identifiers"),
        "\(text)"
      )
      #expect(text.contains("0 of 0 done") && !text.contains("50 of 50"), "\(text)")
      _ = try check(file, expecting: 0)
      program.send(SIGKILL)
      _ = program.wait()
    }
  }

  @Test func `a check of a folder fails for a job that has not run, as that of the job does`()
    throws
  {
    try write(to: "a.json")
    try write(to: "b.json")
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    _ = try check("b.json", expecting: 2)
    #expect(try check(".", expecting: 2).contains("no run yet"))
    _ = try check(".", "--within", "26h", expecting: 2)
    #expect(try BatchProgram.run("run", "b.json", in: directory).status == 0)
    _ = try check(".", "--within", "26h", expecting: 0)
  }

  @Test func `status --check reports an old success as overdue, even during the next run`() throws {
    try write(to: "a.json")
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    #expect(try check("a.json", "--within", "26h", expecting: 0).contains("completed"))
    // A timestamp has whole seconds, so the run ended less than two seconds ago by it.
    try untilOverdue("1s")
    try write(["throttle": ["identifiersPerSecond": 0.001]], to: "a.json")
    let program = try BatchProgram(["run", "a.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    #expect(try check("a.json", "--within", "1s", expecting: 8).contains("last completed"))
    #expect(try check("a.json", "--within", "26h", expecting: 0).contains("running"))
    program.send(SIGTERM)
    #expect(program.wait().status == 3)

    try write(["throttle": ["identifiersPerSecond": 0.001]], to: "new.json")
    let first = try BatchProgram(["run", "new.json", "--json"], in: directory)
    try first.wait(forEvent: "throttled")
    #expect(
      try check("new.json", "--within", "26h", expecting: 8).contains("new has not completed yet")
    )
    first.send(SIGKILL)
    _ = first.wait()
  }

  /// Asks until the last success is longer ago than a limit.
  private func untilOverdue(_ limit: String) throws {
    while true {
      let arguments = ["status", "a.json", "--check", "--within", limit]
      let result = try BatchProgram(arguments, in: directory).wait()
      if result.status == 8 {
        #expect(result.errors.contains(#/a last completed [0-9.]+ s ago, longer than 1.0 s/#))
        return
      }
      #expect(result.status == 0)
    }
  }

  @Test func `status --check refuses an invalid limit as a usage error`() throws {
    try write(to: "a.json")
    for arguments in [
      ["--within", "26h"], ["--check", "--within", "soon"], ["--check", "--watch"],
      ["--check", "--run", "1234"],
    ] {
      let result = try BatchProgram(["status", "a.json"] + arguments, in: directory).wait()
      #expect(result.status == 64, "\(arguments): \(result.errors)")
    }
  }

  @Test func `status lists a folder's jobs as JSON, including unreadable ones`() throws {
    try write(to: "a.json")
    #expect(try BatchProgram.run("run", "a.json", in: directory).status == 0)
    try write(to: "never.json")
    try directory.write("{", to: "broken.json")
    // Neither has run, and one could not.
    try directory.write(JobText.update(["nn": "1"], adding: ["name": "wrong"]), to: "wrong.json")
    let result = try BatchProgram.run("status", ".", "--json", in: directory)
    let entries = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    let list = try #require(entries as? [[String: Any]])
    #expect(
      list.map { $0["file"] as? String } == ["a.json", "broken.json", "never.json", "wrong.json"]
    )
    #expect((list[0]["status"] as? [String: Any])?["done"] as? Int == 50)
    #expect((list[1]["error"] as? String)?.contains("broken.json") == true)
    #expect((list[2]["error"] as? String)?.contains("run it first") == true)
    let lines = try check(".", expecting: 2).split(separator: "\n")
    #expect(lines.contains { $0.hasPrefix("never.json:") && $0.hasSuffix(" no run yet") })
    let wrong = lines.drop { !$0.hasPrefix("wrong.json:") }.joined(separator: " ")
    #expect(
      wrong.contains("no run yet; batch run refuses: ") && wrong.contains("\"nn\""),
      "\(wrong)"
    )
  }

  @Test func `the elapsed time of a killed run is that of its last event`() throws {
    try write(
      [
        "throttle": ["identifiersPerSecond": 2], "chunk": ["size": 1],
        "checkpoint": ["interval": "1h"],
      ],
      to: "a.json"
    )
    let program = try BatchProgram(["run", "a.json", "--json"], in: directory)
    var told = 0.0
    while told < 2.5, let line = program.nextLine() {
      told = try JSONOutput.object(line)["elapsedSeconds"] as? Double ?? told
      if line.contains(#""event":"finished""#) { break }
    }
    program.send(SIGKILL)
    _ = program.wait()
    let status = try JSONOutput.object(
      BatchProgram.run("status", "a.json", "--json", in: directory).output
    )
    guard status["done"] as? Int ?? 0 < 50 else { return }
    #expect(abs((status["elapsedSeconds"] as? Double ?? 0) - told) < 2, "\(told), \(status)")
    // It had one process.
    #expect(status["processSeconds"] as? Double == status["elapsedSeconds"] as? Double, "\(status)")
    #expect(try BatchProgram.run("history", "a.json", in: directory).output.contains(" killed "))
    let history = try BatchProgram.run("history", "a.json", "--json", in: directory).output
    let run = try #require((try JSONOutput.object(history)["runs"] as? [[String: Any]])?.first)
    #expect(run["wasKilled"] as? Bool == true, "\(run)")
  }
}
