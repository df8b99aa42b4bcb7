import BatchPlatform
public import SystemPackage

/// The settings of a run, except which rows it changes and how.
///
/// A run can be resumed with another policy.
public struct RunPolicy: Hashable, Sendable {
  /// How many identifiers to process at a time.
  public var chunk: Chunk
  /// The number of workers, each with its own background context; nil for the number of cores.
  public var workers: Int?
  /// How often a chunk is retried after a transient failure.
  public var retry: Retry
  /// How many identifiers may fail before the run stops.
  public var skip: Skip
  /// What holds the run back.
  public var throttle: Throttle
  /// Where and how often to record progress.
  public var checkpoint: Checkpoint
  /// When to stop a run that can be resumed later.
  public var limits: Limits
  /// How many records of earlier runs to keep.
  public var history: History
  /// The rows that a run processes first, before it waits; nil for none.
  public var canary: Canary?

  /// Makes a policy with the defaults of a job file.
  public init(
    chunk: Chunk = Chunk(),
    workers: Int? = nil,
    retry: Retry = Retry(),
    skip: Skip = Skip(),
    throttle: Throttle = Throttle(),
    checkpoint: Checkpoint = Checkpoint(),
    limits: Limits = Limits(),
    history: History = .standard,
    canary: Canary? = nil
  ) {
    self.chunk = chunk
    self.workers = workers
    self.retry = retry
    self.skip = skip
    self.throttle = throttle
    self.checkpoint = checkpoint
    self.limits = limits
    self.history = history
    self.canary = canary
  }
}

extension RunPolicy {
  /// How many rows to process at a time.
  public struct Chunk: Hashable, Sendable {
    /// The number of rows per chunk, which is one transaction; with a target, of the first chunk.
    public var size: Int
    /// How long a chunk should take; nil for chunks of a fixed size.
    public var target: Duration?
    /// The fewest rows per chunk with a target; nil for 100.
    public var minimum: Int?
    /// The most rows per chunk with a target; nil for 20,000.
    public var maximum: Int?

    /// Makes the size of chunks.
    public init(
      size: Int = 1000,
      target: Duration? = nil,
      minimum: Int? = nil,
      maximum: Int? = nil
    ) {
      self.size = size
      self.target = target
      self.minimum = minimum
      self.maximum = maximum
    }

    /// The range of sizes that a target may choose; one given bound shifts the other's default.
    package var bounds: ClosedRange<Int> {
      let lower = minimum ?? min(100, maximum ?? 100)
      return lower...max(lower, maximum ?? 20_000)
    }
  }

  /// How often a chunk is retried after a transient failure: a database locked for longer than
  /// `busyTimeout`, a handler that throws `retryLater`, or a command that asks for a retry.
  public struct Retry: Hashable, Sendable {
    /// The maximum retries per chunk; with 0 the first failure is final.
    public var limit: Int
    /// The approximate delay before the first retry; it doubles with each further one.
    public var backoff: Duration
    /// The longest delay.
    public var maximumBackoff: Duration

    /// Makes the settings of retries.
    public init(
      limit: Int = 3,
      backoff: Duration = .milliseconds(50),
      maximumBackoff: Duration = .seconds(5)
    ) {
      self.limit = limit
      self.backoff = backoff
      self.maximumBackoff = maximumBackoff
    }
  }

  /// How many identifiers may fail before the run stops.
  ///
  /// An identifier fails if the change of its row is refused: by a constraint, a trigger, or an
  /// expression that fails for its values. The failure is recorded, and the rest of the chunk is
  /// committed.
  public struct Skip: Hashable, Sendable {
    /// How many identifiers may fail; with 0 the first failure stops the run.
    public var limit: Int
    /// The fraction of all identifiers that may fail.
    public var ratio: Double

    /// Makes the limits.
    public init(limit: Int = 0, ratio: Double = 1) {
      self.limit = limit
      self.ratio = ratio
    }

    /// The failure policy for a run of `total` identifiers: the stricter of the two limits.
    package func failurePolicy(of total: Int) -> FailurePolicy {
      guard limit > 0 else { return .failChunk }
      let share = Int((Double(total) * ratio).rounded(.down))
      return share < limit
        ? .skip(upTo: share, allowedBy: "skip.ratio") : .skip(upTo: limit, allowedBy: "skip.limit")
    }
  }

  /// Where and how often to record progress.
  public struct Checkpoint: Hashable, Sendable {
    /// Where the list of identifiers is kept.
    public enum List: String, CaseIterable, Sendable {
      /// In the checkpoint file.
      case file
      /// Also in a table of the database, until the run is acknowledged, to restore a lost file.
      case store
    }

    /// The checkpoint file; nil for the caller's default.
    public var path: FilePath?
    /// How often to update the checkpoint file.
    public var interval: Duration
    /// Where the list of identifiers is kept.
    public var list: List
    /// How long to remember the IDs of finished work; nil for forever.
    public var keepRunIDs: Duration?

    /// Makes the settings of a checkpoint.
    public init(
      path: FilePath? = nil,
      interval: Duration = .seconds(5),
      list: List = .file,
      keepRunIDs: Duration? = nil
    ) {
      self.path = path
      self.interval = interval
      self.list = list
      self.keepRunIDs = keepRunIDs
    }

    /// Makes the settings of a checkpoint at a path.
    @_disfavoredOverload
    public init(
      path: String,
      interval: Duration = .seconds(5),
      list: List = .file,
      keepRunIDs: Duration? = nil
    ) {
      self.init(
        path: FilePath(path),
        interval: interval,
        list: list,
        keepRunIDs: keepRunIDs
      )
    }

    /// The time of the oldest end that is still remembered, in ISO 8601 and UTC; nil if runs are
    /// never forgotten.
    package var oldestEnd: String? {
      keepRunIDs.map {
        Date.now.addingTimeInterval(-($0 / .seconds(1))).formatted(.iso8601)
      }
    }
  }
  /// When to stop a run that can be resumed later.
  public struct Limits: Hashable, Sendable {
    /// How long a run may work on its chunks, starting again with each resumption.
    public var runtime: Duration?

    /// Makes limits.
    public init(runtime: Duration? = nil) {
      self.runtime = runtime
    }
  }
}
