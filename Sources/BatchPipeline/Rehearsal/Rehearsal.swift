public import BatchJobs
public import BatchRuns
public import BatchIdentifiers
import BatchSQLite
public import SystemPackage

/// A run of a job that changes nothing, and the changes that it would make.
///
///     let rehearsal = try await job.rehearse()
///     for table in rehearsal.tables { print(table.table, table.changed) }
///
/// On SQLite, the run works on a clone of the database, which is only read. On PostgreSQL, it works
/// on some of the rows, and each of its transactions is rolled back. The job's record is unaffected.
///
/// The run is always a new one, and can be held only by the length of its write-ahead log. An
/// export's file is written to the folder of the rehearsal, hooks do not run, and no report is
/// written. The handler or command of a transform is called; it can check
/// `TransformColumns.isRehearsal` or the variable `BATCH_REHEARSAL`.
public struct Rehearsal: Sendable {
  /// The settings of a rehearsal.
  public struct Settings: Sendable {
    /// Where to create the folder of the rehearsal; nil for beside the database or, on PostgreSQL,
    /// where an export would be.
    public var folder: FilePath?
    /// Whether to keep the folder with the clone, or with the export.
    public var keepsFolder = false
    /// The number of rows to report per column, and of new and of removed rows per table.
    public var samples = 3
    /// On PostgreSQL, how many rows to rehearse, from all parts of the list; nil for all.
    ///
    /// A clone is rehearsed with all rows.
    public var rows: Int? = 10_000
    /// On PostgreSQL, the URL of another database with the same tables; nil for the job's.
    public var server: String?

    /// Makes the default settings.
    public init() {}

    fileprivate func check() throws(BatchError) {
      for (name, number, least) in [("rows", rows ?? 1, 1), ("samples", samples, 0)]
      where number < least {
        throw BatchError(
          .invalidJob,
          "the number of \(name) to rehearse is \(number)",
          remedy: "give \(least) or more"
        )
      }
    }
  }

  /// An event of a rehearsal.
  public enum Event: Sendable {
    /// Cloning into a folder begins; the database has this many bytes.
    case began(folder: FilePath, bytes: Int64)
    /// This many bytes have been copied so far.
    case copied(Int64)
    /// The run has reported an event.
    case run(RunEvent)
    /// This many rows have been compared so far.
    case compared(Int)
  }

  /// The durations of the steps, in seconds.
  public struct Times: Sendable, Encodable {
    /// The time to clone the database; nil without a clone.
    public var clone: Double?
    /// The time of the run, including the selection.
    public var run = 0.0
    /// The time to compare the rows with those before.
    public var comparison = 0.0
  }

  /// The summary of the run.
  public let summary: RunSummary
  /// The path of the database, or its server.
  public let database: String
  /// The path of the rehearsal's folder; nil if it needs none.
  public let folder: String?
  /// Whether the folder still exists.
  public internal(set) var isKept: Bool
  /// Whether the clone shares the database's blocks instead of copying them; nil without a clone.
  public let sharesBlocks: Bool?
  /// The size of the clone before the run, in bytes; nil without a clone.
  public let bytesBefore: Int64?
  /// The size of the clone after the run, in bytes; nil without a clone.
  public let bytesAfter: Int64?
  /// The durations of the steps.
  public let seconds: Times
  /// The number of tables compared.
  public let comparedTables: Int
  /// The number of rows compared.
  public let comparedRows: Int
  /// The tables that were changed by the run, triggers or foreign keys.
  public let tables: [TableChanges]
  /// Why identifiers failed, most frequent reason first; at most 100 reasons.
  public let failures: [FailureCount]
  /// Possible causes, in words.
  public internal(set) var notes: [String]
  /// What the rehearsed rows say about all; nil on SQLite, where all are rehearsed.
  public internal(set) var sample: RehearsalSample?

  /// The maximum number of rows to report per column or table.
  public static let maximumSamples = 100
}

extension Job {
  /// Runs the job on a clone of its database, or rolls back all that it does on PostgreSQL, and
  /// reports its effect.
  ///
  /// Cancelling the task ends the rehearsal.
  ///
  /// - Parameters:
  ///   - options: Parameters, workers and chunk size; the ID of the work is ignored.
  ///   - handlers: The handlers that a transform's `handler` may name.
  ///   - settings: The settings of the rehearsal.
  ///   - onEvent: Called with each event, on any thread.
  /// - Returns: The effect of the run.
  /// - Throws: `BatchError` if nothing was run: of code `diskFull` if there is no room for a clone,
  ///   `alreadyRunning` if the job is running, `interrupted` if the task was cancelled, or an error
  ///   of a run. The folder is then removed unless it is to be kept.
  /// - Complexity: That of the run, and O(*n*) in the bytes and the rows of the database; on
  ///   PostgreSQL, in the rehearsed rows and the length of the list.
  public func rehearse(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:],
    settings: Rehearsal.Settings = .init(),
    onEvent: @escaping @Sendable (Rehearsal.Event) -> Void = { _ in }
  ) async throws(BatchError) -> Rehearsal {
    do throws(BatchError) {
      return try await Rehearsal.rehearse(self, options, handlers, settings, onEvent)
    } catch {
      guard error.code == .interrupted else { throw error.inWordsOfJobs }
      throw BatchError(
        .interrupted,
        "the rehearsal was stopped; the database is as it was",
        at: database.server == nil ? database.path.string : nil
      )
    }
  }
}

extension Rehearsal {
  fileprivate static func rehearse(
    _ job: Job,
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler],
    _ settings: Settings,
    _ onEvent: @escaping @Sendable (Event) -> Void
  ) async throws(BatchError) -> Rehearsal {
    try job.validate()
    try job.requireSupport()
    try options.check()
    try settings.check()
    var options = options
    options.fresh = true
    options.runID = nil
    options.plan = nil
    #if PostgreSQL
    if job.database.server != nil {
      return try await ServerStage(
        job: job,
        options: options,
        handlers: handlers,
        settings: settings,
        onEvent: onEvent
      ).rehearse()
    }
    #endif
    let store: Store
    do throws(BatchError) {
      store = try await job.openStore(isReadOnly: true)
    } catch {
      throw job.located(openingStore: error)
    }
    do throws(BatchError) {
      let stage = Stage(
        job: job,
        options: options,
        handlers: handlers,
        settings: settings,
        store: store,
        onEvent: onEvent
      )
      let rehearsal = try await stage.rehearse()
      await store.close()
      return rehearsal
    } catch {
      await store.close()
      throw error
    }
  }
}

extension Rehearsal: Encodable {
  private enum CodingKeys: CodingKey {
    case job, run, database, folder, isKept, sharesBlocks, bytesBefore, bytesAfter, seconds
    case comparedTables, comparedRows, tables, failures, notes, sample
  }

  /// Encodes the results; the field `run` is the summary of the run.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(summary.job, forKey: .job)
    try container.encode(summary, forKey: .run)
    try container.encode(database, forKey: .database)
    try container.encode(folder, forKey: .folder)
    try container.encode(isKept, forKey: .isKept)
    try container.encode(sharesBlocks, forKey: .sharesBlocks)
    try container.encode(bytesBefore, forKey: .bytesBefore)
    try container.encode(bytesAfter, forKey: .bytesAfter)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(comparedTables, forKey: .comparedTables)
    try container.encode(comparedRows, forKey: .comparedRows)
    try container.encode(tables, forKey: .tables)
    try container.encode(failures, forKey: .failures)
    try container.encode(notes, forKey: .notes)
    try container.encodeIfPresent(sample, forKey: .sample)
  }
}
