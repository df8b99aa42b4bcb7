#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A database that is read without a change to any file, be it the index of its log.
///
/// SQLite makes the files `-wal` and `-shm` for whoever reads a database with a write-ahead log, and enters
/// readers in the latter. How it is kept from that depends on which files there are.
struct UntouchedFile {
  /// How the database is opened.
  private enum Access {
    /// There is no log, or nothing in it: the file alone is the database.
    case file
    /// There is a log with an index, which is read only.
    case log
    /// There is a log without an index, since nobody has it open: SQLite makes one in memory.
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

  /// What SQLite opens: <https://www.sqlite.org/uri.html>.
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
    // Without locks, of which there is nobody to know.
    case .logAlone: "file://\(escaped)?vfs=unix-none"
    }
  }

  /// The same for a file without a log, which nobody can be writing: one with a log has both files while it
  /// is open.
  var immutableURI: String { "\(uri)?immutable=1" }

  /// Whether the index of the log has to be in memory.
  var keepsIndexInMemory: Bool { access == .logAlone }
  /// Whether the file alone is read.
  var isFileAlone: Bool { access == .file }
}
