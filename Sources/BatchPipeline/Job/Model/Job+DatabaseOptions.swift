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

    /// What becomes of a store that Core Data made.
    public enum CoreData: String, CaseIterable, Sendable {
      /// It is read, and a job that writes to it is refused: an app that opens it later knows nothing of the
      /// change and overwrites it.
      case refuse
      /// It is written, since no app will open it again.
      case overwrite
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
    /// Whether a store that Core Data made may be written.
    public var coreData: CoreData

    /// Makes options; all but the path have defaults.
    public init(
      path: FilePath,
      busyTimeout: Duration = .seconds(5),
      synchronous: Synchronous = .normal,
      journalMode: JournalMode = .wal,
      foreignKeys: Bool = false,
      readOnly: Bool = false,
      coreData: CoreData = .refuse
    ) {
      self.path = path
      self.busyTimeout = busyTimeout
      self.synchronous = synchronous
      self.journalMode = journalMode
      self.foreignKeys = foreignKeys
      self.readOnly = readOnly
      self.coreData = coreData
    }
  }
}
