#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
public import SystemPackage

extension IdentifierFile {
  /// Writes a file, whole or not at all.
  ///
  /// The bytes go to a temporary file in the same folder, which is synchronized and then renamed;
  /// a process that is killed may leave the temporary file (`.NAME.PID-N.tmp`), never a part of the
  /// file itself.
  ///
  /// - Parameters:
  ///   - path: Where the file is to be.
  ///   - list: The list.
  ///   - metadata: Anything, up to ``maximumMetadataByteCount``.
  ///   - overwriting: Whether a file that is already there may be replaced.
  /// - Throws: ``BatchError`` with code `.fileAccess` if the system refuses, the names or the
  ///   metadata are too long, or there is a file that may not be replaced.
  /// - Complexity: O(n) in the bytes of the list, in constant memory.
  public static func create(
    at path: FilePath,
    list: IdentifierList,
    metadata: [UInt8] = [],
    overwriting: Bool = false
  ) throws(BatchError) {
    try write(at: path, overwriting: overwriting) { write throws(BatchError) in
      try encode(list, metadata: metadata, write)
    }
  }

  private static func checkLengths(
    _ list: IdentifierList,
    _ metadata: [UInt8]
  ) throws(BatchError) {
    guard metadata.count <= maximumMetadataByteCount,
      list.header.storeIdentifier.utf8.count <= FileLayout.maximumNameByteCount,
      list.header.entityName.utf8.count <= FileLayout.maximumNameByteCount
    else {
      throw BatchError(
        .fileAccess,
        "the metadata or a name is too long for an identifier file",
        remedy: "metadata may have 16 MiB, names 4096 bytes"
      )
    }
  }

  /// Writes a file of bytes that ``encode(_:metadata:_:)`` once gave, whole or not at all.
  package static func write(
    at path: FilePath,
    overwriting: Bool,
    _ body: (_ write: (UnsafeRawBufferPointer) throws(BatchError) -> Void) throws(BatchError) -> Void
  ) throws(BatchError) {
    let file = try NewFile(for: path)
    do throws(BatchError) {
      try body { bytes throws(BatchError) in try file.write(bytes) }
      try file.publish(overwriting: overwriting)
    } catch {
      file.remove()
      throw error
    }
  }

  /// Calls `body` with the bytes of a file without records, piece by piece.
  package static func encode(
    _ list: IdentifierList,
    metadata: [UInt8],
    _ body: (UnsafeRawBufferPointer) throws(BatchError) -> Void
  ) throws(BatchError) {
    try checkLengths(list, metadata)
    let directory = list.directory.encoded(list.header.keyKind)
    let layout = FileLayout(list: list, metadata: metadata, directory: directory)
    for part in [layout.encoded(), metadata, directory] {
      try part.withRawBytes { bytes throws(BatchError) in try body(bytes) }
    }
    var scratch: [UInt8] = []
    for index in 0..<list.blockCount {
      try list.withBlockBytes(index, scratch: &scratch) { bytes throws(BatchError) in
        try body(bytes)
      }
    }
  }
}

/// A file that is being written under a temporary name.
private final class NewFile {
  private let path: FilePath
  private let temporaryPath: FilePath
  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var isOpen = true

  init(for path: FilePath) throws(BatchError) {
    self.path = path
    guard let name = path.lastComponent?.string, name != "..", name != "." else {
      throw BatchError(
        .fileAccess,
        "this is not the path of a file",
        at: path.string,
        remedy: "give the name of a file"
      )
    }
    var attempt = 0
    while true {
      let temporary = path.removingLastComponent().appending(".\(name).\(getpid())-\(attempt).tmp")
      do {
        descriptor = try FileDescriptor.open(
          temporary,
          .writeOnly,
          options: [.create, .exclusiveCreate, .closeOnExec],
          permissions: [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
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

  func write(_ bytes: UnsafeRawBufferPointer) throws(BatchError) {
    buffer.append(contentsOf: bytes)
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

  /// Makes the file durable and gives it its name.
  func publish(overwriting: Bool) throws(BatchError) {
    try flush()
    try descriptor.synchronize(path)
    isOpen = false
    do {
      try descriptor.close()
    } catch {
      throw .access(path, "it cannot be written", error)
    }
    if overwriting {
      guard rename(temporaryPath.string, path.string) == 0 else {
        throw .access(path, "it cannot be replaced", Errno(rawValue: errno))
      }
    } else {
      // A link, unlike a rename, fails if the name is taken.
      guard link(temporaryPath.string, path.string) == 0 else {
        let error = Errno(rawValue: errno)
        guard error == .fileExists else { throw .access(path, "it cannot be created", error) }
        throw BatchError(
          .fileAccess,
          "there is already a file of this name",
          at: path.string,
          remedy: "choose another name, or allow it to be replaced",
          underlying: error
        )
      }
      unlink(temporaryPath.string)
    }
    try synchronizeFolder()
  }

  private func synchronizeFolder() throws(BatchError) {
    let folder = path.removingLastComponent()
    do {
      let descriptor = try FileDescriptor.open(
        folder.isEmpty ? "." : folder,
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

  func remove() {
    unlink(temporaryPath.string)
  }
}

extension FileDescriptor {
  /// Waits until what was written is on the disk.
  func synchronize(_ path: FilePath) throws(BatchError) {
    while fsync(rawValue) != 0 {
      let error = Errno(rawValue: errno)
      // Some file systems have folders that cannot be synchronized; there is nothing to wait for.
      if error == .invalidArgument { return }
      guard error == .interrupted else {
        throw .access(path, "it cannot be synchronized with the disk", error)
      }
    }
  }
}
