public import BatchRuns
public import SystemPackage

/// The content of a job file: which rows of a database to process, and what to do with them.
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
///
/// Paths of a job created in code are used unchanged.
@dynamicMemberLookup
public struct Job: Sendable {
  /// The version of the job file that this library reads.
  public static let currentVersion = 1

  /// The version of the job file, always ``currentVersion``.
  public var version: Int
  /// The name of the job: at most 100 characters out of `A-Z a-z 0-9 . _ -`.
  public var name: String
  /// The purpose of the job, in free text.
  public var description: String?
  /// The database and how to open it.
  public var database: DatabaseOptions
  /// The parameters of the job, whose values each run sets, by name.
  public var parameters: [String: ParameterDeclaration]
  /// The rows to process.
  public var source: Source
  /// What to do with the rows.
  public var action: Action
  /// How runs work: the size of chunks, the number of workers, the throttle and so on.
  public var policy: RunPolicy
  /// How long to keep the changes of a run, so that it can be undone; nil to keep none.
  public var undo: Undo?
  /// Who must approve the plan of a run before its first row; nil for nobody.
  public var approval: Approval?
  /// How a run gives space back after its last row; nil for not at all.
  public var afterwards: Afterwards?
  /// Programs to notify of events of a run.
  public var hooks: Hooks
  /// Where to report the end of a run; nil for no report.
  public var report: Report?
  /// The folder that the relative paths of the job file were resolved against.
  public var baseDirectory: FilePath
  /// Nil for a job created in code.
  package var origin: JobOrigin?
  /// Whether runs are rehearsals; programs of the job are informed.
  package var isRehearsal = false

  /// Makes a job in code; without a chunk size, it gets the database's default.
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
    canary: Canary? = nil,
    undo: Undo? = nil,
    approval: Approval? = nil,
    afterwards: Afterwards? = nil,
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
      history: history,
      canary: canary
    )
    self.undo = undo
    self.approval = approval
    self.afterwards = afterwards
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
  /// The conditions that hold a run back.
  public typealias Throttle = RunPolicy.Throttle
  /// Where and how often to record progress.
  public typealias Checkpoint = RunPolicy.Checkpoint
  /// When to stop a run that can be resumed later.
  public typealias Limits = RunPolicy.Limits
  /// The rows that a run processes first.
  public typealias Canary = RunPolicy.Canary
  /// How many records of earlier runs to keep.
  public typealias History = RunPolicy.History

  /// A part of the ``policy``: `job.chunk`, `job.retry`.
  public subscript<Value>(dynamicMember part: WritableKeyPath<RunPolicy, Value>) -> Value {
    get { policy[keyPath: part] }
    set { policy[keyPath: part] = newValue }
  }

  /// The path of the checkpoint: the one that the job specifies, or its name with `.batch`.
  ///
  /// A job read from a file always specifies one: by default, the file's name with the extension
  /// `.batch`, in the same folder.
  public var checkpointPath: FilePath {
    policy.checkpoint.path ?? baseDirectory.appending("\(name).batch")
  }

  /// Returns the place of a value for an error: `job.json:9:14: action.set.price`.
  ///
  /// It is only the path if the job was created in code, and the place of the nearest enclosing
  /// value if the file omits the value.
  public func place(of path: JobPath) -> String {
    guard let origin else { return path.description }
    return origin.place(of: path)
  }
}
