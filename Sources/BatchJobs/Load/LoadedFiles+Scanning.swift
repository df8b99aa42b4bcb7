public import BatchIdentifiers
import BatchPlatform
package import BatchRuns
package import SystemPackage

extension LoadedFiles {
  /// The most bytes of a record.
  static let recordLimit = 64 << 20
  /// The least bytes of a block that is not the last one of its file.
  package static let blockSize = 256 << 10
  /// The most blocks of all files, so that the record of the run stays small.
  private static let blockLimit = 16_384

  /// Reads the files of a load once, from end to end, to find their records.
  ///
  /// It holds a block of them at a time.
  ///
  /// - Parameters:
  ///   - load: What to read, and how.
  ///   - leastSize: The least bytes of a block that is not the last one of its file.
  ///   - isInterrupted: Whether to give up.
  /// - Throws: `BatchError` of code `fileAccess` if a file cannot be read, `invalidInput` if it has no
  ///   records of the format, `interrupted`.
  package init(
    scanning load: Job.Load,
    blockSize leastSize: Int = blockSize,
    isInterrupted: @escaping () -> Bool = { false }
  ) throws(BatchError) {
    self.init()
    let paths = try load.paths()
    let sizes = paths.map { Int(FileSystem.status(of: $0)?.size ?? 0) }
    let blockSize = max(leastSize, sizes.reduce(0, +) / Self.blockLimit)
    for path in paths {
      try add(try FileScan(path, load, blockSize, isInterrupted), load)
    }
    try requireNames(load)
  }

  /// Reads only the names of the values in the files.
  package init(namesOf load: Job.Load) throws(BatchError) {
    self.init()
    for path in try load.paths() {
      let scan = try FileScan(path, load, Self.blockSize, { false })
      for name in scan.names { fields.append(unlessThere: name) }
    }
    try requireNames(load)
  }

  private func requireNames(_ load: Job.Load) throws(BatchError) {
    guard fields.isEmpty else { return }
    throw BatchError(
      .invalidInput,
      "there is nothing in \(try load.paths().count == 1 ? "the file" : "any of the files")",
      at: load.files.string,
      remedy: "check what writes them, or name their columns in action.names"
    )
  }

  private mutating func add(_ scan: FileScan, _ load: Job.Load) throws(BatchError) {
    // An empty file has no records, and needs no header.
    if !fields.isEmpty, !scan.isEmpty { try requireSameNames(scan.names, scan.path, load) }
    for name in scan.names { fields.append(unlessThere: name) }
    let index = files.count
    files.append(
      File(
        name: scan.path.lastComponent?.string ?? "",
        byteCount: scan.byteCount,
        modifiedAt: scan.modifiedAt,
        columns: load.format == .csv ? scan.names : []
      )
    )
    while let found = try scan.next() {
      blocks.append(
        Block(
          file: index,
          start: found.start,
          byteCount: found.byteCount,
          firstPosition: recordCount,
          recordCount: found.recordCount,
          firstLine: found.firstLine,
          hash: found.hash
        )
      )
    }
  }

  private func requireSameNames(
    _ names: [String],
    _ path: FilePath,
    _ load: Job.Load
  ) throws(BatchError) {
    // Objects name their values themselves.
    guard load.format == .csv else { return }
    let first = files.first { !$0.columns.isEmpty }?.name ?? ""
    let (known, found) = (fields.map(\.foldedForSQLite), names.map(\.foldedForSQLite))
    let missing = fields.filter { !found.contains($0.foldedForSQLite) }
    let further = names.filter { !known.contains($0.foldedForSQLite) }
    guard let name = missing.first ?? further.first else { return }
    throw BatchError(
      .invalidInput,
      missing.isEmpty
        ? "the file has a column \(name.quotedForMessage), which \(first) has not"
        : "the file has no column \(name.quotedForMessage), which \(first) has",
      at: path.string,
      remedy: "load files with other columns by a job of their own"
    )
  }

  /// Refuses files that are not those of the beginning.
  ///
  /// A file that was written again is read again; one that has its time and its size is not.
  ///
  /// - Throws: `BatchError` of code `inputChanged`.
  package func refuseChanged(by load: Job.Load) throws(BatchError) {
    var isWritten = false
    for file in files {
      let path = load.path(of: file)
      guard let status = FileSystem.status(of: path) else {
        throw Self.changed(path, "is no longer there")
      }
      guard Int(status.size) == file.byteCount else {
        let size = Int(status.size).grouped
        throw Self.changed(path, "had \(file.byteCount.grouped) bytes, and now \(size)")
      }
      isWritten = isWritten || status.nanosecondsOfModification != file.modifiedAt
    }
    guard isWritten else { return }
    for block in blocks { _ = try bytes(of: block, by: load) }
  }

  /// What has come since the files were scanned, and was not loaded, in words.
  package func additions(for load: Job.Load) -> [String] {
    var words: [String] = []
    for file in files {
      let size = FileSystem.status(of: load.path(of: file)).map { Int($0.size) } ?? 0
      if size > file.byteCount {
        words.append("\(file.name) has grown since the run began; what was added was not loaded")
      }
    }
    let names = Set(files.map(\.name))
    let new = ((try? load.paths()) ?? []).compactMap(\.lastComponent?.string).filter {
      !names.contains($0)
    }
    if let first = new.first {
      let count = new.count == 1 ? "a file has" : "\(new.count.grouped) files have"
      words.append("\(count) come since the run began, and was not loaded: \(first)")
    }
    return words
  }

  /// Reads a block, and checks it.
  ///
  /// - Throws: `BatchError` of code `inputChanged` if the file was changed.
  func bytes(of block: Block, by load: Job.Load) throws(BatchError) -> [UInt8] {
    let path = load.path(of: files[block.file])
    let descriptor: FileDescriptor
    do throws(BatchError) {
      descriptor = try FileDescriptor.openRegularFile(path, .readOnly)
    } catch {
      if FileSystem.status(of: path) == nil { throw Self.changed(path, "is no longer there") }
      throw error
    }
    defer { try? descriptor.close() }
    var bytes: [UInt8] = []
    do {
      while bytes.count < block.byteCount {
        let rest = block.byteCount - bytes.count
        let piece = try unsafe [UInt8](unsafeUninitializedCapacity: rest) { buffer, count in
          count = try unsafe descriptor.read(
            fromAbsoluteOffset: Int64(block.start + bytes.count),
            into: UnsafeMutableRawBufferPointer(buffer)
          )
        }
        if piece.isEmpty { break }
        if bytes.isEmpty { bytes = piece } else { bytes += piece }
      }
    } catch {
      throw FileSystem.failed("it cannot be read", path, error)
    }
    guard bytes.count == block.byteCount, XXHash64.hash(bytes) == block.hash else {
      throw Self.changed(path, "has another content at line \(block.firstLine.grouped) or after it")
    }
    return bytes
  }

  private static func changed(_ path: FilePath, _ how: String) -> BatchError {
    BatchError(
      .inputChanged,
      "since the run began, the file has changed: it \(how)",
      at: path.string,
      remedy:
        "put the file back to resume, or run with --fresh, which loads all of what it is now: first take back"
        + " what this run has loaded, or set action.onConflict"
    )
  }
}

extension Job.Load {
  package func path(of file: LoadedFiles.File) -> FilePath {
    files.removingLastComponent().appending(file.name)
  }

  /// The files to read, in the order of their names.
  func paths() throws(BatchError) -> [FilePath] {
    guard let pattern = files.lastComponent?.string, pattern.contains("*") else { return [files] }
    let folder = FileSystem.folder(of: files)
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.string)
    } catch {
      throw FileSystem.failed("the folder cannot be read", folder, error)
    }
    let found = names.filter { $0.matches(pattern) && !$0.hasPrefix(".") }.sorted()
    guard !found.isEmpty else {
      throw BatchError(
        .fileAccess,
        "no file is called \(pattern.quotedForMessage)",
        at: folder.string,
        remedy: "check the folder and the pattern, in which * stands for any characters"
      )
    }
    let prefix = files.removingLastComponent()
    return found.map { prefix.appending($0) }
  }
}

extension String {
  /// Whether a pattern, in which `*` stands for any characters, fits the whole text.
  fileprivate func matches(_ pattern: String) -> Bool {
    let parts = pattern.split(separator: "*", omittingEmptySubsequences: false)
    guard parts.count > 1, let first = parts.first, let last = parts.last else {
      return self == pattern
    }
    guard utf8.count >= first.utf8.count + last.utf8.count, hasPrefix(first), hasSuffix(last) else {
      return false
    }
    var rest = dropFirst(first.count).dropLast(last.count)
    for part in parts.dropFirst().dropLast() where !part.isEmpty {
      guard let found = rest.firstRange(of: part) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }
}

extension BatchError.Code {
  /// A file that a load reads has no records of its format.
  public static let invalidInput = Self(rawValue: "invalidInput")
}
