#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
package import SystemPackage

extension FileDescriptor {
  /// Opens a regular file, and nothing else.
  ///
  /// To open a pipe waits for somebody at its other end, perhaps for ever, and a device gives what it
  /// likes for as long as it likes.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - mode: Whether it is read or written.
  ///   - options: What else the system is to do, such as to make the file.
  ///   - permissions: Those of a file that is made, but for what the process leaves out (`umask(2)`).
  /// - Returns: The open file.
  /// - Throws: ``BatchError`` with code `.fileAccess` if it is something else, or the system refuses.
  package static func openRegularFile(
    _ path: FilePath,
    _ mode: AccessMode,
    options: OpenOptions = [],
    permissions: FilePermissions? = nil
  ) throws(BatchError) -> FileDescriptor {
    let descriptor: FileDescriptor
    do {
      descriptor = try open(
        path,
        mode,
        options: options.union([.closeOnExec, .nonBlocking]),
        permissions: permissions
      )
    } catch Errno.noSuchAddressOrDevice {
      // A pipe that nobody reads, or a socket.
      throw .notRegular(path, "this is a pipe or a socket")
    } catch Errno.tooManySymbolicLinkLevels {
      throw .notRegular(path, "this is a symbolic link that is not followed")
    } catch Errno.isDirectory {
      throw .notRegular(path, "this is a folder")
    } catch {
      throw .access(path, "it cannot be opened", error)
    }
    do throws(BatchError) {
      let status = try status(of: descriptor, path)
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw .notRegular(path, noun(forMode: status.st_mode))
      }
    } catch {
      try? descriptor.close()
      throw error
    }
    return descriptor
  }

  /// The user that the file belongs to.
  package func owner(_ path: FilePath) throws(BatchError) -> UInt32 {
    try status(of: self, path).st_uid
  }

  private static func noun(forMode mode: mode_t) -> String {
    switch mode & S_IFMT {
    case S_IFDIR: "this is a folder"
    case S_IFIFO: "this is a pipe"
    case S_IFCHR, S_IFBLK: "this is a device"
    default: "this is no file with content"
    }
  }
}

/// What the system knows of an open file.
private func status(of file: FileDescriptor, _ path: FilePath) throws(BatchError) -> stat {
  var status = stat()
  // The system fills the one structure that it is given, which lasts until it returns.
  guard unsafe fstat(file.rawValue, &status) == 0 else {
    throw .access(path, "it cannot be examined", Errno(rawValue: errno))
  }
  return status
}

extension BatchError {
  fileprivate static func notRegular(_ path: FilePath, _ what: String) -> BatchError {
    BatchError(.fileAccess, what, at: path.string, remedy: "name a regular file")
  }
}
