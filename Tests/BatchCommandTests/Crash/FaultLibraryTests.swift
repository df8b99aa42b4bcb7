#if os(Linux)
import BatchTestSupport
import Foundation
import Testing

/// The library counts and fails the intended calls, and nothing else.
@Suite struct FaultLibraryTests {
  private let directory: TemporaryDirectory
  private let notes: FaultLibrary.Notes

  init() throws {
    directory = try TemporaryDirectory()
    notes = try FaultLibrary.Notes()
    try TestDatabase.makeNumbers(10, in: directory)
    try directory.write(JobText.update(), to: "job.json")
  }

  private func run(_ fault: Fault?, at position: Int = 0) throws -> BatchProgram.Result {
    let environment = try FaultLibrary.shared().environment(
      notes,
      fault,
      at: position,
      isRecorded: true
    )
    return try BatchProgram.run("run", "job.json", in: directory, environment: environment)
  }

  @Test func `the fault library counts and logs the calls of an undisturbed run`() throws {
    #expect(try run(nil).status == 0)
    let calls = try notes.calls()
    let counts = try notes.counts()
    #expect(counts.hits == 0 && counts.calls == calls.count)
    let kinds = Set(calls.map(\.description))
    for kind in [
      "create job.batch.lock", "lock job.batch.lock", "write temporary file",
      "sync temporary file", "write test.db-wal", "map test.db-shm", "unlink test.db-wal",
      "write standard output", "sync folder",
    ] {
      #expect(kinds.contains(kind), "\(kind)")
    }
    #expect(!calls.contains { $0.name == "comm" })
  }

  @Test func `the call log reproduces the files that the run left`() throws {
    var files: [String: Disk.File] = [:]
    for name in try directory.names() {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.file(name))
      let inode = try #require(attributes[.systemFileNumber] as? NSNumber)
      files[name] = Disk.File(bytes: try directory.read(name), inode: inode.uint64Value)
    }
    #expect(try run(nil).status == 0)
    var disk = Disk(directory.path, files)
    let entries = try notes.entries()
    for entry in entries { disk.carryOut(entry) }
    disk.carryOut(CallLog.Entry(effect: .sync, path: directory.path))
    for inode in Set(entries.map(\.inode)) {
      let path = entries.first { $0.inode == inode }?.path ?? ""
      disk.carryOut(CallLog.Entry(effect: .sync, path: path, inode: inode))
    }
    var generator = SeededGenerator(seed: 1)
    let remains = disk.afterPowerLoss(using: &generator).mapValues { Data($0.bytes) }
    #expect(try remains == directory.contents())
  }

  @Test func `the fault library kills a process before its call is made`() throws {
    #expect(try run(.kill, at: 1).status == -SIGKILL)
    #expect(try notes.calls().map(\.description) == ["create job.batch.lock"])
    #expect(try directory.names() == ["job.json", "test.db"])
  }

  @Test(arguments: Fault.all.dropFirst())
  func `the fault library fails a call once or from then on`(fault: Fault) throws {
    _ = try run(fault, at: 3)
    let counts = try notes.counts()
    #expect(fault.repeats ? counts.hits == counts.calls - 2 : counts.hits == 1)
  }

  @Test func `the fault library does not affect started programs`() throws {
    let more: [String: Any] = ["hooks": ["onStart": ["sh", "-c", "env > told; echo >> other"]]]
    try directory.write(JobText.update(adding: more), to: "job.json")
    #expect(try run(nil).status == 0)
    let told = String(decoding: try directory.read("told"), as: UTF8.self)
    #expect(told.contains("BATCH_HOOK=onStart"))
    #expect(!told.contains("LD_PRELOAD") && !told.contains("BATCH_FAULT"))
    #expect(try !notes.calls().contains { $0.name == "other" || $0.name == "told" })
  }
}
#endif
