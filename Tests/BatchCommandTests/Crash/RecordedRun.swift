#if os(Linux)
import BatchTestSupport
import Foundation
import SystemPackage

/// A run that was left alone, with everything that it wrote: what disks after a loss of power are
/// made of.
final class RecordedRun {
  /// Where the run was; disks are made there, since a job knows its files by their paths.
  let directory: TemporaryDirectory
  let entries: [CallLog.Entry]
  /// The files that were there before.
  private let first: [String: Disk.File]
  /// The files of the run by inode: a reused inode is the same file.
  private let stash: TemporaryDirectory
  private let stashed: Set<UInt64>

  private struct Failure: Error {
    let errors: String
  }

  /// Runs a scenario.
  init(_ scenario: CrashScenario) throws {
    directory = try TemporaryDirectory()
    try scenario.prepare(directory)
    first = try Self.files(in: directory)
    let notes = try FaultLibrary.Notes()
    let environment = try FaultLibrary.shared().environment(notes, isRecorded: true)
    let result = try scenario.run(in: directory, environment: environment)
    guard result.endedWell else { throw Failure(errors: result.errors) }
    entries = try notes.entries()
    stash = try TemporaryDirectory()
    var stashed: Set<UInt64> = []
    for name in try directory.names() {
      let inode = try Self.inode(of: directory.file(name))
      try FileManager.default.moveItem(
        atPath: directory.file(name),
        toPath: stash.file("\(inode)")
      )
      stashed.insert(inode)
    }
    self.stashed = stashed
  }

  private static func inode(of path: String) throws -> UInt64 {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0
  }

  private static func files(in directory: TemporaryDirectory) throws -> [String: Disk.File] {
    var files: [String: Disk.File] = [:]
    for name in try directory.names() {
      files[name] = Disk.File(
        bytes: try directory.read(name),
        inode: try inode(of: directory.file(name))
      )
    }
    return files
  }

  /// The number of calls up to the last change: that which acknowledges the run.
  var callsToAcknowledgement: Int { (entries.lastIndex(where: \.isChange) ?? -1) + 1 }

  /// The number of calls after which the acknowledgement is certain.
  var callsToCertainty: Int {
    max(entries.lastIndex { $0.effect == .sync } ?? -1, callsToAcknowledgement - 1) + 1
  }

  /// Fills the folder with the files that a power failure leaves after this many calls.
  func losePower(after calls: Int, seed: UInt64) throws {
    var disk = Disk(directory.path, first, isOrdered: CrashSettings.isOrdered)
    for entry in entries.prefix(calls) { disk.carryOut(entry) }
    var generator = SeededGenerator(seed: seed)
    for name in try directory.names() {
      try FileManager.default.removeItem(atPath: directory.file(name))
    }
    for (name, file) in disk.afterPowerLoss(using: &generator) { try put(file, at: name) }
  }

  private func put(_ file: Disk.File, at name: String) throws {
    let path = directory.file(name)
    // No call is recorded for a folder: it exists if one of its files does.
    try FileManager.default.createDirectory(
      atPath: FilePath(path).removingLastComponent().string,
      withIntermediateDirectories: true
    )
    // A database is known by its contents, and is not to have a second name.
    if stashed.contains(file.inode), !name.hasSuffix(".db") {
      try FileManager.default.linkItem(atPath: stash.file("\(file.inode)"), toPath: path)
    } else {
      guard FileManager.default.createFile(atPath: path, contents: nil) else {
        throw CocoaError(.fileWriteUnknown)
      }
    }
    // In place, so that it stays the file that it is.
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: Data(file.bytes))
  }
}
#endif
