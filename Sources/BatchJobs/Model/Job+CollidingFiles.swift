import BatchRuns
import BatchIdentifiers
import SystemPackage

extension Job {
  /// The file that it writes; nil unless it is an export.
  var exportedFile: FilePath? {
    if case .export(let export) = action { export.file } else { nil }
  }
}

extension RunCause {
  /// Files that would overwrite one another, by whatever names.
  ///
  /// - Parameters:
  ///   - input: A file of identifiers to read.
  ///   - output: A file to write.
  /// - Returns: A problem for each two names of one file.
  func collidingFileProblems(reading input: FilePath?, writing output: FilePath?) -> [JobProblem] {
    // Of a run that hosts share no file is here.
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
    if let output { files.append(NamedFile(.exportFile, "the exported file", output)) }
    var problems: [JobProblem] = []
    for program in programsOfHooks {
      guard let output = output.map({ NamedFile(.exportFile, "the exported file", $0) }),
        output.isSame(as: program)
      else { continue }
      problems.append(output.problem(with: program))
    }
    for (index, second) in files.enumerated() where !second.file.isEmpty {
      for first in files[..<index] where first.isSame(as: second) {
        problems.append(second.problem(with: first))
      }
    }
    return problems
  }

  /// The programs of hooks that are named by their paths; the system looks up others.
  private var programsOfHooks: [NamedFile] {
    hooks.commands.sorted { $0.key.rawValue < $1.key.rawValue }.compactMap { event, command in
      guard let program = command.first, program.contains("/") else { return nil }
      let file = baseDirectory.pushing(FilePath(program))
      return NamedFile(JobPath("hooks", event.rawValue), "the program of a hook", file)
    }
  }
}

/// A file of the job, with what tells whether two names are of one file.
private struct NamedFile {
  let path: JobPath
  let name: String
  let file: FilePath
  /// The absolute path without symbolic links in its folder.
  let resolved: FilePath
  /// Which file it is, if it is there: a file can have several names.
  private let identity: FileIdentity?

  init(_ path: JobPath, _ name: String, _ file: FilePath, resolved: FilePath? = nil) {
    self.path = path
    self.name = name
    self.file = file
    self.resolved = resolved ?? FileSystem.absolute(file)
    // By its name alone: to open and close a database would give up SQLite's locks on it. The files that SQLite makes
    // beside it come and go, so two of them may have been the same one.
    identity = resolved == nil ? FileSystem.status(of: file)?.identity : nil
  }

  /// The problem of being the same file as another one.
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
