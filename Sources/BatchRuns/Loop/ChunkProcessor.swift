package import BatchIdentifiers

/// The work of a run on a chunk: a worker prepares it, the writer commits it.
///
/// The engine (``RunLoop`` and its parts) knows nothing else about either of them.
package protocol ChunkProcessor<Worker>: Sendable {
  /// Prepares chunks, each on its own thread.
  associatedtype Worker: ChunkWorker
  /// The result that a worker passes to the writer.
  associatedtype Prepared: Sendable

  var inOrder: Bool { get }

  /// The time limit for external code per chunk; nil if no such code is called.
  var handlerTimeLimit: Duration? { get }

  /// The first positions of units that chunks must not split, ascending; empty if there are none.
  ///
  /// If a chunk is too large to hold, ``prepare(_:_:in:)`` ends it at one of them.
  var units: [Int] { get }

  /// The number of identifiers per chunk; nil to follow the policy.
  var chunkSize: Int? { get }

  /// The maximum number of workers that can prepare chunks at once; nil for no limit.
  var workerLimit: Int? { get }

  /// Makes a worker, whose thread gets the name `label`.
  func makeWorker(_ label: String) -> Worker

  /// Reads and computes the chunk, as many of its first positions as may be held at once; none of
  /// them if the work has ended before.
  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in context: Worker
  ) async throws(BatchError) -> PreparedChunk<Prepared>

  /// Makes the whole effect of the chunk permanent, or none of it.
  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit

  /// Whether a worker was abandoned because external code never returned; it cannot be closed.
  var hasLostWorkers: Bool { get }
}

extension ChunkProcessor {
  package var units: [Int] { [] }

  package var chunkSize: Int? { nil }

  package var workerLimit: Int? { nil }

  package var hasLostWorkers: Bool { false }
}

package protocol ChunkWorker: Sendable {
  /// Makes the current call, and all later ones, fail with the code `interrupted`; from any thread.
  func interrupt()

  func close() async
}

/// Commits the chunks of a run, and writes a log of them.
package protocol ChunkWriter: Sendable {
  /// What may keep the log from being emptied, and how to fix it.
  var logRemedy: String { get }

  /// Makes the current call fail with the code `interrupted`; from any thread.
  func interrupt()

  /// Empties the log, unless another connection uses it; returns its remaining length in bytes.
  func emptyLog() async throws(BatchError) -> Int
}

package struct Attempt<Content: Sendable>: Sendable {
  /// The result of the previous try, if some of the chunk was postponed.
  package let earlier: Content?
  /// Whether nothing may be postponed any more.
  package let isLast: Bool

  package init(after earlier: Content? = nil, isLast: Bool = true) {
    self.earlier = earlier
    self.isLast = isLast
  }
}

/// The result of preparing the first positions of a chunk.
package struct PreparedChunk<Content: Sendable>: Sendable {
  package let content: Content
  /// Why some of the chunk cannot be done now; the rest is kept, and the chunk is prepared again.
  package let postponement: BatchError?
  /// The number of positions that were prepared.
  package let count: Int
  /// The number of bytes held until they are written.
  package let byteCount: Int

  package init(content: Content, count: Int, byteCount: Int, postponement: BatchError? = nil) {
    self.content = content
    self.postponement = postponement
    self.count = count
    self.byteCount = byteCount
  }
}
