public import BatchStore
public import SystemPackage

extension Job {
  /// The database of a job and how to open it.
  public struct DatabaseOptions: Hashable, Sendable {
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
    /// Whether foreign keys are enforced, and so their `ON DELETE` and `ON UPDATE` carried out.
    public var foreignKeys: Bool
    /// Whether the database is opened for reading only, which allows just exports.
    public var readOnly: Bool

    /// Makes options; all but the path have defaults.
    public init(
      path: FilePath,
      busyTimeout: Duration = .seconds(5),
      synchronous: Synchronous = .normal,
      journalMode: JournalMode = .wal,
      foreignKeys: Bool = false,
      readOnly: Bool = false
    ) {
      self.path = path
      self.busyTimeout = busyTimeout
      self.synchronous = synchronous
      self.journalMode = journalMode
      self.foreignKeys = foreignKeys
      self.readOnly = readOnly
    }
  }
}
