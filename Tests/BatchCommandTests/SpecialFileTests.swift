import BatchTestSupport
import Foundation
import Testing

/// Names that are not those of regular files: nothing waits for them, or puts something in their place.
@Suite(.timeLimit(.minutes(20))) struct SpecialFileTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(20, in: directory)
  }

  /// Checks that a command ends by itself, with a status and a message.
  private func expect(
    _ arguments: [String],
    status: Int32 = 2,
    says piece: String,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let program = try BatchProgram(arguments, in: directory)
    #expect(!program.send(SIGKILL, afterSeconds: 60), "it waits", sourceLocation: location)
    let result = program.wait()
    #expect(result.status == status, "\(result.errors)", sourceLocation: location)
    #expect(result.errors.contains(piece), "\(result.errors)", sourceLocation: location)
  }

  private func makePipe(_ name: String) {
    #expect(mkfifo(directory.file(name), 0o600) == 0)
  }

  @Test(arguments: ["run", "status", "cleanup"])
  func `a pipe in place of the checkpoint is refused`(command: String) throws {
    makePipe("job.batch")
    try directory.write(JobText.update(), to: "job.json")
    try expect([command, "job.json"], says: "job.batch: this is a pipe")
  }

  @Test func `a folder or a device in place of the checkpoint is refused`() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("folder"),
      withIntermediateDirectories: false
    )
    for (name, says) in [("folder", "this is a folder"), ("/dev/zero", "this is a device")] {
      try directory.write(JobText.update(adding: ["checkpoint": ["path": name]]), to: "job.json")
      try expect(["status", "job.json"], says: says)
      if name == "folder" { try expect(["run", "job.json"], says: says) }
    }
  }

  @Test func `a pipe in place of a list of identifiers is refused`() throws {
    makePipe("list.ids")
    for arguments in [
      ["inspect", "list.ids"], ["ids", "list.ids", "--count"], ["ids", "union", "list.ids"],
      ["ids", "subtract", "list.ids", "list.ids"],
      ["ids", "split", "2", "list.ids", "--output", "x"],
    ] {
      try expect(arguments, says: "list.ids: this is a pipe")
    }
    let source: [String: Any] = ["entity": "numbers", "identifiers": "list.ids"]
    try directory.write(JobText.update(adding: ["source": source]), to: "job.json")
    for command in ["plan", "run"] {
      try expect([command, "job.json"], says: "list.ids: this is a pipe")
    }
  }

  @Test func `a pipe or a symbolic link in place of the lock file is refused`() throws {
    try directory.write(JobText.update(), to: "job.json")
    makePipe("job.batch.lock")
    try expect(["run", "job.json"], says: "job.batch.lock: this is a pipe")
    try FileManager.default.removeItem(atPath: directory.file("job.batch.lock"))
    #expect(symlink("elsewhere", directory.file("job.batch.lock")) == 0)
    try expect(["run", "job.json"], says: "job.batch.lock: this is a symbolic link")
    #expect(try !directory.names().contains("elsewhere"))
  }

  @Test func `a pipe in place of a request or a report prevents no run from ending`() throws {
    try directory.write(
      JobText.update(
        adding: [
          "chunk": ["size": 1], "report": ["path": "report.json"], "throttle": ["flagFile": "hold"],
        ]
      ),
      to: "job.json"
    )
    try directory.write("", to: "hold")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    makePipe("job.batch.control")
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(!program.send(SIGKILL, afterSeconds: 60), "it waits")
    #expect(program.wait().status == 0)
    try FileManager.default.removeItem(atPath: directory.file("report.json"))
    makePipe("report.json")
    try expect(["run", "job.json"], says: "the file exists and is not a run's report")
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a file of another user"))
  func `a request of another user is ignored and reported once`() throws {
    try directory.write(
      JobText.update(
        adding: ["chunk": ["size": 1], "workers": 1, "throttle": ["flagFile": "hold"]]
      ),
      to: "job.json"
    )
    try directory.write("", to: "hold")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    let request = #"{"isPaused":false,"isCancelled":true,"settings":{}}"#
    try directory.write(request, to: "request")
    #expect(chown(directory.file("request"), 65534, 65534) == 0)
    #expect(rename(directory.file("request"), directory.file("job.batch.control")) == 0)
    let first = try program.wait(forEvent: "message")["message"] as? String
    #expect(first?.contains("the request belongs to user 65534") == true)
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let told = try JSONOutput.lines(result.output).compactMap { $0["message"] as? String }
    #expect(told == [])
    #expect(try JSONOutput.lines(result.output).last?["event"] as? String == "finished")
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a file of another user"))
  func `a checkpoint of another user is refused`() throws {
    try directory.write(JobText.update(), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(chown(directory.file("job.batch"), 65534, 65534) == 0)
    for command in ["run", "status", "retry-failed"] {
      try expect([command, "job.json"], says: "job.batch: the checkpoint belongs to user 65534")
    }
    // One that was set aside names a file to be removed with it.
    #expect(rename(directory.file("job.batch"), directory.file("job.1.batch")) == 0)
    #expect(try BatchProgram.run("cleanup", "job.json", in: directory).status == 0)
    #expect(rename(directory.file("job.1.batch"), directory.file("job.batch")) == 0)
    // Whoever has the database may as well have the checkpoint.
    #expect(chown(directory.file("test.db"), 65534, 65534) == 0)
    #expect(try BatchProgram.run("status", "job.json", in: directory).status == 0)
  }

  @Test func `a job's files are readable by those who can read the database`() throws {
    try directory.write(
      JobText.export(
        to: "out.ndjson",
        adding: ["throttle": ["flagFile": "hold"], "report": ["path": "report.html"]]
      ),
      to: "job.json"
    )
    func mode(_ name: String) throws -> Int {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.file(name))
      return try #require(attributes[.posixPermissions] as? Int)
    }
    for expected in [0o600, 0o640] {
      #expect(chmod(directory.file("test.db"), mode_t(expected)) == 0)
      try directory.write("", to: "hold")
      let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
      while let line = program.nextLine(), !line.contains(#""event":"throttled""#) {}
      #expect(try BatchProgram.run("pause", "job.json", in: directory).status == 0)
      for name in try directory.names()
      where name.hasPrefix("job.batch") || name.hasSuffix(".partial") {
        if name.hasSuffix(".history") { continue }
        #expect(try mode(name) == expected, "\(name)")
      }
      #expect(try directory.names().contains("job.batch.control"))
      #expect(try BatchProgram.run("resume", "job.json", in: directory).status == 0)
      try FileManager.default.removeItem(atPath: directory.file("hold"))
      #expect(program.wait().status == 0)
      let saved = try BatchProgram.run("ids", "job.json", "--output", "all.ids", in: directory)
      #expect(saved.status == 0, "\(saved.errors)")
      if try directory.names().contains("job.batch.history") {
        // As it was made, with what lets those in who may read its files.
        #expect(try mode("job.batch.history") == 0o750)
      }
      for name in ["job.batch", "out.ndjson", "report.html", "all.ids"] {
        #expect(try mode(name) == expected, "\(name)")
      }
      try FileManager.default.removeItem(atPath: directory.file("all.ids"))
    }
  }
}
