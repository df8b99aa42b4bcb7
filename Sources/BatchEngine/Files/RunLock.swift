package import BatchIdentifiers
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The right to run a job, held by one process at a time.
///
/// It is a POSIX lock on a file beside the checkpoint. The kernel drops it with the process that
/// holds it, however that dies, so there is never a stale lock to remove by hand. Every run that keeps a
/// record takes it first. It knows a run by the path of its checkpoint only: whether another process has
/// come to the same run by another path, the store says.
package final class RunLock: Sendable {
  private let path: String
  private let file: FileDescriptor
  /// The run whose failed identifiers a process was about to try again when it was killed.
  package let interruptedRetry: String?
  private let isFileRemoved = Lock(false)

  /// Takes the lock of a checkpoint.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` if another run holds it.
  package convenience init(of files: RunFiles) throws(BatchError) {
    try self.init(
      at: Self.path(forCheckpoint: files.checkpoint),
      beside: "checkpoint",
      files.checkpoint,
      files.permissions
    )
  }

  /// Takes the lock that runs of a job have beside its store, whatever their checkpoints are called;
  /// nil if there is no store.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` if another run holds it.
  package convenience init?(besideStoreOf files: RunFiles) throws(BatchError) {
    guard let store = FileSystem.resolve(files.store) else { return nil }
    // A name may hold what no file name does.
    let name = String(XXHash64.hash(Array(files.job.utf8)), radix: 16)
    try self.init(
      at: "\(store.string)-batch-\(name).lock",
      beside: "database",
      store,
      files.permissions
    )
  }

  private init(
    at path: String,
    beside what: String,
    _ place: FilePath,
    _ permissions: FilePermissions
  ) throws(BatchError) {
    // POSIX locks do not keep a process from locking twice.
    guard heldHere.withLock({ $0.insert(path).inserted }) else {
      throw Self.alreadyRunning(getpid(), place)
    }
    do {
      file = try Self.lock(path, beside: what, place, permissions)
      interruptedRetry = Self.notedRetry(file)
      self.path = path
    } catch {
      _ = heldHere.withLock { $0.remove(path) }
      throw error
    }
  }

  /// Removes the file, so that this need not be done after the last word of a run.
  ///
  /// The lock goes with this object. Whoever comes in between finds that the store, or the checkpoint, is
  /// taken.
  package func removeFile() {
    guard
      !isFileRemoved.withLock({ isRemoved in
        defer { isRemoved = true }
        return isRemoved
      })
    else { return }
    unsafe unlink(path)
  }

  deinit {
    // Removed before it is released: whoever opened it meanwhile sees that the path is no longer
    // the file it has locked, and opens again.
    removeFile()
    try? file.close()
    _ = heldHere.withLock { $0.remove(path) }
  }

  private static let retryMark = "retry-failed "

  /// Notes whose failed identifiers are about to be tried again, for the case that this process is
  /// killed before the checkpoint says so.
  package func noteRetry(of run: String) {
    let text = Array((Self.retryMark + run).utf8)
    // It is for the better only: without it nothing is lost.
    _ = try? file.writeAll(toAbsoluteOffset: 0, text)
  }

  /// The run whose failed identifiers a process was about to try again when it was killed.
  ///
  /// - Precondition: This process does not hold the lock: it would give it up.
  package static func interruptedRetry(ofCheckpoint checkpoint: FilePath) -> String? {
    let path = FilePath(path(forCheckpoint: checkpoint))
    let file = try? FileDescriptor.openRegularFile(path, .readOnly, options: .noFollow)
    guard let file else { return nil }
    defer { try? file.close() }
    return notedRetry(file)
  }

  private static func notedRetry(_ file: FileDescriptor) -> String? {
    // Nothing has moved the position of a file that was just opened.
    let text = String(decoding: (try? file.read(atMost: 100)) ?? [], as: UTF8.self)
    return text.hasPrefix(retryMark) ? String(text.dropFirst(retryMark.count)) : nil
  }

  /// The process that holds the lock of a checkpoint, or nil if none does.
  package static func holder(ofCheckpoint checkpoint: FilePath) -> Int32? {
    let path = Self.path(forCheckpoint: checkpoint)
    // Closing any descriptor of the file would drop a lock that this process holds.
    if heldHere.withLock({ $0.contains(path) }) { return getpid() }
    let file = try? FileDescriptor.openRegularFile(FilePath(path), .readWrite, options: .noFollow)
    guard let file else { return nil }
    defer { try? file.close() }
    return holder(file)
  }

  private static func path(forCheckpoint checkpoint: FilePath) -> String {
    // One file has one lock, however its path is spelt.
    let name = (checkpoint.lastComponent?.string ?? "") + ".lock"
    let folder = FileSystem.resolve(FileSystem.folder(of: checkpoint))
    return folder.map { "\($0)/\(name)" } ?? "\(checkpoint).lock"
  }

  private static func lock(
    _ path: String,
    beside what: String,
    _ place: FilePath,
    _ permissions: FilePermissions
  ) throws(BatchError) -> FileDescriptor {
    while true {
      let file: FileDescriptor
      do throws(BatchError) {
        // A link in a folder of many would have the file that it names made.
        file = try .openRegularFile(
          FilePath(path),
          .readWrite,
          options: [.create, .noFollow],
          permissions: permissions
        )
      } catch {
        guard let cause = error.underlying as? Errno else { throw error }
        throw BatchError(
          .fileAccess,
          "cannot write beside the \(what): \(cause)",
          at: path,
          remedy: what == "checkpoint"
            ? "make the folder writable, or name another with checkpoint.path"
            : "make the folder writable"
        )
      }
      var range = wholeFile()
      guard unsafe fcntl(file.rawValue, F_SETLK, &range) == 0 else {
        let holder = holder(file)
        try? file.close()
        throw alreadyRunning(holder, place)
      }
      let locked = try? FileSystem.status(of: file)
      if let locked, locked.identity == FileSystem.status(of: FilePath(path))?.identity {
        return file
      }
      try? file.close()
    }
  }

  private static func holder(_ file: FileDescriptor) -> Int32? {
    var range = wholeFile()
    guard unsafe fcntl(file.rawValue, F_GETLK, &range) == 0, range.l_type != Int16(F_UNLCK) else {
      return nil
    }
    return range.l_pid
  }

  private static func wholeFile() -> flock {
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    return range
  }

  private static func alreadyRunning(_ process: Int32?, _ checkpoint: FilePath) -> BatchError {
    let process = process.map { " (process \($0))" } ?? ""
    return BatchError(
      .alreadyRunning,
      "another run of this job is alive\(process)",
      at: checkpoint.string,
      remedy: "wait for it, or stop it with SIGTERM"
    )
  }
}

/// The lock files that this process holds.
private let heldHere = Lock<Set<String>>([])
