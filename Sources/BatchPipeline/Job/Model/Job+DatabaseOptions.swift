public import SystemPackage

extension Job {
  /// The database of a job and how to open it.
  public struct DatabaseOptions: Hashable, Sendable {
    /// How hard a commit is pressed onto the disk: SQLite's `PRAGMA synchronous`.
    public enum Synchronous: String, CaseIterable, Sendable {
      /// A commit survives the death of the process, not every loss of power.
      case normal
      /// A commit survives a loss of power.
      case full
      /// As ``full``, and the folder is synchronized, too.
      case extra
      /// Nothing is synchronized: a loss of power may damage the database.
      case off
    }

    /// The journal of the database.
    public enum JournalMode: String, CaseIterable, Sendable {
      /// A write-ahead log, so that readers and the writer do not wait for each other.
      case wal
      /// Whatever the database has.
      case keep
    }

    /// The file of the database.
    public var path: FilePath
    /// How long to wait for another process that has the database locked.
    public var busyTimeout: Duration
    /// How hard a commit is pressed onto the disk.
    public var synchronous: Synchronous
    /// The journal of the database.
    public var journalMode: JournalMode
    /// Whether the database is opened for reading only, which allows just exports.
    public var readOnly: Bool

    /// Makes options; all but the path have defaults.
    public init(
      path: FilePath,
      busyTimeout: Duration = .seconds(5),
      synchronous: Synchronous = .normal,
      journalMode: JournalMode = .wal,
      readOnly: Bool = false
    ) {
      self.path = path
      self.busyTimeout = busyTimeout
      self.synchronous = synchronous
      self.journalMode = journalMode
      self.readOnly = readOnly
    }
  }
}
