import BatchIdentifiers
import BatchStore
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Has a program compute the changes of rows: each row a JSON object on a line of its standard
/// input, each answer one on its standard output, in the same order.
struct CommandHandler: RowHandler {
  let pool: ChildPool
  private let encoder: RowLineEncoder
  private let decoder: AnswerDecoder
  private let timeout: Duration

  /// A handler for the columns of a job.
  ///
  /// - Throws: `BatchError` of code `commandNotStarted` if there is no such program.
  init(
    _ arguments: [String],
    columns: TransformColumns,
    timeout: Duration,
    job: Job
  ) throws(BatchError) {
    pool = ChildPool(
      .init(
        executable: try Self.executable(arguments[0], from: job.baseDirectory),
        arguments: arguments,
        folder: job.baseDirectory
      )
    )
    encoder = RowLineEncoder(columns: columns.reads)
    decoder = AnswerDecoder(columns: columns.writes)
    self.timeout = timeout
  }

  func changes(
    of rows: ChunkRows,
    run: String,
    failing limit: Int
  ) throws(BatchError) -> RowChanges {
    var lines: [UInt8] = []
    for row in 0..<rows.count { encoder.append(rows, row, to: &lines) }
    return try pool.withChild { child throws(BatchError) in
      let answers = try child.answers(to: lines, count: rows.count, within: timeout)
      let changes = try decoder.changes(from: answers, for: rows)
      try child.checkSilence()
      return changes
    }
  }

  /// The variables that tell a program what it works for.
  static func environment(
    job: Job,
    run: String,
    parameters: [String: SQLValue]
  ) -> [String: String] {
    var variables = ["BATCH_JOB": job.name, "BATCH_RUN": run]
    for (name, value) in parameters {
      switch value {
      case .null, .blob: break
      case .integer(let value): variables["BATCH_PARAM_\(name)"] = String(value)
      case .real(let value): variables["BATCH_PARAM_\(name)"] = value.description
      case .text(let value): variables["BATCH_PARAM_\(name)"] = value
      }
    }
    return variables
  }

  /// The file of a program: the path from the job's folder, or the first of its name in `PATH`.
  private static func executable(
    _ name: String,
    from folder: FilePath
  ) throws(BatchError) -> FilePath {
    var candidates: [FilePath] = []
    if name.contains("/") {
      candidates = [FilePath(name).isAbsolute ? FilePath(name) : folder.pushing(FilePath(name))]
    } else if let path = getenv("PATH") {
      candidates = String(cString: path).split(separator: ":").map {
        FilePath(String($0)).appending(name)
      }
    }
    var found: FilePath?
    for candidate in candidates {
      var status = stat()
      guard stat(candidate.string, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        continue
      }
      if access(candidate.string, X_OK) == 0 { return absolute(candidate) }
      found = candidate
    }
    throw BatchError(
      .commandNotStarted,
      found.map { "\($0.string.quotedForMessage) is not executable" }
        ?? "there is no command \(name.quotedForMessage)",
      remedy: found == nil
        ? "check the name; a path leads from the folder of the job file"
        : "make it so with chmod +x"
    )
  }

  /// The path for a program that starts in another folder.
  private static func absolute(_ path: FilePath) -> FilePath {
    guard !path.isAbsolute, let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return FilePath(String(cString: folder)).pushing(path)
  }
}
