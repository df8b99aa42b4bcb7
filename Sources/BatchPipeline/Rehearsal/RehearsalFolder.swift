import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchPlatform
import BatchSQLite
import SystemPackage

/// The private folder of a rehearsal, for the clone, the checkpoint, and an export.
struct RehearsalFolder: Sendable {
  let path: FilePath
  let database: FilePath
  /// The exported file; its name differs from those of all other files here.
  let output: FilePath

  /// Creates a folder with a new name in `folder`.
  init(of job: Job, _ store: Store? = nil, in folder: FilePath) throws(BatchError) {
    let template = FileSystem.absolute(folder).appending("\(job.name).rehearsal.XXXXXX")
    var name = Array(template.string.utf8CString)
    let made = unsafe name.withUnsafeMutableBufferPointer { name in
      unsafe name.baseAddress.flatMap { unsafe mkdtemp($0) } != nil
    }
    guard made else {
      var error = FileSystem.failed("cannot create a folder here", folder)
      error.remedy = "name another one with --folder"
      throw error
    }
    path = FilePath(String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    let file = store.flatMap { FilePath($0.path).lastComponent?.string }
    database = path.appending(file ?? "clone.db")
    output = path.appending("output")
  }

  func prepare(for job: Job) throws(BatchError) {
    if job.database.server == nil { try prepareClone(for: job) }
    guard case .export = job.action else { return }
    guard unsafe output.withPlatformString({ unsafe mkdir($0, 0o700) }) == 0 else {
      throw FileSystem.failed("cannot create a folder", output)
    }
  }

  private func prepareClone(for job: Job) throws(BatchError) {
    do {
      let file = try FileDescriptor.open(
        database,
        .writeOnly,
        options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: job.files.permissions
      )
      try file.close()
    } catch {
      throw FileSystem.failed("cannot create the clone", database, error)
    }
  }

  func remove() throws(BatchError) {
    do {
      try FileManager.default.removeItem(atPath: path.string)
    } catch {
      throw FileSystem.failed("cannot remove the clone", path, error)
    }
  }

  /// Refuses a folder with too little free space; `reserved` is the space that the job requires in
  /// any case.
  static func requireRoom(
    for bytes: Int64,
    reserving reserved: Int64,
    in folder: FilePath
  ) throws(BatchError) {
    // The run writes a log, and rows may become longer.
    let needed = bytes + max(bytes / 10, min(bytes, 16_000_000)) + reserved
    guard let free = FileSystem.freeBytes(at: folder) else {
      throw FileSystem.failed("the folder cannot be used", folder)
    }
    guard free < needed else { return }
    throw BatchError(
      .diskFull,
      "there is no room for a clone: it takes \(ByteSize(bytes: needed)), and \(ByteSize(bytes: free)) are free",
      at: folder.string,
      remedy: "make room, or name a folder on another disk with --folder"
    )
  }

  /// Makes a file share the blocks of another one; false if the file system does not support this.
  ///
  /// This uses a separate process: opening and closing the file of a database here would release
  /// all of SQLite's locks on it in this process (<https://www.sqlite.org/howtocorrupt.html>, 2.2).
  @Sendable static func shareBlocks(of path: FilePath, with copy: FilePath) -> Bool {
    #if canImport(Darwin)
    let option = "-c"
    #else
    // The underlying call is FICLONE, which copies nothing if it cannot share.
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
