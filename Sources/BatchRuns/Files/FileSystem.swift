package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// File system calls that swift-system lacks.
package enum FileSystem {
  /// Returns nil if there is no such file.
  package static func status(of path: FilePath) -> Stat? {
    try? path.stat()
  }

  package enum Kind {
    case nothing, file, folder, link, other
  }

  /// Does not follow symbolic links.
  package static func kind(of path: FilePath) -> Kind {
    switch try? path.stat(followTargetSymlink: false).type {
    case nil: .nothing
    case .regular: .file
    case .directory: .folder
    case .symbolicLink: .link
    default: .other
    }
  }

  /// The absolute path of an existing file, without symbolic links; nil if it does not exist.
  package static func resolve(_ path: FilePath) -> FilePath? {
    guard let resolved = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else {
      return nil
    }
    defer { unsafe free(resolved) }
    return unsafe FilePath(platformString: resolved)
  }

  /// The absolute path of a file that may be missing, without symbolic links in its folder.
  package static func absolute(_ path: FilePath) -> FilePath {
    if let resolved = resolve(path) { return resolved }
    guard let name = path.lastComponent, name.kind == .regular,
      let folder = resolve(folder(of: path))
    else { return path.lexicallyNormalized() }
    return folder.appending(name)
  }

  /// Returns why a file cannot be created under a name, or nil if it can.
  ///
  /// The test creates a file without a name, since a named one would stay if the process were
  /// killed at this moment. On file systems that have no such files, it creates a named one and
  /// removes it.
  package static func problemOfMaking(_ path: FilePath) -> Errno? {
    #if os(Linux)
    do throws(Errno) {
      try make(at: folder(of: path), temporaryFile)
      return nil
    } catch {
      // Kernels that do not know the flag answer EISDIR.
      guard error == .notSupported || error == .isDirectory else { return error }
    }
    #endif
    do throws(Errno) {
      try make(at: path, O_CREAT | O_EXCL)
      _ = try? remove(path)
      return nil
    } catch {
      return error
    }
  }

  private static func make(at path: FilePath, _ flags: Int32) throws(Errno) {
    let file = unsafe path.withPlatformString {
      unsafe open($0, flags | O_WRONLY | O_CLOEXEC, 0o600)
    }
    guard file >= 0 else { throw Errno(rawValue: errno) }
    close(file)
  }

  #if os(Linux)
  /// `O_TMPFILE`, a composite macro that Swift does not import.
  private static let temporaryFile = 0o20_000_000 | O_DIRECTORY
  #endif

  package static func status(of file: FileDescriptor) throws(BatchError) -> Stat {
    do {
      return try file.stat()
    } catch {
      throw BatchError(.fileAccess, "cannot examine a file: \(error)")
    }
  }

  /// The free space in bytes that the user may use.
  package static func freeBytes(at path: FilePath) -> Int64? {
    var status = statvfs()
    guard unsafe path.withPlatformString({ unsafe statvfs($0, &status) }) == 0 else { return nil }
    let product = Int64(status.f_bavail).multipliedReportingOverflow(by: Int64(status.f_frsize))
    return product.overflow ? nil : product.partialValue
  }

  /// Renames a file unless the new name is taken; returns whether it was free.
  package static func renameWithoutReplacing(
    _ path: FilePath,
    to other: FilePath
  ) throws(BatchError) -> Bool {
    // A link fails atomically if the name exists; a rename would replace it.
    let linked = unsafe path.withPlatformString { path in
      unsafe other.withPlatformString { unsafe Self.link(path, $0) }
    }
    if linked == 0 {
      try remove(path, "cannot rename")
      return true
    }
    switch Errno(rawValue: errno) {
    case .fileExists: return false
    case .notPermitted, .notSupported, .noFunction:
      // The file system has no links; a check is the best available.
      if status(of: other) != nil { return false }
      try replace(other, with: path)
      return true
    default: throw failed("cannot rename", path)
    }
  }

  /// Gives a file a second name, or copies it on file systems without hard links.
  ///
  /// The name may belong to a file that was linked there before.
  package static func link(_ path: FilePath, to other: FilePath) throws(BatchError) {
    let linked = unsafe path.withPlatformString { path in
      unsafe other.withPlatformString { unsafe Self.link(path, $0) }
    }
    if linked == 0 { return }
    switch Errno(rawValue: errno) {
    case .fileExists: return
    case .notPermitted, .notSupported, .noFunction:
      let bytes: [UInt8]
      do {
        let file = try FileDescriptor.openRegularFile(path, .readOnly)
        defer { try? file.close() }
        bytes = try file.read(atMost: Int(status(of: file).size))
      } catch {
        throw failed("cannot copy", path, error)
      }
      try NewFile.write(bytes, to: other, permissions: FilePermissions(like: path))
    default: throw failed("cannot link", path)
    }
  }

  private static func link(
    _ path: UnsafePointer<CChar>,
    _ other: UnsafePointer<CChar>
  ) -> Int32 {
    #if canImport(Glibc)
    unsafe Glibc.link(path, other)
    #elseif canImport(Musl)
    unsafe Musl.link(path, other)
    #else
    unsafe Darwin.link(path, other)
    #endif
  }

  package static func makeFolder(
    _ path: FilePath,
    permissions: FilePermissions
  ) throws(BatchError) {
    let status = unsafe path.withPlatformString { unsafe mkdir($0, permissions.rawValue) }
    guard status == 0 || errno == EEXIST && kind(of: path) == .folder else {
      throw failed("cannot create a folder", path)
    }
  }

  package static func removeEmptyFolder(_ path: FilePath) {
    _ = unsafe path.withPlatformString { unsafe rmdir($0) }
  }

  package static func replace(_ other: FilePath, with path: FilePath) throws(BatchError) {
    let status = unsafe path.withPlatformString { path in
      unsafe other.withPlatformString { unsafe rename(path, $0) }
    }
    guard status == 0 else { throw failed("cannot rename", path) }
  }

  package static func remove(
    _ path: FilePath,
    _ what: String = "cannot remove"
  ) throws(BatchError) {
    guard unsafe path.withPlatformString({ unsafe unlink($0) }) == 0 else {
      throw failed(what, path)
    }
  }

  package static func write(
    _ bytes: [UInt8],
    to file: FileDescriptor,
    at path: FilePath
  ) throws(BatchError) {
    do {
      try file.writeAll(bytes)
    } catch {
      throw failed("cannot write", path, error)
    }
  }

  package static func synchronize(_ file: FileDescriptor, at path: FilePath) throws(BatchError) {
    guard fsync(file.rawValue) == 0 else { throw failed("cannot write to the disk", path) }
  }

  /// Makes renamed and removed files in the folder durable.
  package static func synchronizeFolder(of path: FilePath) throws(BatchError) {
    let folder = folder(of: path)
    do {
      let descriptor = try FileDescriptor.open(
        folder,
        .readOnly,
        options: .closeOnExec
      )
      defer { try? descriptor.close() }
      try synchronize(descriptor, at: folder)
    } catch let error as BatchError {
      throw error
    } catch {
      throw failed("cannot write to the disk", folder, error)
    }
  }

  /// Locks the folder of a file against other processes that do the same, until `closeLocked()`; nil
  /// if it cannot be opened.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` if another process keeps it locked.
  static func lockFolder(of path: FilePath) throws(BatchError) -> FileDescriptor? {
    let folder = folder(of: path)
    guard let file = try? FileDescriptor.open(folder, .readOnly, options: .closeOnExec) else {
      return nil
    }
    for _ in 0..<lockAttempts {
      if (try? file.lock(folder)) != nil { return file }
      usleep(lockDelay)
    }
    do throws(BatchError) {
      try file.lock(folder)
    } catch {
      try? file.close()
      throw error
    }
    return file
  }

  /// For up to ten seconds; who has the lock writes one small file.
  private static let (lockAttempts, lockDelay) = (2000, UInt32(5000))

  package static func folder(of path: FilePath) -> FilePath {
    let folder = path.removingLastComponent()
    return folder.isEmpty ? "." : folder
  }

  package static func failed(
    _ what: String,
    _ path: FilePath,
    _ error: any Error = Errno(rawValue: errno)
  ) -> BatchError {
    let errno = error as? Errno
    let isFull = errno == .noSpace || errno == .diskQuotaExceeded
    return BatchError(
      isFull ? .diskFull : .fileAccess,
      "\(what): \(errno?.description ?? "\(error)")",
      at: path.string,
      advice: isFull ? "make room, then \(.repetition): it resumes" : nil,
      underlying: error
    )
  }
}

extension Stat {
  /// When the file was last changed, in nanoseconds since 1970.
  package var nanosecondsOfModification: Int64 {
    let time = st_mtim
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  package var identity: FileIdentity {
    FileIdentity(
      device: UInt64(truncatingIfNeeded: deviceID.rawValue),
      inode: UInt64(truncatingIfNeeded: inode.rawValue)
    )
  }
}
