package import SystemPackage

/// A file open for reading, shared by all lists stored in it.
///
/// It is read with `pread`, never through a mapping: truncating a mapped file kills the process,
/// whereas `pread` reports an error.
final class OpenFile: Sendable {
  let path: FilePath
  let byteCount: Int
  let owner: UInt32
  private let descriptor: FileDescriptor

  init(opening path: FilePath) throws(BatchError) {
    self.path = path
    descriptor = try FileDescriptor.openRegularFile(path, .readOnly)
    do {
      owner = try descriptor.owner(path)
      byteCount = Int(try descriptor.seek(offset: 0, from: .end))
    } catch let error as BatchError {
      try? descriptor.close()
      throw error
    } catch {
      try? descriptor.close()
      throw .access(path, "it cannot be read from end to end", error)
    }
  }

  deinit {
    try? descriptor.close()
  }

  func read(_ count: Int, into bytes: inout [UInt8], at offset: Int) throws(BatchError) {
    try descriptor.read(count, into: &bytes, at: offset, of: path)
  }

  /// The caller must limit `count`.
  func bytes(_ count: Int, at offset: Int) throws(BatchError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try read(count, into: &bytes, at: offset)
    return bytes
  }
}

extension FileDescriptor {
  /// Fills the first `count` bytes of an array with those from `offset` on; `path` is for messages.
  package func read(
    _ count: Int,
    into bytes: inout [UInt8],
    at offset: Int,
    of path: FilePath
  ) throws(BatchError) {
    var done = 0
    while done < count {
      let readCount: Int
      do {
        // The system writes into the rest of the first `count` bytes: the slice checks that.
        readCount = try unsafe bytes.withUnsafeMutableBytes { buffer in
          try unsafe read(
            fromAbsoluteOffset: Int64(offset + done),
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[done..<count]),
            retryOnInterrupt: true
          )
        }
      } catch {
        throw .access(path, "it cannot be read", error)
      }
      guard readCount > 0 else {
        throw .damaged("byte \(offset + done)", ByteReader.Damage("the file ends here"), in: path)
      }
      done += readCount
    }
  }
}

extension BatchError {
  static func access(_ path: FilePath, _ what: String, _ error: any Error) -> BatchError {
    let isFull = (error as? Errno).map { $0 == .noSpace || $0 == .diskQuotaExceeded } ?? false
    return BatchError(
      isFull ? .diskFull : .fileAccess,
      "\(what): \(error)",
      at: path.string,
      advice: isFull
        ? "make room, then \(.repetition)"
        : "check that it exists, its permissions and the free space",
      underlying: error
    )
  }

  static func damaged(
    _ part: String,
    _ damage: ByteReader.Damage,
    in path: FilePath
  ) -> BatchError {
    BatchError(
      .damagedFile,
      "\(part) is damaged: \(damage.reason)",
      at: path.string,
      remedy: "restore the file from a copy, or select the identifiers again"
    )
  }
}
