import BatchPlatform
package import SystemPackage

/// A file written under a temporary name, so that it appears completely or not at all.
package final class NewFile {
  private let path: FilePath
  private let temporaryPath: FilePath
  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var isOpen = true

  /// Begins a file, beside any existing file of the same name.
  ///
  /// Throws if the system refuses, or if SQLite keeps a file with that name beside a database. The
  /// permissions are subject to the process's mask (`umask(2)`).
  package init(for path: FilePath, permissions: FilePermissions) throws(BatchError) {
    self.path = path
    guard let name = path.lastComponent?.string, name != "..", name != "." else {
      throw BatchError(
        .fileAccess,
        "this is not the path of a file",
        at: path.string,
        remedy: "give the name of a file"
      )
    }
    try refuseCompanion(path)
    var attempt = 0
    while true {
      let temporary = path.removingLastComponent().appending(".\(name).\(getpid())-\(attempt).tmp")
      do {
        descriptor = try FileDescriptor.open(
          temporary,
          .writeOnly,
          options: [.create, .exclusiveCreate, .closeOnExec],
          permissions: permissions
        )
        temporaryPath = temporary
        return
      } catch Errno.fileExists where attempt < 1000 {
        attempt += 1
      } catch {
        throw .access(path, "it cannot be created", error)
      }
    }
  }

  deinit {
    if isOpen { try? descriptor.close() }
  }

  package static func write(
    _ bytes: [UInt8],
    to path: FilePath,
    permissions: FilePermissions
  ) throws(BatchError) {
    let file = try NewFile(for: path, permissions: permissions)
    do throws(BatchError) {
      try file.write(bytes)
      try file.publish(overwriting: true)
    } catch {
      file.remove()
      throw error
    }
  }

  package func write(_ bytes: [UInt8]) throws(BatchError) {
    try write(bytes.span)
  }

  func write(_ bytes: Span<UInt8>) throws(BatchError) {
    buffer.append(copying: bytes)
    if buffer.count >= 1 << 16 { try flush() }
  }

  private func flush() throws(BatchError) {
    do {
      try descriptor.writeAll(buffer)
    } catch {
      throw .access(path, "it cannot be written", error)
    }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Syncs the file and gives it its name; throws if a file with that name exists and may not be
  /// replaced.
  package func publish(overwriting: Bool) throws(BatchError) {
    try flush()
    try descriptor.synchronize(path)
    isOpen = false
    do {
      try descriptor.close()
    } catch {
      throw .access(path, "it cannot be written", error)
    }
    if overwriting {
      // The system reads the two paths, which are terminated and live until it returns.
      guard unsafe rename(temporaryPath.string, path.string) == 0 else {
        throw .access(path, "it cannot be replaced", Errno(rawValue: errno))
      }
    } else {
      // Unlike a rename, a link fails if the name is taken. The system reads the two paths, which
      // are terminated and live until it returns.
      guard unsafe link(temporaryPath.string, path.string) == 0 else {
        let error = Errno(rawValue: errno)
        guard error == .fileExists else { throw .access(path, "it cannot be created", error) }
        throw BatchError(
          .fileAccess,
          "there is already a file of this name",
          at: path.string,
          remedy: "choose another name, or remove the file",
          underlying: error
        )
      }
      // The system reads the path, which is terminated and lives until it returns.
      unsafe unlink(temporaryPath.string)
    }
    try synchronizeFolder()
  }

  private func synchronizeFolder() throws(BatchError) {
    var folder = path.removingLastComponent()
    if folder.isEmpty { folder = "." }
    do {
      let descriptor = try FileDescriptor.open(
        folder,
        .readOnly,
        options: [.closeOnExec]
      )
      defer { try? descriptor.close() }
      try descriptor.synchronize(folder)
    } catch let error as BatchError {
      throw error
    } catch {
      throw .access(path, "its folder cannot be opened", error)
    }
  }

  package func remove() {
    // The system reads the path, which is terminated and lives until it returns.
    unsafe unlink(temporaryPath.string)
  }
}

/// Refuses the name of a file that SQLite would keep beside a database, whether or not it exists.
private func refuseCompanion(_ path: FilePath) throws(BatchError) {
  guard let name = path.lastComponent?.string,
    let suffix = ["-wal", "-shm", "-journal"].first(where: name.hasSuffix)
  else { return }
  let database = path.removingLastComponent().appending(String(name.dropLast(suffix.count)))
  var status = stat()
  // The system reads the path, which is terminated, and fills the given structure.
  guard unsafe stat(database.string, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
    return
  }
  throw BatchError(
    .fileAccess,
    "SQLite keeps a part of the database \(database.string) in a file of this name",
    at: path.string,
    remedy: "choose another name"
  )
}

extension FileDescriptor {
  func synchronize(_ path: FilePath) throws(BatchError) {
    while fsync(rawValue) != 0 {
      let error = Errno(rawValue: errno)
      // Some file systems cannot sync folders; there is nothing to wait for.
      if error == .invalidArgument { return }
      guard error == .interrupted else {
        throw .access(path, "it cannot be synchronized with the disk", error)
      }
    }
  }
}
