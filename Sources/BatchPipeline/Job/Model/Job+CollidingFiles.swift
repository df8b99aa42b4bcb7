import BatchEngine
import BatchIdentifiers
import SystemPackage

extension Job {
  /// Files of the job that would overwrite one another, by whatever names.
  func collidingFileProblems() -> [JobProblem] {
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
      (.identifiers, "the file of identifiers", source.identifiers),
      (.checkpoint, "the checkpoint", checkpointPath),
      (JobPath("throttle", "flagFile"), "the flag file", policy.throttle.flagFile),
      (.report, "the report", report?.path),
    ]
    for (path, name, file) in others {
      if let file { files.append(NamedFile(path, name, file)) }
    }
    if case .export(let export) = action {
      files.append(NamedFile(.exportFile, "the exported file", export.file))
    }
    var problems: [JobProblem] = []
    for (index, second) in files.enumerated() where !second.file.isEmpty {
      for first in files[..<index] where first.isSame(as: second) {
        problems.append(
          JobProblem(
            second.path,
            "\(second.name) and \(first.name) are the same file",
            remedy: "choose another path"
          )
        )
      }
    }
    return problems
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
      // By its name alone: to open and close a database would give up SQLite's locks on it.
      identity = FileSystem.status(of: file)?.identity
    }

    func isSame(as other: NamedFile) -> Bool {
      !file.isEmpty && resolved == other.resolved || identity != nil && identity == other.identity
    }
  }
}
