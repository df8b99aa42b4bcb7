public import BatchIdentifiers
public import SystemPackage

extension Job {
  /// Reads a job file.
  ///
  /// - Throws: A `BatchError`: `fileAccess` if the file cannot be read, `invalidJSON` if it is no
  ///   JSON, `invalidJob` if it breaks a rule; the latter two name line and column.
  public init(contentsOf file: FilePath) throws(BatchError) {
    let bytes = try Self.read(file)
    try self.init(
      json: bytes,
      file: file.string,
      baseDirectory: file.removingLastComponent()
    )
    try requireSupport()
  }

  /// Decodes the bytes of a job file.
  ///
  /// - Parameters:
  ///   - json: The content of the file.
  ///   - file: The name that errors give to the file, and that the default checkpoint has.
  ///   - baseDirectory: The folder that relative paths lead from.
  /// - Throws: A `BatchError`: `invalidJSON` or `invalidJob`, with line and column.
  public init(
    json: [UInt8],
    file: String = "job.json",
    baseDirectory: FilePath = ""
  ) throws(BatchError) {
    let root = try JSONReader.read(json, file: file)
    self = try JobDecoder(baseDirectory: baseDirectory).job(from: root, file: file)
  }

  /// Reads a job file; what breaks a rule is told together with what does not fit the database.
  ///
  /// - Throws: As ``init(contentsOf:)``.
  package static func reading(_ file: FilePath) async throws(BatchError) -> Job {
    let root = try JSONReader.read(try read(file), file: file.string)
    let decoder = JobDecoder(baseDirectory: file.removingLastComponent())
    let job = try decoder.decode(root, file: file.string)
    guard !decoder.problems.isEmpty, let origin = job.origin else {
      try job.requireSupport()
      return job
    }
    // Of a section with a stand-in value nobody knows what it says.
    let broken = Set(decoder.problems.compactMap(\.path.section))
    let misfits = await job.misfits(except: broken).map { $0.located(in: origin) }
    throw BatchError.invalidJob(decoder.problems + misfits, file: file.string)
      ?? BatchError(.invalidJob, "the job is not valid", at: file.string)
  }

  /// Whether a file is a job file, and neither a checkpoint nor a list of identifiers: by its name, or by
  /// what it begins with.
  package static func isJobFile(_ file: FilePath) -> Bool {
    if file.extension == "json" { return true }
    // Whatever else has the name, a pipe for one, is not opened to find out.
    guard FileSystem.status(of: file)?.type == .regular,
      let descriptor = try? FileDescriptor.open(file, .readOnly),
      let start = try? descriptor.closeAfter({ try descriptor.read(atMost: 256) })
    else { return false }
    return start.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
  }

  private static func read(_ file: FilePath) throws(BatchError) -> [UInt8] {
    let limit = JSONReader.byteLimit
    let bytes: [UInt8]
    do {
      let descriptor = try FileDescriptor.open(file, .readOnly)
      bytes = try descriptor.closeAfter {
        var bytes: [UInt8] = []
        while bytes.count <= limit {
          // A byte more than the limit tells a file that is too long.
          let room = min(1 << 16, limit + 1 - bytes.count)
          let piece = try descriptor.read(atMost: room)
          if piece.isEmpty { break }
          bytes += piece
          if bytes.starts(with: databaseMark) { break }
        }
        return bytes
      }
    } catch {
      let isMissing = (error as? Errno) == .noSuchFileOrDirectory
      throw BatchError(
        .fileAccess,
        "cannot read the job file: \(error)",
        at: file.string,
        remedy: isMissing ? "check the path" : nil,
        underlying: error
      )
    }
    if bytes.starts(with: databaseMark) {
      throw BatchError(
        .invalidJob,
        "this is an SQLite database",
        at: file.string,
        remedy: "name a job file, which names the database"
      )
    }
    return bytes
  }

  /// What every SQLite database begins with.
  private static let databaseMark = Array("SQLite format 3\0".utf8)
}
