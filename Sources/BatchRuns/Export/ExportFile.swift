public import BatchIdentifiers
package import SystemPackage

extension BatchError.Code {
  /// The output's name belongs to a file that the job did not create.
  public static let outputExists = Self(rawValue: "outputExists")
}

/// The file of an export: it has a name of its own until it is complete, then the job's.
///
/// When a run is resumed, the file is truncated to the last length in the checkpoint, which removes
/// everything that a killed run wrote after that. So an export that was killed and resumed writes
/// the same bytes as an uninterrupted one.
package final class ExportFile {
  private let partial: FilePath
  private let path: FilePath
  private let file: FileDescriptor
  package private(set) var count: Int
  /// The checksum of what was written; nil for a file that needs none.
  private var hash: SHA256?

  /// The name of the file until it is complete.
  package static func partialPath(of path: FilePath, run: String) -> FilePath {
    var partial = path.removingLastComponent()
    partial.append("\(path.lastComponent?.string ?? "output").\(run.prefix(8)).partial")
    return partial
  }

  /// Refuses an output whose name belongs to a file that the job's last run did not create.
  package static func checkName(
    _ path: FilePath,
    overwrite: Bool,
    made: FileIdentity?
  ) throws(BatchError) {
    guard !overwrite, let existing = FileSystem.status(of: path), existing.identity != made else {
      return
    }
    throw BatchError(
      .outputExists,
      "the file exists and this job did not make it",
      at: path.string,
      advice: "move it away, name another file, or set \(.overwrite) to true"
    )
  }

  /// Resolves a symbolic link of an output; throws if a file cannot replace what is there: a
  /// folder, a device, a pipe, a socket, or a link to nothing.
  package static func resolve(_ path: FilePath) throws(BatchError) -> FilePath {
    switch FileSystem.kind(of: path) {
    case .nothing, .file: return path
    case .link:
      guard let resolved = FileSystem.resolve(path) else {
        throw unusable(path, "this is a symbolic link to nothing")
      }
      guard FileSystem.kind(of: resolved) == .file else {
        throw unusable(path, "this is a symbolic link to something that is no file")
      }
      return resolved
    case .folder: throw unusable(path, "this is a folder")
    case .other: throw unusable(path, "this is a device, a pipe or a socket, which is not replaced")
    }
  }

  private static func unusable(_ path: FilePath, _ what: String) -> BatchError {
    BatchError(.outputExists, what, at: path.string, remedy: "name a file, new or to be replaced")
  }

  /// Refuses an output that cannot be created.
  package static func checkFolder(of partial: FilePath) throws(BatchError) {
    if let problem = FileSystem.problemOfMaking(partial) {
      throw FileSystem.failed("cannot create the output", partial, problem)
    }
  }

  /// Creates the file of a new run, or recreates the lost file of a resumed one.
  package init(
    creating path: FilePath,
    partial: FilePath,
    header: [UInt8],
    permissions: FilePermissions,
    hashes: Bool = false
  ) throws(BatchError) {
    self.path = path
    self.partial = partial
    hash = hashes ? SHA256() : nil
    do {
      file = try FileDescriptor.open(
        partial,
        .readWrite,
        options: [.create, .noFollow, .closeOnExec, .nonBlocking],
        permissions: permissions
      )
    } catch {
      throw FileSystem.failed("cannot create the output", partial, error)
    }
    count = 0
    try file.lock(partial)
    do {
      try file.resize(to: 0)
    } catch {
      throw FileSystem.failed("cannot empty the output", partial, error)
    }
    // Must precede any record that says that the file exists.
    try FileSystem.synchronizeFolder(of: partial)
    try append(header)
  }

  /// Why the file of a resumed run differs from what was written, or nil if it does not.
  package static func loss(
    of path: FilePath,
    partial: FilePath,
    count: Int,
    identity: FileIdentity?
  ) -> String? {
    if let status = FileSystem.status(of: partial) {
      guard status.type == .regular else { return "\(partial.string) is no file" }
      return status.size >= count
        ? nil
        : "\(partial.string) has \(status.size.grouped) bytes, but \(count.grouped) were written"
    }
    let published = FileSystem.status(of: path)
    if let published, identity != nil, published.identity == identity, published.size >= count {
      return nil
    }
    return "\(partial.string) is gone"
  }

  /// Opens the file of a resumed run, and truncates it to the part known to be complete.
  ///
  /// If the file has the recorded `identity`, it may already have its final name.
  package init(
    resuming path: FilePath,
    partial: FilePath,
    count: Int,
    identity: FileIdentity?
  ) throws(BatchError) {
    self.path = path
    let isPublished =
      FileSystem.status(of: partial) == nil && identity != nil
      && FileSystem.status(of: path)?.identity == identity
    self.partial = isPublished ? path : partial
    self.count = count
    do {
      file = try FileDescriptor.open(
        self.partial,
        .readWrite,
        options: [.noFollow, .closeOnExec, .nonBlocking]
      )
    } catch {
      throw FileSystem.failed("cannot open the unfinished output", partial, error)
    }
    try file.lock(self.partial)
    let size = try Int(FileSystem.status(of: file).size)
    guard size >= count else {
      throw BatchError(
        .damagedFile,
        "the unfinished output has \(size.grouped) bytes, but \(count.grouped) were written",
        at: partial.string,
        advice: "\(.repetition): it starts the output over"
      )
    }
    do {
      try file.resize(to: Int64(count))
      try file.seek(offset: 0, from: .end)
    } catch {
      throw FileSystem.failed("cannot cut back the output", partial, error)
    }
  }

  deinit {
    file.closeLocked()
  }

  package func append(_ lines: [UInt8]) throws(BatchError) {
    try FileSystem.write(lines, to: file, at: partial)
    count += lines.count
    hash?.add(lines)
  }

  package var sha256: String? { hash?.finish() }

  /// Begins the checksum of a resumed file; throws if what it has is not what was written.
  package func hash(expecting sum: String?) throws(BatchError) {
    let hash = try SHA256(of: file, upTo: count, partial)
    guard hash.finish() == sum else { throw isDamaged }
    self.hash = hash
  }

  /// Reads some of the bytes that were written.
  package func read(_ count: Int, at offset: Int) throws(BatchError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try file.read(count, into: &bytes, at: offset, of: partial)
    return bytes
  }

  /// The error for bytes that differ from those that were written.
  package var isDamaged: BatchError {
    BatchError(
      .damagedFile,
      "the unfinished output is not as this job wrote it",
      at: partial.string,
      advice: "\(.repetition): it starts the output over"
    )
  }

  package func synchronize() throws(BatchError) {
    try FileSystem.synchronize(file, at: partial)
  }

  package func modified() throws(BatchError) -> Int64 {
    try FileSystem.status(of: file).nanosecondsOfModification
  }

  package func identity() throws(BatchError) -> FileIdentity {
    try FileSystem.status(of: file).identity
  }

  /// Gives the complete file its final name; may replace another file.
  package func publish(replacing: Bool) throws(BatchError) {
    if try FileSystem.status(of: path)?.identity == identity() {
      // A killed run gave the file its final name but may not have removed the other name.
      if partial != path { try? FileSystem.remove(partial) }
    } else if replacing, FileSystem.kind(of: path) != .other {
      try FileSystem.replace(path, with: partial)
    } else if try !FileSystem.renameWithoutReplacing(partial, to: path) {
      throw BatchError(
        .outputExists,
        "the file appeared while the job ran, and the job did not make it",
        at: path.string,
        remedy: "move it away and run again; the complete output waits in \(partial.string)"
      )
    }
    try FileSystem.synchronizeFolder(of: path)
  }
}

extension SHA256 {
  /// The checksum of the first bytes of a file.
  init(of file: FileDescriptor, upTo count: Int, _ path: FilePath) throws(BatchError) {
    self.init()
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: count, by: 1 << 20) {
      bytes = [UInt8](repeating: 0, count: min(1 << 20, count - start))
      try file.read(bytes.count, into: &bytes, at: start, of: path)
      add(bytes)
    }
  }
}
