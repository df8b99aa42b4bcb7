import BatchPlatform
internal import SystemPackage

/// A file without a name: nothing of it remains when the process ends, in whatever way.
final class TemporaryFile: Sendable {
  /// For messages.
  let folder: FilePath
  private let descriptor: FileDescriptor

  /// The folders that SQLite uses, in the same order.
  static var folders: [FilePath] {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].compactMap { (name: String) in
      unsafe getenv(name).map { unsafe String(cString: $0) }
    }
    return (named + ["/var/tmp", "/tmp"]).filter { !$0.isEmpty }.map { FilePath($0) }
  }

  /// Creates a file in the first of some folders where that is possible; nil if it is impossible in
  /// all.
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

  /// Writes bytes, and returns whether all were written: a full disk is not an error of the caller.
  func write(_ bytes: ArraySlice<UInt8>, at offset: Int) -> Bool {
    let count = try? unsafe bytes.withUnsafeBytes { buffer in
      try unsafe descriptor.writeAll(toAbsoluteOffset: Int64(offset), buffer)
    }
    return count == bytes.count
  }

  func read(_ count: Int, into bytes: inout [UInt8], at offset: Int) throws(BatchError) {
    try descriptor.read(count, into: &bytes, at: offset, of: folder)
  }
}
