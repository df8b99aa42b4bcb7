public import SystemPackage

extension Job {
  /// How many rows are done at a time.
  public struct Chunk: Hashable, Sendable {
    /// The number of rows of a chunk, which is written in one transaction.
    public var size: Int

    /// Makes the size of chunks.
    public init(size: Int = 1000) {
      self.size = size
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

    /// The checkpoint file; see ``Job/checkpointPath`` for the default.
    public var path: FilePath?
    /// Where the marks of finished chunks are kept.
    public var ledger: Ledger
    /// How often the checkpoint file is brought up to date.
    public var interval: Duration

    /// Makes the settings of a checkpoint.
    public init(path: FilePath? = nil, ledger: Ledger = .store, interval: Duration = .seconds(5)) {
      self.path = path
      self.ledger = ledger
      self.interval = interval
    }
  }
}
