package import BatchIdentifiers

/// What a run does with a chunk: a worker prepares it, the writer commits it.
///
/// The engine (``RunLoop`` and its parts) knows nothing else about either.
package protocol ChunkProcessor<Worker>: Sendable {
  /// Prepares chunks, each on its own thread.
  associatedtype Worker: ChunkWorker
  /// What passes from the worker to the writer.
  associatedtype Prepared: Sendable

  /// Whether chunks must be committed in the order of their positions.
  var inOrder: Bool { get }

  /// The time limit of external code for a chunk; nil if none is called.
  var handlerTimeLimit: Duration? { get }

  /// The first positions of units that chunks must not split, ascending; empty if chunks may end
  /// anywhere.
  ///
  /// A chunk too large to hold ends at one of them in ``prepare(_:_:in:)``.
  var units: [Int] { get }

  /// The number of identifiers in a chunk; nil for what the policy says.
  var chunkSize: Int? { get }

  /// The most workers that can prepare chunks at once; nil for any number.
  var workerLimit: Int? { get }

  /// Makes a worker.
  ///
  /// - Parameter label: The name of its thread.
  /// - Returns: The worker.
  func makeWorker(_ label: String) -> Worker

  /// Reads and computes what the chunk needs, in a background context, for as many of its first
  /// positions as may be held at once.
  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in context: Worker
  ) async throws(BatchError) -> PreparedChunk<Prepared>

  /// Makes the chunk's effect permanent, all of it or nothing.
  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit

  /// Whether a worker is abandoned with external code that never returned, so that nobody can close it.
  var hasLostWorkers: Bool { get }
}

extension ChunkProcessor {
  package var units: [Int] { [] }

  package var chunkSize: Int? { nil }

  package var workerLimit: Int? { nil }

  package var hasLostWorkers: Bool { false }
}

/// Prepares the chunks of a run, one at a time.
package protocol ChunkWorker: Sendable {
  /// Ends the current call, and all later ones, with an error of code `interrupted`; from any
  /// thread.
  func interrupt()

  func close() async
}

/// Commits the chunks of a run, and writes a log of them.
package protocol ChunkWriter: Sendable {
  /// What may keep the log from being emptied, and what to do about it.
  var logRemedy: String { get }

  /// Ends the current call with an error of code `interrupted`, from any thread.
  func interrupt()

  /// Empties the log, unless another connection reads from it or writes.
  ///
  /// - Returns: Its remaining length in bytes.
  func emptyLog() async throws(BatchError) -> Int
}

/// One try to prepare a chunk.
package struct Attempt<Content: Sendable>: Sendable {
  /// What the previous try left, if it was postponed.
  package let earlier: Content?
  /// Whether nothing may be postponed any longer.
  package let isLast: Bool

  package init(after earlier: Content? = nil, isLast: Bool = true) {
    self.earlier = earlier
    self.isLast = isLast
  }
}

/// What a worker hands over: the first positions of its chunk, at least one, and their content.
package struct PreparedChunk<Content: Sendable>: Sendable {
  package let content: Content
  /// Why some of it cannot be done now; the rest is kept, and the chunk is prepared again.
  package let postponement: BatchError?
  /// The number of positions reached.
  package let count: Int
  /// The number of bytes waiting to be written.
  package let byteCount: Int

  package init(content: Content, count: Int, byteCount: Int, postponement: BatchError? = nil) {
    self.content = content
    self.postponement = postponement
    self.count = count
    self.byteCount = byteCount
  }
}
