import BatchJobs
public import BatchRuns
public import BatchIdentifiers
public import BatchSQLite
public import SystemPackage

/// A run of a job on a clone of its database, and what it changed there.
///
///     let rehearsal = try await job.rehearse()
///     for table in rehearsal.tables { print(table.table, table.changed) }
///
/// The database is only read, and the job's checkpoint is left alone. The run is always a new one, and only the
/// length of its write-ahead log can hold it. An export's file goes into the rehearsal's folder; hooks do not run,
/// and no report is written. The handler or command of a transform is called: it can check
/// `TransformColumns.isRehearsal` or the variable `BATCH_REHEARSAL`.
public struct Rehearsal: Sendable {
  /// The settings of a rehearsal.
  public struct Settings: Sendable {
    /// Where to make the rehearsal's folder; nil for beside the database.
    public var folder: FilePath?
    /// Whether to keep the folder with the clone.
    public var keepsFolder = false
    /// How many rows to report per column, and how many new and removed ones per table.
    public var samples = 3

    /// The defaults.
    public init() {}
  }

  /// What happens in a rehearsal.
  public enum Event: Sendable {
    /// Cloning starts in a folder; the database has this many bytes.
    case began(folder: FilePath, bytes: Int64)
    /// The number of bytes copied so far.
    case copied(Int64)
    /// An event of the run.
    case run(RunEvent)
    /// The number of rows compared so far.
    case compared(Int)
  }

  /// How long it took, in seconds.
  public struct Times: Sendable, Encodable {
    /// To clone the database.
    public var clone = 0.0
    /// To run, the selection included.
    public var run = 0.0
    /// To compare the clone with the database.
    public var comparison = 0.0
  }

  /// How the run ended.
  public let summary: RunSummary
  /// The database.
  public let database: String
  /// The folder of the rehearsal.
  public let folder: String
  /// Whether it still exists.
  public internal(set) var isKept: Bool
  /// Whether the clone shares the database's blocks instead of copying them.
  public let sharesBlocks: Bool
  /// How long the clone was before the run, in bytes.
  public let bytesBefore: Int64
  /// How long it was after the run.
  public let bytesAfter: Int64
  /// How long it took.
  public let seconds: Times
  /// How many tables were compared.
  public let comparedTables: Int
  /// How many rows were compared.
  public let comparedRows: Int
  /// The tables that the run, triggers or foreign keys changed.
  public let tables: [TableChanges]
  /// Why identifiers failed, most frequent reason first, at most 100.
  public let failures: [FailureCount]
  /// Possible causes, in words.
  public internal(set) var notes: [String]

  /// The maximum number of rows to report for a column or table.
  public static let maximumSamples = 100
}

extension Job {
  /// Runs the job on a clone of its database, and reports what it did.
  ///
  /// Cancelling the task ends it.
  ///
  /// - Parameters:
  ///   - options: Parameters, workers and chunk size; an ID of the work is ignored.
  ///   - handlers: Handlers that the `handler` of a transform may name.
  ///   - settings: The settings of a rehearsal.
  ///   - onEvent: Called with each event, on any thread.
  /// - Returns: What the run did to the clone.
  /// - Throws: `BatchError` if nothing was run: of code `diskFull` if there is no room for a clone,
  ///   `alreadyRunning` if the job is running, or a run's errors; `interrupted` if it was
  ///   cancelled. Then the folder is removed unless it is to be kept.
  /// - Complexity: The run, and O(*n*) in the bytes and in the rows of the database.
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

  /// Encodes the results; the summary of the run is the field `run`.
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
