public import BatchRuns
public import SystemPackage

extension Job {
  /// The database of a job and how to open it.
  public struct DatabaseOptions: Hashable, Sendable {
    /// How the database keeps its journal.
    public enum JournalMode: String, CaseIterable, Sendable {
      /// A write-ahead log, so that readers and the writer do not wait for each other.
      case wal
      /// The mode that the database already has.
      case keep
    }

    /// How to treat a Core Data store.
    public enum CoreData: String, CaseIterable, Sendable {
      /// Read it, and refuse jobs that write to it: an app that opens it later does not notice the
      /// change and may overwrite it.
      case refuse
      /// Write to it, because no app will open it again.
      case overwrite
    }

    /// The location of a PostgreSQL database.
    ///
    /// Omitted parts come from libpq's environment, such as `PGHOST` and `PGUSER`.
    ///
    /// A password comes from the environment, a password file or the service, but never from a job.
    public enum Server: Hashable, Sendable {
      /// A URL for libpq: `postgres://user@host:5432/shop?sslmode=require`.
      case url(String)
      /// A service of `pg_service.conf`.
      case service(String)
    }

    /// The file of the database; empty for a server.
    public var path: FilePath
    /// The PostgreSQL server; nil for a file.
    public var server: Server?
    /// How long a process may be silent before it loses its part of a shared run on PostgreSQL.
    public var lease: Duration
    /// The SQLite extensions that the schema needs, loaded by every connection of a run.
    ///
    /// Each is a path, or a name for the system's loader.
    public var extensions: [FilePath]
    /// How long to wait for a lock of another process, in a file or on a server.
    public var busyTimeout: Duration
    /// How thoroughly commits are synced to the disk.
    public var synchronous: Synchronous
    /// How the database keeps its journal.
    public var journalMode: JournalMode
    /// Whether foreign keys are enforced, including their `ON DELETE` and `ON UPDATE` actions.
    public var foreignKeys: Bool
    /// Whether to open the database read-only, which allows only exports.
    public var readOnly: Bool
    /// Whether a Core Data store may be written.
    public var coreData: CoreData

    /// Makes options for a database file; all but the path have defaults.
    public init(
      path: FilePath,
      busyTimeout: Duration = .seconds(5),
      synchronous: Synchronous = .normal,
      journalMode: JournalMode = .wal,
      foreignKeys: Bool = false,
      readOnly: Bool = false,
      coreData: CoreData = .refuse,
      extensions: [FilePath] = []
    ) {
      self.path = path
      lease = Self.defaultLease
      self.busyTimeout = busyTimeout
      self.synchronous = synchronous
      self.journalMode = journalMode
      self.foreignKeys = foreignKeys
      self.readOnly = readOnly
      self.coreData = coreData
      self.extensions = extensions
    }

    /// Makes options for a PostgreSQL database.
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

    /// The chunk size of a job that specifies none.
    ///
    /// On a server, each chunk waits for its own commit, and locks only its own rows: chunks of a
    /// fixed 1,000 rows would take up to twice the time of larger ones, so 1,000 is the minimum. In
    /// a file, chunks share commits.
    var standardChunk: Chunk {
      server == nil ? Chunk() : Chunk(target: .milliseconds(100), minimum: 1_000)
    }
  }
}
