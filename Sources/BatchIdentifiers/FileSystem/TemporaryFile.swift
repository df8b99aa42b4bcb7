import BatchPlatform
internal import SystemPackage

/// A file without a name: nothing is left of it when the process ends, however it does.
final class TemporaryFile: Sendable {
  /// The folder, for messages.
  let folder: FilePath
  private let descriptor: FileDescriptor

  /// The folders in which SQLite looks, in that order.
  static var folders: [FilePath] {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].compactMap { (name: String) in
      unsafe getenv(name).map { unsafe String(cString: $0) }
    }
    return (named + ["/var/tmp", "/tmp"]).filter { !$0.isEmpty }.map { FilePath($0) }
  }

  /// Creates a file in the first of some folders that admits it.
  ///
  /// - Returns: nil if none does.
  init?(in folders: [FilePath] = folders) {
    for folder in folders {
      let path = folder.appending("batch-\(UInt64.random(in: 0 ... .max))")
      let opened = try? FileDescriptor.open(
        path,
        .readWrite,
        options: [.create, .exclusiveCreate, .closeOnExec, .noFollow],
        permissions: .ownerReadWrite
      )
      guard let opened else { continue }
      _ = unsafe path.withPlatformString { unsafe unlink($0) }
      self.folder = folder
      descriptor = opened
      return
    }
    return nil
  }

  deinit { try? descriptor.close() }

  /// Writes bytes.
  ///
  /// - Returns: Whether all are written; a full disk is no error of the caller's.
  func write(_ bytes: ArraySlice<UInt8>, at offset: Int) -> Bool {
    let count = try? unsafe bytes.withUnsafeBytes { buffer in
      try unsafe descriptor.writeAll(toAbsoluteOffset: Int64(offset), buffer)
    }
    return count == bytes.count
  }

  /// Fills the first `count` bytes of an array with those from `offset` on.
  func read(_ count: Int, into bytes: inout [UInt8], at offset: Int) throws(BatchError) {
    try descriptor.read(count, into: &bytes, at: offset, of: folder)
  }
}
