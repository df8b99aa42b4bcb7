package import SystemPackage

extension FileDescriptor {
  /// Opens a regular file, and nothing else.
  ///
  /// Opening a pipe waits for its other end, perhaps forever, and a device may deliver data without
  /// end. The permissions of a new file are subject to the process's mask (`umask(2)`).
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
      // A pipe without a reader, or a socket.
      throw .notRegular(path, "this is a pipe or a socket")
    } catch Errno.tooManySymbolicLinkLevels {
      throw .notRegular(path, "this is a symbolic link that is not followed")
    } catch Errno.isDirectory {
      throw .notRegular(path, "this is a folder")
    } catch {
      throw .access(path, "it cannot be opened", error)
    }
    do throws(BatchError) {
      let type = try descriptor.status(path).type
      guard type == .regular else { throw .notRegular(path, noun(for: type)) }
    } catch {
      try? descriptor.close()
      throw error
    }
    return descriptor
  }

  package func owner(_ path: FilePath) throws(BatchError) -> UInt32 {
    try status(path).userID.rawValue
  }

  /// Reads once from the current position: at most `count` bytes, and none at the end of the file.
  package func read(atMost count: Int) throws -> [UInt8] {
    // The system fills the memory of an array that nothing else references yet, and reports the
    // length.
    try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = try unsafe read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  private func status(_ path: FilePath) throws(BatchError) -> Stat {
    do {
      return try stat()
    } catch {
      throw .access(path, "it cannot be examined", error)
    }
  }

  private static func noun(for type: FileType) -> String {
    switch type {
    case .directory: "this is a folder"
    case .fifo: "this is a pipe"
    case .characterSpecial, .blockSpecial: "this is a device"
    default: "this is no file with content"
    }
  }
}

extension BatchError {
  fileprivate static func notRegular(_ path: FilePath, _ what: String) -> BatchError {
    BatchError(.fileAccess, what, at: path.string, remedy: "name a regular file")
  }
}
