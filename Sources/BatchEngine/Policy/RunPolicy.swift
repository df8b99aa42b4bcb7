public import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a run goes about its work: what does not decide which rows are changed, nor to what.
///
/// A run may be resumed with another policy.
public struct RunPolicy: Hashable, Sendable {
  /// How many identifiers are done at a time.
  public var chunk: Chunk
  /// The number of background contexts; nil for the number of cores.
  public var workers: Int?
  /// How often a chunk is retried after a transient failure.
  public var retry: Retry
  /// How many identifiers may fail before the run stops.
  public var skip: Skip
  /// What holds the run back.
  public var throttle: Throttle
  /// Where and how often progress is kept.
  public var checkpoint: Checkpoint
  /// When a run stops, to be resumed later.
  public var limits: Limits
  /// How many records of earlier runs stay.
  public var history: History

  /// Makes a policy; what is left out has the defaults of a job file.
  public init(
    chunk: Chunk = Chunk(),
    workers: Int? = nil,
    retry: Retry = Retry(),
    skip: Skip = Skip(),
    throttle: Throttle = Throttle(),
    checkpoint: Checkpoint = Checkpoint(),
    limits: Limits = Limits(),
    history: History = .standard
  ) {
    self.chunk = chunk
    self.workers = workers
    self.retry = retry
    self.skip = skip
    self.throttle = throttle
    self.checkpoint = checkpoint
    self.limits = limits
    self.history = history
  }
}

extension RunPolicy {
  /// How many rows are done at a time.
  public struct Chunk: Hashable, Sendable {
    /// The number of rows of a chunk, which is written in one transaction; with a target, of the
    /// first.
    public var size: Int
    /// How long a chunk shall take, or nil for chunks of one size.
    public var target: Duration?
    /// The fewest rows of a chunk that is sized by a target; 100 if it is nil.
    public var minimum: Int?
    /// The most rows of a chunk that is sized by a target; 20,000 if it is nil.
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

    /// The sizes between which a target may choose; one bound that is given moves the other's
    /// default.
    package var bounds: ClosedRange<Int> {
      let lower = minimum ?? min(100, maximum ?? 100)
      return lower...max(lower, maximum ?? 20_000)
    }
  }

  /// How often a chunk is retried after a transient failure: another connection holds the database
  /// longer than its `busyTimeout`, a handler throws `retryLater`, or a command asks for it.
  public struct Retry: Hashable, Sendable {
    /// The most further tries of a chunk; with 0 the first failure is final.
    public var limit: Int
    /// About how long a chunk rests before its first further try; twice as long each time.
    public var backoff: Duration
    /// The longest rest.
    public var maximumBackoff: Duration

    /// Makes the settings of further tries.
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
  /// An identifier fails if the change of its row alone is refused: by a constraint, by a trigger,
  /// by an expression that has no value for it. It is recorded, and the others of its chunk are
  /// done.
  public struct Skip: Hashable, Sendable {
    /// The most identifiers that may fail; with 0 the first failure stops the run.
    public var limit: Int
    /// The largest part of all identifiers that may fail.
    public var ratio: Double

    /// Makes bounds.
    public init(limit: Int = 0, ratio: Double = 1) {
      self.limit = limit
      self.ratio = ratio
    }

    /// What both bounds mean for a number of identifiers.
    package func failurePolicy(of total: Int) -> FailurePolicy {
      let limit = min(limit, Int((Double(total) * ratio).rounded(.down)))
      return limit > 0 ? .skip(upTo: limit) : .failChunk
    }
  }

  /// Where and how often progress is kept.
  public struct Checkpoint: Hashable, Sendable {
    /// Where the marks of finished chunks are kept.
    public enum Ledger: String, CaseIterable, Sendable {
      /// In a table of the database, in the transaction of the chunk: exactly once.
      case store
      /// In the checkpoint file, after the transaction: at least once.
      case file
    }

    /// Where the list of identifiers is kept.
    public enum List: String, CaseIterable, Sendable {
      /// In the checkpoint file.
      case file
      /// In a table of the database as well, until the run is acknowledged: a file that is lost is made
      /// again from it.
      case store
    }

    /// The checkpoint file; nil for the default of whoever runs.
    public var path: FilePath?
    /// Where the marks of finished chunks are kept.
    public var ledger: Ledger
    /// How often the checkpoint file is brought up to date.
    public var interval: Duration
    /// Where the list of identifiers is kept.
    public var list: List
    /// How long the identifiers of finished work are remembered; nil forever.
    public var keepRunIDs: Duration?

    /// Makes the settings of a checkpoint.
    public init(
      path: FilePath? = nil,
      ledger: Ledger = .store,
      interval: Duration = .seconds(5),
      list: List = .file,
      keepRunIDs: Duration? = nil
    ) {
      self.path = path
      self.ledger = ledger
      self.interval = interval
      self.list = list
      self.keepRunIDs = keepRunIDs
    }

    /// Makes the settings of a checkpoint at a path.
    @_disfavoredOverload
    public init(
      path: String,
      ledger: Ledger = .store,
      interval: Duration = .seconds(5),
      list: List = .file,
      keepRunIDs: Duration? = nil
    ) {
      self.init(
        path: FilePath(path),
        ledger: ledger,
        interval: interval,
        list: list,
        keepRunIDs: keepRunIDs
      )
    }

    /// The end since when runs are remembered by their identifiers, as an ISO 8601 timestamp in UTC;
    /// nil if all are.
    package var oldestEnd: String? {
      keepRunIDs.map {
        Date.now.addingTimeInterval(-($0 / .seconds(1))).formatted(.iso8601)
      }
    }
  }
  /// When a run stops, to be resumed later.
  public struct Limits: Hashable, Sendable {
    /// How long a run may work on its chunks, counted anew each time that it is resumed.
    public var runtime: Duration?

    /// Makes limits.
    public init(runtime: Duration? = nil) {
      self.runtime = runtime
    }
  }
}
