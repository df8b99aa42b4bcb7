import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// One process works on a run, whatever the name of its checkpoint.
@Suite(.timeLimit(.minutes(20))) struct OneProcessTests {
  /// How a second process reaches the run of the first.
  enum Route: CaseIterable {
    case symbolicLink, hardLink, copiedFolder, removedLock
  }

  /// Where it is recorded what is done.
  enum Record: CaseIterable {
    case store, export
  }

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

  /// A job that has made some progress when it reports that its pace holds it: for half a minute,
  /// unless the pace is changed.
  private func job(
    _ record: Record,
    checkpoint: String = "job.batch",
    perSecond pace: Double? = 10
  ) throws -> String {
    let place = ["path": checkpoint, "interval": "1ms"]
    var more: [String: Any] = ["chunk": ["size": 10], "checkpoint": place]
    if let pace { more["throttle"] = ["identifiersPerSecond": pace] }
    return record == .export
      ? try JobText.export(to: directory.file("out.ndjson"), database: path, adding: more)
      : try JobText.update(database: path, adding: more)
  }

  /// Begins the run of `job.json` and waits until it has made some progress.
  private func begin() throws -> BatchProgram {
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    return program
  }

  /// Takes the way to the run of `job.json`.
  ///
  /// - Returns: The job file of the second process, which has no pace.
  private func take(_ route: Route, _ record: Record) throws -> String {
    func job(_ record: Record, checkpoint: String = "job.batch") throws -> String {
      try self.job(record, checkpoint: checkpoint, perSecond: nil)
    }
    let files = FileManager.default
    let checkpoint = directory.file("job.batch")
    switch route {
    case .symbolicLink:
      try files.createDirectory(atPath: directory.file("b"), withIntermediateDirectories: true)
      try files.createSymbolicLink(
        atPath: directory.file("b/link.batch"),
        withDestinationPath: checkpoint
      )
      try directory.write(job(record, checkpoint: "b/link.batch"), to: "other.json")
    case .hardLink:
      try files.linkItem(atPath: checkpoint, toPath: directory.file("hard.batch"))
      try directory.write(job(record, checkpoint: "hard.batch"), to: "other.json")
    case .copiedFolder:
      try files.createDirectory(atPath: directory.file("b"), withIntermediateDirectories: true)
      try files.copyItem(atPath: checkpoint, toPath: directory.file("b/job.batch"))
      try directory.write(job(record), to: "b/other.json")
      return "b/other.json"
    case .removedLock:
      try files.removeItem(atPath: directory.file("job.batch.lock"))
      try directory.write(job(record), to: "job.json")
      return "job.json"
    }
    return "other.json"
  }

  @Test(arguments: Route.allCases, Record.allCases)
  func `a second process is refused while the first is alive and resumes afterwards`(
    route: Route,
    record: Record
  ) throws {
    try directory.write(job(record), to: "job.json")
    let first = try begin()
    let other = try take(route, record)
    let second = try BatchProgram.run("run", other, in: directory)
    #expect(second.status == 5, "\(second.errors)")
    first.send(SIGKILL)
    #expect(first.wait().status == -SIGKILL)
    let third = try BatchProgram.run("run", other, in: directory)
    #expect(third.status == 0, "\(third.errors)")
    if record == .export {
      let lines = try String(decoding: directory.read("out.ndjson"), as: UTF8.self).split(
        separator: "\n"
      )
      #expect(lines.count == Self.total && Set(lines).count == Self.total)
    } else {
      #expect(try values() == ["1: \(Self.total)"])
    }
  }

  @Test func `a run of a job under another checkpoint is refused while the first is alive`() throws
  {
    try directory.write(job(.store), to: "job.json")
    let first = try begin()
    try directory.write(job(.store, checkpoint: "other.batch"), to: "other.json")
    let second = try BatchProgram.run("run", "other.json", in: directory)
    #expect(second.status == 5, "\(second.errors)")
    let pace = "throttle.identifiersPerSecond=none"
    #expect(try BatchProgram.run("set", "job.json", pace, in: directory).status == 0)
    #expect(first.wait().status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `a run that was taken over stops before it repeats a row`() throws {
    // It soon continues, and then sees what happened to it.
    try directory.write(job(.store, perSecond: 100), to: "job.json")
    let first = try begin()
    // As a process of another machine would have it, which cannot see this one.
    try TestDatabase.make(in: directory, "UPDATE _batch_run SET owner = 'elsewhere'")
    let result = first.wait()
    #expect(result.status == 5, "\(result.errors)")
    try directory.write(job(.store, perSecond: nil), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }
}
