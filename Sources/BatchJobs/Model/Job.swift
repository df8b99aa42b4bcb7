public import BatchRuns
public import SystemPackage

/// What to do to which rows of which database: the content of a job file.
///
/// Read one with ``init(contentsOf:)``, or make one in code and ``validate()`` it:
///
///     let job = Job(
///       name: "reprice",
///       database: .init(path: "shop.db"),
///       source: .init(entity: "orders", where: "price IS NULL"),
///       action: .update(.init(set: [.init("price", to: "cost * 2")]))
///     )
///     try job.validate()
///
/// A job read from a file has been validated, and its relative paths start at the file's folder.
/// Paths of a job created in code are used as they are.
@dynamicMemberLookup
public struct Job: Sendable {
  /// The version of the job file that this library reads.
  public static let currentVersion = 1

  /// The version of the job file, always ``currentVersion``.
  public var version: Int
  /// The name of the job, of `A-Z a-z 0-9 . _ -`, at most 100 characters.
  public var name: String
  /// What the job is for, in free text.
  public var description: String?
  /// The database and how to open it.
  public var database: DatabaseOptions
  /// The values that each run sets, by name.
  public var parameters: [String: ParameterDeclaration]
  /// Which rows to process.
  public var source: Source
  /// What to do with the rows.
  public var action: Action
  /// How the job works: the size of chunks, the number of workers, what holds it back.
  public var policy: RunPolicy
  /// How long to keep what a run changes, so that it can be undone; nil not to keep it.
  public var undo: Undo?
  /// Programs to notify about a run.
  public var hooks: Hooks
  /// Where to report how a run ended; nil for no report.
  public var report: Report?
  /// The folder that the relative paths of the job file were resolved against.
  public var baseDirectory: FilePath
  /// The positions of the job's values in its file; nil for a job created in code.
  package var origin: JobOrigin?
  /// Whether a run is a rehearsal; its programs can check.
  package var isRehearsal = false

  /// Makes a job in code; without a size of chunks, it has the database's default.
  public init(
    name: String,
    description: String? = nil,
    database: DatabaseOptions,
    parameters: [String: ParameterDeclaration] = [:],
    source: Source,
    action: Action,
    chunk: Chunk? = nil,
    workers: Int? = nil,
    retry: Retry = Retry(),
    skip: Skip = Skip(),
    throttle: Throttle = Throttle(),
    checkpoint: Checkpoint = Checkpoint(),
    limits: Limits = Limits(),
    history: History = .standard,
    undo: Undo? = nil,
    hooks: Hooks = Hooks(),
    report: Report? = nil,
    baseDirectory: FilePath = ""
  ) {
    self.version = Self.currentVersion
    self.name = name
    self.description = description
    self.database = database
    self.parameters = parameters
    self.source = source
    self.action = action
    policy = RunPolicy(
      chunk: chunk ?? database.standardChunk,
      workers: workers,
      retry: retry,
      skip: skip,
      throttle: throttle,
      checkpoint: checkpoint,
      limits: limits,
      history: history
    )
    self.undo = undo
    self.hooks = hooks
    self.report = report
    self.baseDirectory = baseDirectory
  }

  /// How many rows to process at a time.
  public typealias Chunk = RunPolicy.Chunk
  /// How often a chunk is retried after a transient failure.
  public typealias Retry = RunPolicy.Retry
  /// How many identifiers may fail before the run stops.
  public typealias Skip = RunPolicy.Skip
  /// What holds a run back.
  public typealias Throttle = RunPolicy.Throttle
  /// Where and how often to record progress.
  public typealias Checkpoint = RunPolicy.Checkpoint
  /// When to stop a run that can be resumed later.
  public typealias Limits = RunPolicy.Limits
  /// How many records of earlier runs to keep.
  public typealias History = RunPolicy.History

  /// A part of the job's ``policy``: `job.chunk`, `job.retry`.
  public subscript<Value>(dynamicMember part: WritableKeyPath<RunPolicy, Value>) -> Value {
    get { policy[keyPath: part] }
    set { policy[keyPath: part] = newValue }
  }

  /// The path of the checkpoint: the one that the job names, or the job's name with `.batch`.
  ///
  /// A job read from a file always names one: by default the file's name with the extension
  /// `.batch`, in the same folder.
  public var checkpointPath: FilePath {
    policy.checkpoint.path ?? baseDirectory.appending("\(name).batch")
  }

  /// The place of a value for an error: `job.json:9:14: action.set.price`.
  ///
  /// Only the path if the job was created in code; the place of the nearest enclosing value if the
  /// file omits the value.
  public func place(of path: JobPath) -> String {
    guard let origin else { return path.description }
    return origin.place(of: path)
  }
}
