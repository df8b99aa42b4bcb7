import BatchRuns
import BatchIdentifiers
import SystemPackage

extension Job {
  var exportedFile: FilePath? {
    if case .export(let export) = action { export.file } else { nil }
  }

  /// The output as a file among others.
  var output: NamedFile? {
    guard case .export(let export) = action else { return nil }
    return NamedFile(
      export.path,
      export.isInParts ? "the folder of the export" : "the exported file",
      export.file
    )
  }
}

extension RunCause {
  /// The problems of files that would overwrite one another, whatever their names.
  ///
  /// There is a problem for each two names of the same file; `input` and `output` are identifier
  /// files.
  func collidingFileProblems(reading input: FilePath?, writing output: NamedFile?) -> [JobProblem] {
    // A run that hosts share has no files on this host.
    guard sharedServer == nil else { return [] }
    var files: [NamedFile] = []
    if database.server == nil {
      let store = NamedFile(.database, "the database", database.path)
      files.append(store)
      for suffix in ["-wal", "-shm", "-journal"] where !database.path.isEmpty {
        let file = FilePath(store.resolved.string + suffix)
        files.append(
          NamedFile(.database, "the file \(suffix) of the database", file, resolved: file)
        )
      }
    }
    if let file = origin?.path {
      files.insert(NamedFile(JobPath(), "the job file", file), at: 0)
    }
    let others: [(JobPath, String, FilePath?)] = [
      (.identifiers, "the file of identifiers", input),
      (.checkpoint, "the checkpoint", checkpointPath),
      (JobPath("throttle", "flagFile"), "the flag file", policy.throttle.flagFile),
      (.report, "the report", report?.path),
    ]
    for (path, name, file) in others {
      if let file { files.append(NamedFile(path, name, file)) }
    }
    for (name, suffix) in [("lock", ".lock"), ("requests", ".control"), ("history", ".history")]
    where keepsRecord {
      let file = FilePath(checkpointPath.string + suffix)
      files.append(NamedFile(.checkpoint, "the \(name) beside the checkpoint", file))
    }
    if let output { files.append(output) }
    var problems: [JobProblem] = []
    for program in programsOfHooks {
      guard let output, output.isSame(as: program) else { continue }
      problems.append(output.problem(with: program))
    }
    for (index, second) in files.enumerated() where !second.file.isEmpty {
      for first in files[..<index] where first.isSame(as: second) {
        problems.append(second.problem(with: first))
      }
    }
    return problems
  }

  /// Only programs given by a path; the system searches for the others.
  private var programsOfHooks: [NamedFile] {
    hooks.commands.sorted { $0.key.rawValue < $1.key.rawValue }.compactMap { event, command in
      guard let program = command.first, program.contains("/") else { return nil }
      let file = baseDirectory.pushing(FilePath(program))
      return NamedFile(JobPath("hooks", event.rawValue), "the program of a hook", file)
    }
  }
}

/// A file of the job, with the facts that show whether another name is of the same file.
struct NamedFile {
  let path: JobPath
  let name: String
  let file: FilePath
  /// The absolute path, without symbolic links in its folder.
  let resolved: FilePath
  /// Identifies an existing file, which may have several names.
  private let identity: FileIdentity?

  init(_ path: JobPath, _ name: String, _ file: FilePath, resolved: FilePath? = nil) {
    self.path = path
    self.name = name
    self.file = file
    self.resolved = resolved ?? FileSystem.absolute(file)
    // SQLite's files are compared by name alone: opening and closing a database would release
    // SQLite's locks on it. The files that SQLite creates beside it are temporary, so an identity
    // may have been reused.
    identity = resolved == nil ? FileSystem.status(of: file)?.identity : nil
  }

  func problem(with other: NamedFile) -> JobProblem {
    JobProblem(
      path,
      "\(name) and \(other.name) are the same file",
      remedy: "choose another path"
    )
  }

  func isSame(as other: NamedFile) -> Bool {
    !file.isEmpty && resolved == other.resolved || identity != nil && identity == other.identity
  }
}
