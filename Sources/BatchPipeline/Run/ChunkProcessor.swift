import BatchIdentifiers
import BatchStore

/// What a run does with a chunk: prepared by a worker, then committed by the one that writes.
protocol ChunkProcessor: Sendable {
  /// What crosses from the worker to the writer.
  associatedtype Prepared: Sendable

  /// Whether chunks must be committed in the order of their positions.
  var inOrder: Bool { get }

  /// Reads and computes what the chunk needs, in a background context: of its first positions, as
  /// many as are to be held at once.
  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
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

/// What a worker hands over: the first positions of its chunk, at least one, and what they hold.
struct PreparedChunk<Content: Sendable>: Sendable {
  let content: Content
  /// How many positions were reached.
  let count: Int
  /// How many bytes of values wait to be written.
  let byteCount: Int
}
