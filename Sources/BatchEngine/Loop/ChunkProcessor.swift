package import BatchIdentifiers

/// What a run does with a chunk: prepared by a worker, then committed by the one that writes.
///
/// The engine (``RunLoop`` and what it is made of) knows no more of either than is said here.
package protocol ChunkProcessor: Sendable {
  /// What prepares chunks, each on a thread of its own.
  associatedtype Worker: ChunkWorker
  /// What crosses from the worker to the writer.
  associatedtype Prepared: Sendable

  /// Whether chunks must be committed in the order of their positions.
  var inOrder: Bool { get }

  /// How long somebody else's code has for a chunk; nil if a chunk is prepared without any.
  var patience: Duration? { get }

  /// The first positions of what no chunk is cut within, ascending; none if chunks may end anywhere.
  ///
  /// Where a chunk is too large to be held, ``prepare(_:_:in:)`` ends it at one of them.
  var units: [Int] { get }

  /// Reads and computes what the chunk needs, in a background context: of its first positions, as
  /// many as are to be held at once.
  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
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

  /// Which identifiers were passed over, by the store that keeps the ledger.
  ///
  /// - Parameter last: The piece before; nil for the first ones.
  /// - Returns: The pieces that follow, as many as are held at once; nil if there are none left, or the file
  ///   is the ledger.
  /// - Throws: What the store says.
  func passedOver(after last: Int?) async throws(BatchError) -> [PassedOverRecord.Piece]?

  /// Puts the result of a completed run into place, and completes `progress`.
  func finish(_ progress: inout RunProgress) async throws(BatchError)
}

extension ChunkProcessor {
  package var units: [Int] { [] }

  package func passedOver(
    after last: Int?
  ) async throws(BatchError) -> [PassedOverRecord.Piece]? { nil }
}

/// What prepares the chunks of a run, one at a time.
package protocol ChunkWorker: Sendable {
  /// Ends what it is doing, and whatever it is asked later, with an error of code `interrupted`; from any
  /// thread.
  func interrupt()

  /// Lets go of what it holds.
  func close() async
}

/// What commits the chunks of a run, and keeps a log of them.
package protocol ChunkWriter: Sendable {
  /// Who may keep the log from being emptied, and what there is to do about it.
  var logRemedy: String { get }

  /// Ends what it is doing with an error of code `interrupted`, from any thread.
  func interrupt()

  /// Empties the log, unless somebody else reads from it or writes.
  ///
  /// - Returns: How long it still is, in bytes.
  func emptyLog() async throws(BatchError) -> Int
}

/// One of the times that a chunk is prepared.
package struct Attempt<Content: Sendable>: Sendable {
  /// What the attempt before has left, if it was postponed.
  package let earlier: Content?
  /// Whether nothing may be postponed any more.
  package let isLast: Bool

  package init(after earlier: Content? = nil, isLast: Bool = true) {
    self.earlier = earlier
    self.isLast = isLast
  }
}

/// What a worker hands over: the first positions of its chunk, at least one, and what they hold.
package struct PreparedChunk<Content: Sendable>: Sendable {
  package let content: Content
  /// Why some of it cannot be done now; the rest is kept, and the chunk is prepared again.
  package let postponement: BatchError?
  /// How many positions were reached.
  package let count: Int
  /// How many bytes of values wait to be written.
  package let byteCount: Int

  package init(content: Content, count: Int, byteCount: Int, postponement: BatchError? = nil) {
    self.content = content
    self.postponement = postponement
    self.count = count
    self.byteCount = byteCount
  }
}
