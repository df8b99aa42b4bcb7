import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The folder of a rehearsal, which nobody else may look into: the clone, the checkpoint, an export.
struct RehearsalFolder: Sendable {
  let path: FilePath
  /// The clone.
  let database: FilePath
  /// Where the job's exported file goes to: no other file here has its name.
  let output: FilePath

  /// Makes a folder of a new name.
  ///
  /// - Parameters:
  ///   - job: The job that is rehearsed.
  ///   - store: Its database.
  ///   - folder: Where the new folder is made.
  /// - Throws: `BatchError` of code `fileAccess` or `diskFull` if none can be made there.
  init(of job: Job, _ store: Store, in folder: FilePath) throws(BatchError) {
    let template = FileSystem.absolute(folder).appending("\(job.name).rehearsal.XXXXXX")
    var name = Array(template.string.utf8CString)
    let made = unsafe name.withUnsafeMutableBufferPointer { name in
      unsafe name.baseAddress.flatMap { unsafe mkdtemp($0) } != nil
    }
    guard made else {
      var error = FileSystem.failed("no folder can be made here", folder)
      error.remedy = "name another one with --folder"
      throw error
    }
    path = FilePath(String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    database = path.appending(FilePath(store.path).lastComponent?.string ?? "clone.db")
    output = path.appending("output")
  }

  /// Makes the files that the clone and an export go to.
  func prepare(for job: Job) throws(BatchError) {
    do {
      let file = try FileDescriptor.open(
        database,
        .writeOnly,
        options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: job.files.permissions
      )
      try file.close()
    } catch {
      throw FileSystem.failed("cannot make the clone", database, error)
    }
    guard case .export = job.action else { return }
    guard unsafe output.withPlatformString({ unsafe mkdir($0, 0o700) }) == 0 else {
      throw FileSystem.failed("cannot make a folder", output)
    }
  }

  /// Removes the folder with all that is in it.
  func remove() throws(BatchError) {
    do {
      try FileManager.default.removeItem(atPath: path.string)
    } catch {
      throw FileSystem.failed("cannot remove the clone", path, error)
    }
  }

  /// Refuses a place that has no room.
  ///
  /// - Parameters:
  ///   - bytes: How long the database is.
  ///   - reserved: What the job wants to be free in any case.
  ///   - folder: The place.
  /// - Throws: `BatchError` of code `diskFull`.
  static func requireRoom(
    for bytes: Int64,
    reserving reserved: Int64,
    in folder: FilePath
  ) throws(BatchError) {
    // The run makes a log, and rows may become longer.
    let needed = bytes + max(bytes / 10, min(bytes, 16_000_000)) + reserved
    guard let free = FileSystem.freeBytes(at: folder) else {
      throw FileSystem.failed("the folder cannot be used", folder)
    }
    guard free < needed else { return }
    throw BatchError(
      .diskFull,
      "a clone has no room: it takes \(ByteSize(bytes: needed)), and \(ByteSize(bytes: free)) are free",
      at: folder.string,
      remedy: "make room, or name a folder on another disk with --folder"
    )
  }

  /// Has a file share the blocks of another one; false if the file system does not do that.
  ///
  /// In a process of its own: to open and close the file of a database here would give up all locks that
  /// SQLite has on it in this process (<https://www.sqlite.org/howtocorrupt.html>, 2.2).
  @Sendable static func shareBlocks(of path: FilePath, with copy: FilePath) -> Bool {
    #if canImport(Darwin)
    let option = "-c"
    #else
    // The call behind it is FICLONE, which copies nothing if it cannot share.
    let option = "--reflink=always"
    #endif
    do throws(BatchError) {
      let arguments = ["cp", option, "--", path.string, copy.string]
      let child = try ChildProcess(ChildProcess.Command(arguments, in: ""))
      return child.complete(within: .seconds(60)) == nil
    } catch {
      return false
    }
  }
}
