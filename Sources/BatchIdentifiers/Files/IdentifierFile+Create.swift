public import SystemPackage

extension IdentifierFile {
  /// Writes a file, completely or not at all.
  ///
  /// The bytes go to a temporary file in the same folder, which is synced and then renamed. A
  /// process that is killed may leave the temporary file (`.NAME.PID-N.tmp`), but never part of the
  /// file itself.
  ///
  /// - Parameters:
  ///   - path: The path of the new file.
  ///   - list: The list to write.
  ///   - metadata: Any data, up to ``maximumMetadataByteCount``.
  ///   - overwriting: Whether an existing file may be replaced.
  ///   - permissions: The permissions of the file, subject to the process's mask (`umask(2)`).
  /// - Throws: ``BatchError`` with code `.fileAccess` if the system refuses, if the names or the
  ///   metadata are too long, or if a file exists that may not be replaced.
  /// - Complexity: O(n) in the bytes of the list, in constant memory.
  public static func create(
    at path: FilePath,
    list: IdentifierList,
    metadata: [UInt8] = [],
    overwriting: Bool = false,
    permissions: FilePermissions = [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
  ) throws(BatchError) {
    try create(
      at: path,
      list: list.packed,
      metadata: metadata,
      overwriting: overwriting,
      permissions: permissions
    )
  }

  package static func create(
    at path: FilePath,
    list: PackedIdentifiers,
    metadata: [UInt8] = [],
    overwriting: Bool = false,
    permissions: FilePermissions = [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
  ) throws(BatchError) {
    try checkLengths(list, metadata)
    let file = try NewFile(for: path, permissions: permissions)
    do throws(BatchError) {
      try encode(list, metadata: metadata) { bytes throws(BatchError) in try file.write(bytes) }
      try file.publish(overwriting: overwriting)
    } catch {
      file.remove()
      throw error
    }
  }

  package static func encode(
    _ list: PackedIdentifiers,
    metadata: [UInt8],
    _ body: (Span<UInt8>) throws(BatchError) -> Void
  ) throws(BatchError) {
    try checkLengths(list, metadata)
    let directory = list.directory.encoded(list.header.keyKind)
    let layout = FileLayout(list: list, metadata: metadata, directory: directory)
    for part in [layout.encoded(), metadata, directory] {
      try body(part.span)
    }
    var scratch: [UInt8] = []
    for index in 0..<list.blockCount {
      try list.withBlockBytes(index, scratch: &scratch) { bytes throws(BatchError) in
        try body(bytes.bytes)
      }
    }
  }

  private static func checkLengths(
    _ list: PackedIdentifiers,
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
}
