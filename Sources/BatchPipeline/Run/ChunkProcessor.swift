import BatchIdentifiers
import BatchStore

/// What a run does with a chunk: prepared by a worker, then committed by the one that writes.
///
/// The engine (``RunLoop`` and what it is made of) knows no more of either than is said here.
protocol ChunkProcessor: Sendable {
  /// What prepares chunks, each on a thread of its own.
  associatedtype Worker: ChunkWorker
  /// What crosses from the worker to the writer.
  associatedtype Prepared: Sendable

  /// Whether chunks must be committed in the order of their positions.
  var inOrder: Bool { get }

  /// Reads and computes what the chunk needs, in a background context: of its first positions, as
  /// many as are to be held at once.
  func prepare(
    _ positions: Range<Int>,
    in context: Worker
  ) async throws(BatchError) -> PreparedChunk<Prepared>

  /// Makes the chunk's effect lasting, all of it or none.
  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit

  /// Waits until everything committed is on the disk, and completes `progress`; `done` is what this
  /// process has seen committed.
  ///
  /// - Returns: All identifiers that failed, unless they are `failedCount`.
  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]?

  /// Puts the result of a completed run into place, and completes `progress`.
  func finish(_ progress: inout RunProgress) async throws(BatchError)
}

/// What prepares the chunks of a run, one at a time.
protocol ChunkWorker: Sendable {
  /// Ends what it is doing, and whatever it is asked later, with an error of code `interrupted`; from any
  /// thread.
  func interrupt()

  /// Lets go of what it holds.
  func close() async
}

/// What commits the chunks of a run, and keeps a log of them.
protocol ChunkWriter: Sendable {
  /// Whether another program says when the log is started anew.
  var leavesLogToLitestream: Bool { get }

  /// Ends what it is doing with an error of code `interrupted`, from any thread.
  func interrupt()

  /// Empties the log, unless somebody else reads from it or writes.
  ///
  /// - Returns: How long it still is, in bytes.
  func emptyLog() async throws(BatchError) -> Int
}

/// What a worker hands over: the first positions of its chunk, at least one, and what they hold.
struct PreparedChunk<Content: Sendable>: Sendable {
  let content: Content
  /// How many positions were reached.
  let count: Int
  /// How many bytes of values wait to be written.
  let byteCount: Int
}
