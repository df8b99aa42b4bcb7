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

    /// Where a database of PostgreSQL is.
    ///
    /// What is left out comes from libpq's environment, `PGHOST`, `PGUSER` and the like. A password comes from there, or from
    /// a password file or the service: it never stands in a job.
    public enum Server: Hashable, Sendable {
      /// A URL of libpq: `postgres://user@host:5432/shop?sslmode=require`.
      case url(String)
      /// A service of `pg_service.conf`.
      case service(String)
    }

    /// The file of the database; empty for one of a server.
    public var path: FilePath
    /// The PostgreSQL database; nil for a file.
    public var server: Server?
    /// How long a process may be silent and keep what it has of a run on PostgreSQL that others take part in.
    public var lease: Duration
    /// How long to wait for another process that has the database locked, or for a lock of PostgreSQL.
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
      lease = Self.defaultLease
      self.busyTimeout = busyTimeout
      self.synchronous = synchronous
      self.journalMode = journalMode
      self.foreignKeys = foreignKeys
      self.readOnly = readOnly
      self.coreData = coreData
    }

    /// Makes options for a database of PostgreSQL.
    public init(
      server: Server,
      lease: Duration = .seconds(60),
      busyTimeout: Duration = .seconds(5)
    ) {
      self.init(path: "", busyTimeout: busyTimeout)
      self.server = server
      self.lease = lease
    }

    static let defaultLease = Duration.seconds(60)
  }
}
