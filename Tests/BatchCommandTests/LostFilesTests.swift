import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Files that are removed or replaced during a run: the store decides.
@Suite(.timeLimit(.minutes(20))) struct LostFilesTests {
  private static let total = 300
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(Self.total, in: directory)
  }

  private func values() throws -> [String] {
    try TestDatabase.texts(path, "SELECT n || ': ' || count(*) FROM numbers GROUP BY n ORDER BY n")
  }

  private func write(_ list: String, perSecond pace: Double? = nil) throws {
    var more: [String: Any] = [
      "chunk": ["size": 10], "checkpoint": ["list": list, "interval": "1ms"],
    ]
    if let pace { more["throttle"] = ["identifiersPerSecond": pace] }
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  /// Begins a run that has made some progress, and continues at its pace; those after it have none.
  private func begin(
    _ list: String = "file",
    perSecond pace: Double = 100
  ) throws -> BatchProgram {
    try write(list, perSecond: pace)
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    try write(list)
    return program
  }

  private func killed(_ program: BatchProgram) {
    program.send(SIGKILL)
    #expect(program.wait().status == -SIGKILL)
  }

  @Test func `a list stored in the database replaces a lost checkpoint`() throws {
    killed(try begin("store"))
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try values() == ["1: \(Self.total)"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM _batch_list") == ["0"])
  }

  @Test func `a run continues if its checkpoint is removed`() throws {
    let program = try begin()
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    let pace = "throttle.identifiersPerSecond=none"
    #expect(try BatchProgram.run("set", "job.json", pace, in: directory).status == 0)
    #expect(program.wait().status == 0)
    #expect(try values() == ["1: \(Self.total)"])
    // Nothing is unfinished.
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test func `a run stops if its database is replaced`() throws {
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
    let program = try begin()
    let moved = rename(directory.file("backup.db"), path)
    #expect(moved == 0)
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("moved, removed or replaced"))
    // The backup knows nothing of the run.
    let again = try BatchProgram.run("run", "job.json", in: directory)
    #expect(again.status == 2, "\(again.errors)")
    #expect(again.errors.contains("the checkpoint belongs to store"))
    #expect(try BatchProgram.run("run", "job.json", "--fresh", in: directory).status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `a run stops if a backup is restored, and its rest is done afterwards`() throws {
    let program = try begin(perSecond: 20)
    let watch = try FolderWatch(directory)
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("copy.db"))'")
    // The next chunk writes to the log, which is half a second later.
    #expect(watch.seesChange(of: "test.db-wal"))
    let script = """
      import sqlite3
      live = sqlite3.connect('test.db', timeout=60)
      sqlite3.connect('copy.db').backup(live)
      """
    let python = Process()
    python.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    python.arguments = ["python3", "-c", script]
    python.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    try python.run()
    python.waitUntilExit()
    #expect(python.terminationStatus == 0)
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("no longer as run"))
    let again = try BatchProgram.run("run", "job.json", in: directory)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `the error for a renamed job file names the checkpoint of its run`() throws {
    killed(try begin())
    try FileManager.default.moveItem(
      atPath: directory.file("job.json"),
      toPath: directory.file("job2.json")
    )
    let refused = try BatchProgram.run("run", "job2.json", in: directory)
    #expect(refused.status == 2)
    let says = [
      "whose checkpoint is job.batch; the checkpoint of this job file is job2.batch",
      "if it is the same job, rename the checkpoint job.batch to job2.batch",
      "if it is another one, change \"name\" in this job file",
    ]
    for piece in says { #expect(refused.errors.contains(piece), "\(refused.errors)") }
    try FileManager.default.moveItem(
      atPath: directory.file("job.batch"),
      toPath: directory.file("job2.batch")
    )
    let resumed = try BatchProgram.run("run", "job2.json", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try values() == ["1: \(Self.total)"])
  }
}
