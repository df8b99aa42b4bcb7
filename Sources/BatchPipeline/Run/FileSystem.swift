import BatchIdentifiers
import BatchStore
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What the run needs of the file system and swift-system does not have.
enum FileSystem {
  /// What is known of a file, or nil if there is none of this name.
  static func status(of path: FilePath) -> (identity: FileIdentity, size: Int)? {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
    return (FileIdentity(status), Int(status.st_size))
  }

  /// What is known of an open file.
  static func status(of file: FileDescriptor) throws(BatchError) -> (
    identity: FileIdentity, size: Int
  ) {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else {
      throw BatchError(.fileAccess, "cannot examine a file: \(Errno(rawValue: errno))")
    }
    return (FileIdentity(status), Int(status.st_size))
  }

  /// The space that a user may still fill of the file system that a file is on, in bytes.
  static func freeBytes(at path: FilePath) -> Int64? {
    var status = statvfs()
    guard path.withPlatformString({ statvfs($0, &status) }) == 0 else { return nil }
    let product = Int64(status.f_bavail).multipliedReportingOverflow(by: Int64(status.f_frsize))
    return product.overflow ? nil : product.partialValue
  }

  /// Renames a file unless the new name is taken.
  ///
  /// - Returns: Whether the new name was free.
  static func renameWithoutReplacing(
    _ path: FilePath,
    to other: FilePath
  ) throws(BatchError) -> Bool {
    // A link fails where the name exists, atomically; a rename would replace it.
    let linked = path.withPlatformString { path in
      other.withPlatformString { link(path, $0) }
    }
    if linked == 0 {
      guard path.withPlatformString({ unlink($0) }) == 0 else {
        throw failed("cannot rename", path)
      }
      return true
    }
    switch Errno(rawValue: errno) {
    case .fileExists: return false
    case .notPermitted, .notSupported, .noFunction:
      // A file system without links, where nothing better can be had.
      if status(of: other) != nil { return false }
      try replace(other, with: path)
      return true
    default: throw failed("cannot rename", path)
    }
  }

  /// Renames a file over whatever has the new name.
  static func replace(_ other: FilePath, with path: FilePath) throws(BatchError) {
    let status = path.withPlatformString { path in
      other.withPlatformString { rename(path, $0) }
    }
    guard status == 0 else { throw failed("cannot rename", path) }
  }

  /// Removes a file.
  static func remove(_ path: FilePath) throws(BatchError) {
    guard path.withPlatformString({ unlink($0) }) == 0 else { throw failed("cannot remove", path) }
  }

  /// Writes all of some bytes at the file's position.
  static func write(
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

  /// Waits until a file is on the disk.
  static func synchronize(_ file: FileDescriptor, at path: FilePath) throws(BatchError) {
    guard fsync(file.rawValue) == 0 else { throw failed("cannot write to the disk", path) }
  }

  /// Waits until the names in a file's folder are on the disk.
  static func synchronizeFolder(of path: FilePath) throws(BatchError) {
    let folder = path.removingLastComponent()
    do {
      let descriptor = try FileDescriptor.open(
        folder.isEmpty ? "." : folder,
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

  static func failed(
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
      remedy: isFull ? "make room, then run the same command again: it resumes" : nil,
      underlying: error
    )
  }
}

extension FileIdentity {
  fileprivate init(_ status: stat) {
    self.init(
      device: UInt64(truncatingIfNeeded: status.st_dev),
      inode: UInt64(truncatingIfNeeded: status.st_ino)
    )
  }
}
