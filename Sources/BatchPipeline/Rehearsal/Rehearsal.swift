import BatchJobs
public import BatchRuns
public import BatchIdentifiers
public import BatchSQLite
public import SystemPackage

/// A run of a job on a clone of its database, and the changes that it made there.
///
///     let rehearsal = try await job.rehearse()
///     for table in rehearsal.tables { print(table.table, table.changed) }
///
/// The database is only read, and the job's checkpoint is unaffected.
///
/// The run is always a new one, and can be held only by the length of its write-ahead log. An
/// export's file is written to the folder of the rehearsal, hooks do not run, and no report is
/// written. The handler or command of a transform is called; it can check
/// `TransformColumns.isRehearsal` or the variable `BATCH_REHEARSAL`.
public struct Rehearsal: Sendable {
  /// The settings of a rehearsal.
  public struct Settings: Sendable {
    /// Where to create the folder of the rehearsal; nil for beside the database.
    public var folder: FilePath?
    /// Whether to keep the folder with the clone.
    public var keepsFolder = false
    /// The number of rows to report per column, and of new and of removed rows per table.
    public var samples = 3

    /// Makes the default settings.
    public init() {}
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
    /// The time to clone the database.
    public var clone = 0.0
    /// The time of the run, including the selection.
    public var run = 0.0
    /// The time to compare the clone with the database.
    public var comparison = 0.0
  }

  /// The summary of the run.
  public let summary: RunSummary
  /// The path of the database.
  public let database: String
  /// The path of the rehearsal's folder.
  public let folder: String
  /// Whether the folder still exists.
  public internal(set) var isKept: Bool
  /// Whether the clone shares the database's blocks instead of copying them.
  public let sharesBlocks: Bool
  /// The size of the clone before the run, in bytes.
  public let bytesBefore: Int64
  /// The size of the clone after the run, in bytes.
  public let bytesAfter: Int64
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

  /// The maximum number of rows to report per column or table.
  public static let maximumSamples = 100
}

extension Job {
  /// Runs the job on a clone of its database, and reports its effect.
  ///
  /// Cancelling the task ends the rehearsal.
  ///
  /// - Parameters:
  ///   - options: Parameters, workers and chunk size; the ID of the work is ignored.
  ///   - handlers: The handlers that a transform's `handler` may name.
  ///   - settings: The settings of the rehearsal.
  ///   - onEvent: Called with each event, on any thread.
  /// - Returns: The effect of the run on the clone.
  /// - Throws: `BatchError` if nothing was run: of code `diskFull` if there is no room for a clone,
  ///   `alreadyRunning` if the job is running, `interrupted` if the task was cancelled, or an error
  ///   of a run. The folder is then removed unless it is to be kept.
  /// - Complexity: That of the run, and O(*n*) in the bytes and the rows of the database.
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
        at: database.path.string
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
    var options = options
    options.fresh = true
    options.runID = nil
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
    case comparedTables, comparedRows, tables, failures, notes
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
  }
}
