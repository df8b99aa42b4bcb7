import BatchPlatform

/// A database that is read without changing any file, not even the index of its log.
///
/// SQLite creates the files `-wal` and `-shm` when a database with a write-ahead log is read, and
/// enters readers in the latter. How to prevent that depends on which files exist.
struct UntouchedFile {
  /// How the database is opened.
  private enum Access {
    /// There is no log, or an empty one: the file alone is the database.
    case file
    /// There is a log with an index, which is opened read-only.
    case log
    /// There is a log without an index, since no process has it open: SQLite makes one in memory.
    case logAlone
  }

  private let path: String
  private let access: Access

  init(_ path: String) {
    self.path = path
    func size(_ suffix: String) -> Int64? {
      var status = stat()
      return unsafe stat(path + suffix, &status) == 0 ? Int64(status.st_size) : nil
    }
    let log = size("-wal")
    if log != nil, size("-shm") != nil {
      access = .log
    } else {
      access = log ?? 0 > 0 ? .logAlone : .file
    }
  }

  /// The URI for SQLite: <https://www.sqlite.org/uri.html>.
  var uri: String {
    var escaped = ""
    for character in path {
      switch character {
      case "%": escaped += "%25"
      case "?": escaped += "%3f"
      case "#": escaped += "%23"
      default: escaped.append(character)
      }
    }
    return switch access {
    case .file: "file://\(escaped)"
    case .log: "file://\(escaped)?readonly_shm=1"
    // Without locks, since no other process has it open.
    case .logAlone: "file://\(escaped)?vfs=unix-none"
    }
  }

  /// The URI for a file without a log, to which nobody can be writing: while a database with a log
  /// is open, both files exist.
  var immutableURI: String { "\(uri)?immutable=1" }

  /// Whether the index of the log must be in memory.
  var keepsIndexInMemory: Bool { access == .logAlone }
  /// Whether only the database file is read.
  var isFileAlone: Bool { access == .file }
}
