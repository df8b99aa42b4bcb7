import BatchPlatform

/// A database that is read without changing any file, not even the index of its log.
///
/// When a database with a write-ahead log is read, SQLite creates the files `-wal` and `-shm`, and
/// registers readers in the latter. How to prevent that depends on which files exist.
struct UntouchedFile {
  private enum Access {
    /// Without a log, or with an empty one, the file alone is the database.
    case file
    /// A log with an index, which is opened read-only.
    case log
    /// A log without an index, since no process has it open; SQLite makes the index in memory.
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

  /// The URI of a file without a log; it cannot be written at the moment, because both log files
  /// exist while a database with a log is open.
  var immutableURI: String { "\(uri)?immutable=1" }

  var keepsIndexInMemory: Bool { access == .logAlone }
  var isFileAlone: Bool { access == .file }
}
