import BatchTestSupport
import Foundation
import Testing

#if canImport(Glibc)
import Glibc

/// A separate small file system, which only root may create.
private final class SmallDisk {
  let path: String

  /// Mounts one of a given size under a folder; nil if that is not permitted.
  init?(_ bytes: Int, in directory: TemporaryDirectory) {
    path = directory.file("disk")
    guard mkdir(path, 0o755) == 0, mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
      return nil
    }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }

  static var isPermitted: Bool {
    guard let directory = try? TemporaryDirectory() else { return false }
    return SmallDisk(1 << 16, in: directory) != nil
  }

  /// Fills the disk except for some bytes.
  func fill(leaving free: Int) throws {
    var status = statvfs()
    try #require(statvfs(path, &status) == 0)
    let count = Int(status.f_bavail) * Int(status.f_frsize) - free
    try Data(repeating: 1, count: count).write(to: URL(fileURLWithPath: "\(path)/filler"))
  }

  func makeReadOnly() throws {
    try #require(mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
  }

  func empty() throws { try FileManager.default.removeItem(atPath: "\(path)/filler") }
}

@Suite(.enabled(if: SmallDisk.isPermitted, "mounting a file system is not permitted"))
struct FullDiskTests {
  private let directory: TemporaryDirectory
  private let disk: SmallDisk

  init() throws {
    directory = try TemporaryDirectory()
    disk = try #require(SmallDisk(4 << 20, in: directory))
  }

  private func expectFull(_ location: SourceLocation = #_sourceLocation) throws {
    let result = try BatchProgram.run("run", "job.json", "--workers", "2", in: directory)
    #expect(result.status == 1, "\(result.errors)", sourceLocation: location)
    let errors = result.errors.split(separator: "\n").filter { $0.hasPrefix("error: ") }
    #expect(errors.count == 1, "\(result.errors)", sourceLocation: location)
    #expect(
      result.errors.contains("make room, then run the same command again"),
      "\(result.errors)",
      sourceLocation: location
    )
  }

  private func expectCompletes(_ location: SourceLocation = #_sourceLocation) throws {
    try disk.empty()
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)", sourceLocation: location)
  }

  @Test func `a database that fills the disk resumes once there is room`() throws {
    let path = try TestDatabase.makeNumbers(4000, in: directory, name: "disk/test.db")
    let job = try JobText.update(
      ["n": "n + 1", "label": "label || hex(zeroblob(100))"],
      database: "disk/test.db",
      adding: ["chunk": ["size": 100], "checkpoint": ["path": "job.batch"]]
    )
    try directory.write(job, to: "job.json")
    try disk.fill(leaving: 300_000)
    try expectFull()
    try expectCompletes()
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
    let lengths = "SELECT DISTINCT length(label) - length('label ' || id) FROM numbers"
    #expect(try TestDatabase.texts(path, lengths) == ["200"])
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test(arguments: [0, 20_000, 200_000])
  func `an export that fills the disk resumes once there is room`(free: Int) throws {
    try TestDatabase.makeNumbers(20_000, in: directory)
    try directory.write(JobText.export(to: "alone"), to: "alone.json")
    #expect(try BatchProgram.run("run", "alone.json", in: directory).status == 0)
    let job = try JobText.export(
      to: "disk/out",
      adding: ["chunk": ["size": 100], "checkpoint": ["interval": "1ms", "path": "job.batch"]]
    )
    try directory.write(job, to: "job.json")
    try disk.fill(leaving: free)
    try expectFull()
    try expectCompletes()
    let isSame = try directory.read("disk/out") == directory.read("alone")
    #expect(isSame)
  }

  /// A database in WAL mode on the disk, without the files of its log.
  private func makeLogged() throws {
    let path = try TestDatabase.makeNumbers(10, in: directory, name: "disk/test.db")
    #expect(try TestDatabase.texts(path, "PRAGMA journal_mode = wal") == ["wal"])
    try directory.write(JobText.update(database: "disk/test.db"), to: "job.json")
  }

  @Test func `the error of a full disk without room for the log's shared memory says so`() throws {
    try makeLogged()
    try disk.fill(leaving: 0)
    for arguments in [["plan", "job.json"], ["schema", "disk/test.db"]] {
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status != 0)
      #expect(
        result.errors.contains("the disk has no room for the shared-memory file"),
        "\(result.errors)"
      )
      #expect(result.errors.contains("make room"), "\(result.errors)")
    }
    try disk.empty()
    #expect(try BatchProgram.run("plan", "job.json", in: directory).status == 0)
  }

  @Test func `the error of a read-only folder of a database in WAL mode says so`() throws {
    try makeLogged()
    try disk.makeReadOnly()
    for arguments in [["plan", "job.json"], ["schema", "disk/test.db"]] {
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status != 0)
      #expect(
        result.errors.contains("make the folder of the database writable"),
        "\(result.errors)"
      )
    }
  }

  @Test func `a rehearsal without room for its clone is refused before it writes`() throws {
    try TestDatabase.makeNumbers(4000, in: directory, name: "disk/test.db")
    try directory.write(JobText.update(database: "disk/test.db"), to: "job.json")
    try disk.fill(leaving: 100_000)
    try Refusal.expect(
      ["rehearse", "job.json"],
      in: directory,
      status: 1,
      says: ["there is no room for a clone: it takes ", "--folder"]
    )
    let elsewhere = try BatchProgram.run("rehearse", "job.json", "--folder", ".", in: directory)
    #expect(elsewhere.status == 0, "\(elsewhere.errors)")
  }

  @Test func `a rehearsal that fills the disk reports it and frees the space`() throws {
    try TestDatabase.makeNumbers(4000, in: directory, name: "disk/test.db")
    let job = try JobText.update(
      ["label": "label || hex(zeroblob(1000))"],
      database: "disk/test.db",
      adding: ["checkpoint": ["path": "job.batch"]]
    )
    try directory.write(job, to: "job.json")
    let names = try directory.contents().keys.sorted()
    let result = try BatchProgram.run("rehearse", "job.json", in: directory)
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("full"), "\(result.errors)")
    #expect(try directory.contents().keys.sorted() == names)
  }

  @Test(arguments: [0, 8192])
  func `a checkpoint that fills the disk starts or resumes once there is room`(free: Int) throws {
    let path = try TestDatabase.makeNumbers(20_000, in: directory)
    // A list without any pattern takes room.
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE keyed (key TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0)",
      "INSERT INTO keyed (key) SELECT hex(randomblob(16)) FROM numbers"
    )
    let job = try JobText.update(entity: "keyed", adding: ["checkpoint": ["path": "disk/a.batch"]])
    try directory.write(job, to: "job.json")
    try disk.fill(leaving: free)
    try expectFull()
    try expectCompletes()
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM keyed") == ["1"])
  }
}
#endif
