public import BatchIdentifiers
import SystemPackage

extension BatchError.Code {
  /// A file that the job did not make has the name of its output.
  public static let outputExists = Self(rawValue: "outputExists")
}

/// The file that an export writes: under a name of the run's own until it is complete, then under
/// the name in the job.
///
/// On resume it is cut back to the last length that the checkpoint recorded, which takes away
/// whatever a killed run had written past it; so an export that was killed and resumed is the same,
/// byte for byte, as one that was not.
final class ExportFile {
  private let partial: FilePath
  private let path: FilePath
  private let file: FileDescriptor
  private(set) var count: Int

  /// The name of the incomplete file of a run.
  static func partialPath(of path: FilePath, run: String) -> FilePath {
    var partial = path.removingLastComponent()
    partial.append("\(path.lastComponent?.string ?? "output").\(run.prefix(8)).partial")
    return partial
  }

  /// Refuses an output whose name is taken by a file that the job's last run did not make.
  static func checkName(
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
      remedy: "move it away, name another file, or set action.overwrite to true"
    )
  }

  /// Refuses an output that cannot be made, by making it for a moment.
  static func checkFolder(of partial: FilePath) throws(BatchError) {
    do {
      let file = try FileDescriptor.open(
        partial,
        .writeOnly,
        options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: .ownerReadWrite
      )
      try file.close()
    } catch {
      throw FileSystem.failed("cannot create the output", partial, error)
    }
    try FileSystem.remove(partial)
  }

  /// Makes the file of a new run.
  init(creating path: FilePath, partial: FilePath, header: [UInt8]) throws(BatchError) {
    self.path = path
    self.partial = partial
    do {
      file = try FileDescriptor.open(
        partial,
        .writeOnly,
        options: [.create, .truncate, .closeOnExec],
        permissions: [.ownerReadWrite, .groupRead, .otherRead]
      )
    } catch {
      throw FileSystem.failed("cannot create the output", partial, error)
    }
    count = 0
    try append(header)
  }

  /// Opens the file of a run that is resumed and cuts it back to what is known to be complete.
  ///
  /// The file of the recorded `identity` may already have its final name.
  init(
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
      file = try FileDescriptor.open(self.partial, .writeOnly, options: .closeOnExec)
    } catch {
      throw FileSystem.failed("cannot open the unfinished output", partial, error)
    }
    let size = try FileSystem.status(of: file).size
    guard size >= count else {
      throw BatchError(
        .damagedFile,
        "the unfinished output has \(size) bytes, but \(count) were written",
        at: partial.string,
        remedy: "run with --fresh to begin anew"
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
    try? file.close()
  }

  /// Appends the lines of a chunk.
  func append(_ lines: [UInt8]) throws(BatchError) {
    try FileSystem.write(lines, to: file, at: partial)
    count += lines.count
  }

  /// Waits until everything appended is on the disk.
  func synchronize() throws(BatchError) {
    try FileSystem.synchronize(file, at: partial)
  }

  /// Which file this is, whatever it is called.
  func identity() throws(BatchError) -> FileIdentity {
    try FileSystem.status(of: file).identity
  }

  /// Gives the complete file its name, `replacing` what has it or not.
  func publish(replacing: Bool) throws(BatchError) {
    if try FileSystem.status(of: path)?.identity == identity() {
      // A killed run gave the file its name; it may not have come to take away the other.
      if partial != path { try? FileSystem.remove(partial) }
    } else if replacing {
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
