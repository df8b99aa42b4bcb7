import BatchJobs
public import BatchIdentifiers
public import SystemPackage

extension Job {
  /// Reads a job file.
  ///
  /// - Throws: A `BatchError`: `fileAccess` if the file cannot be read, `invalidJSON` if it is not
  ///   JSON, `invalidJob` if it breaks a rule. The latter two name line and column.
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
  ///   - file: The name of the file, for errors and for the default name of the checkpoint.
  ///   - baseDirectory: The folder that relative paths start at.
  /// - Throws: A `BatchError`: `invalidJSON` or `invalidJob`, with line and column.
  public init(
    json: [UInt8],
    file: String = "job.json",
    baseDirectory: FilePath = ""
  ) throws(BatchError) {
    let root = try JSONReader.read(json, file: file)
    self = try JobDecoder(baseDirectory: baseDirectory).job(from: root, file: file)
  }

  /// Reads a job file, and reports broken rules together with anything that does not fit the
  /// database.
  package static func reading(_ file: FilePath) async throws(BatchError) -> Job {
    let root = try JSONReader.read(try read(file), file: file.string)
    let decoder = JobDecoder(baseDirectory: file.removingLastComponent())
    let job = try decoder.decode(root, file: file.string)
    return try await sound(job, of: decoder)
  }

  /// Reads a job from standard input; its relative paths start at the current folder, and its
  /// checkpoint has the job's name.
  package static func readingStandardInput() async throws(BatchError) -> Job {
    let decoder = JobDecoder(baseDirectory: "")
    let job = try decoder.decode(try standardInput(), file: nil)
    return try await sound(job, of: decoder)
  }

  /// Reads a job from standard input to inspect its runs, without comparing it with the database.
  package static func ofStandardInput() throws(BatchError) -> Job {
    try JobDecoder(baseDirectory: "").job(from: try standardInput(), file: nil)
  }

  private static func standardInput() throws(BatchError) -> JSONValue {
    let bytes = try read(.standardInput, named: JobOrigin.standardInput)
    guard bytes.contains(where: { !" \t\r\n".utf8.contains($0) }) else {
      throw BatchError(
        .invalidJSON,
        "there is no job",
        at: JobOrigin.standardInput,
        remedy: "pipe a job into the command, such as batch run - < job.json"
      )
    }
    return try JSONReader.read(bytes, file: JobOrigin.standardInput)
  }

  /// Returns a job without problems; otherwise throws these with anything that does not fit the
  /// database.
  private static func sound(_ job: Job, of decoder: JobDecoder) async throws(BatchError) -> Job {
    guard !decoder.problems.isEmpty, let origin = job.origin else {
      try job.requireSupport()
      return job
    }
    let databaseProblems = await job.databaseProblems(except: decoder.broken).map {
      $0.located(in: origin)
    }
    throw BatchError.invalidJob(decoder.problems + databaseProblems, file: origin.file)
      ?? BatchError(.invalidJob, "the job is not valid", at: origin.file)
  }

  /// Whether the name or the first bytes show a job file, rather than a checkpoint or a list.
  package static func isJobFile(_ file: FilePath) -> Bool {
    if file.extension == "json" { return true }
    // Anything but a regular file, such as a pipe, is not opened to find out.
    guard FileSystem.status(of: file)?.type == .regular,
      let descriptor = try? FileDescriptor.open(file, .readOnly),
      let start = try? descriptor.closeAfter({ try descriptor.read(atMost: 256) })
    else { return false }
    return start.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
  }

  private static func read(_ file: FilePath) throws(BatchError) -> [UInt8] {
    do {
      let descriptor = try FileDescriptor.open(file, .readOnly)
      return try descriptor.closeAfter { try read(descriptor, named: file.string) }
    } catch let error as BatchError {
      throw error
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
  }

  private static func read(
    _ descriptor: FileDescriptor,
    named name: String
  ) throws(BatchError) -> [UInt8] {
    let limit = JSONReader.byteLimit
    var bytes: [UInt8] = []
    do {
      while bytes.count <= limit {
        // One byte more than the limit reveals a file that is too long.
        let room = min(1 << 16, limit + 1 - bytes.count)
        let piece = try descriptor.read(atMost: room)
        if piece.isEmpty { break }
        bytes += piece
        if bytes.starts(with: databaseMark) { break }
      }
    } catch {
      throw BatchError(
        .fileAccess,
        "cannot read the job: \(error)",
        at: name,
        underlying: error
      )
    }
    if bytes.starts(with: databaseMark) {
      throw BatchError(
        .invalidJob,
        "this is an SQLite database",
        at: name,
        remedy: "name a job file, which names the database"
      )
    }
    return bytes
  }

  private static let databaseMark = Array("SQLite format 3\0".utf8)
}
