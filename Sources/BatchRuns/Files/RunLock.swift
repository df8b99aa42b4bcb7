package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The right to run a job, held by one process at a time.
///
/// It is a POSIX lock on a file beside the checkpoint. The kernel releases it when the process
/// dies, in whatever way, so there is never a stale lock to remove by hand. Every run with a record
/// takes it first. The lock identifies a run only by the path of its checkpoint; the store detects
/// a second process that reaches the same run by another path.
package final class RunLock: Sendable {
  private let path: String
  private let file: FileDescriptor
  /// The run whose failed identifiers the previous, killed process was about to retry.
  package let interruptedRetry: String?
  private let isFileRemoved = Lock(false)

  package convenience init(of files: RunFiles) throws(BatchError) {
    try self.init(
      at: Self.path(forCheckpoint: files.checkpoint),
      beside: "checkpoint",
      files.checkpoint,
      files.permissions
    )
  }

  private init(
    at path: String,
    beside what: String,
    _ place: FilePath,
    _ permissions: FilePermissions
  ) throws(BatchError) {
    // POSIX locks do not prevent a process from locking twice.
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

  /// Removes the file early, so that nothing is left to do once the end of a run is reported.
  ///
  /// The lock itself is held as long as this object exists. Another process that takes the lock in
  /// between finds the store or the checkpoint taken.
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
    // Removed before the lock is released: a process that has opened the file meanwhile sees that
    // the path no longer leads to the file it locked, and opens the path again.
    removeFile()
    try? file.close()
    _ = heldHere.withLock { $0.remove(path) }
  }

  private static let retryMark = "retry-failed "

  /// Notes the run whose failures are about to be retried, in case this process is killed before
  /// the checkpoint records it.
  package func noteRetry(of run: String) {
    let text = Array((Self.retryMark + run).utf8)
    // Optional: nothing is lost without it.
    _ = try? file.writeAll(toAbsoluteOffset: 0, text)
  }

  /// Reads the note of `noteRetry(of:)` that a killed process left.
  ///
  /// - Precondition: This process does not hold the lock: closing the file would release it.
  package static func interruptedRetry(ofCheckpoint checkpoint: FilePath) -> String? {
    let path = FilePath(path(forCheckpoint: checkpoint))
    let file = try? FileDescriptor.openRegularFile(path, .readOnly, options: .noFollow)
    guard let file else { return nil }
    defer { try? file.close() }
    return notedRetry(file)
  }

  private static func notedRetry(_ file: FileDescriptor) -> String? {
    // A newly opened file is read from its beginning.
    let text = String(decoding: (try? file.read(atMost: 100)) ?? [], as: UTF8.self)
    return text.hasPrefix(retryMark) ? String(text.dropFirst(retryMark.count)) : nil
  }

  package static func holder(ofCheckpoint checkpoint: FilePath) -> Int32? {
    let path = Self.path(forCheckpoint: checkpoint)
    // Closing any descriptor of the file would release a lock that this process holds.
    if heldHere.withLock({ $0.contains(path) }) { return getpid() }
    let file = try? FileDescriptor.openRegularFile(FilePath(path), .readWrite, options: .noFollow)
    guard let file else { return nil }
    defer { try? file.close() }
    return holder(file)
  }

  private static func path(forCheckpoint checkpoint: FilePath) -> String {
    // A file has one lock, however its path is spelled.
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
        // If it followed a link in a shared folder, it would create the file that the link names.
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
      remedy: "wait for it, or stop it: batch cancel, or SIGTERM"
    )
  }
}

private let heldHere = Lock<Set<String>>([])
