package import BatchIdentifiers

/// What a process has of a run to do.
package enum RunPositions {
  /// All of these, known from the beginning.
  case all([Range<Int>])
  /// Spans that are granted to it, and may be revoked, while the run goes on.
  case granted(any SpanSource)
}

/// This process's part of a run that has begun.
package protocol RunPart {
  associatedtype End: RunEnd

  var positions: RunPositions { get }
  /// The average size of the chunks done so far; nil if there are none.
  var meanChunkSize: Int? { get }
  /// How large the rows of a chunk may be expected to be.
  var chunkBytes: ChunkBytes { get }
  /// The number of workers in addition to those that are asked for.
  var spareWorkers: Int { get }
  /// When this process began.
  var start: ContinuousClock.Instant { get }
  /// Whether the previous process was killed before it recorded its end.
  var followsKill: Bool { get }
  /// The operator's requests.
  var requests: any RunRequests { get }
  /// What commits the chunks and has a log to be emptied; nil if each worker does, or nothing has.
  var writer: (any ChunkWriter)? { get }
  /// Whether each worker commits its own chunks.
  var workersCommit: Bool { get }
  /// Adds the store's own conditions, from what is already known; nil if there are none.
  var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? { get }
  var notifier: any RunNotifier { get }

  /// The state of the run.
  func summary() -> RunSummary

  /// Makes what does the chunks.
  func makeProcessor() async throws(BatchError) -> any ChunkProcessor

  /// Begins to look at the store, once the workers are made, before the first chunk.
  func attend() async

  /// Ends what ``makeProcessor()`` and ``attend()`` have begun, after the last chunk.
  func settle() async throws(BatchError)

  /// Notes that a chunk is committed, and records that if it is due.
  func committed(_ chunk: Range<Int>, _ commit: Commit) async throws(BatchError)

  /// Notes that the run is held.
  ///
  /// - Returns: Whether to report it.
  func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool

  /// Notes that the run is no longer held.
  func release() throws(BatchError)

  /// Notes that settings have changed.
  func tune(_ throttle: RunPolicy.Throttle)

  /// Notes that time passes.
  ///
  /// - Returns: Whether a wait that has begun or ended is to be reported at once.
  func pass() throws(BatchError) -> Bool

  /// Whether nothing was reported for `interval`; if so, counts this moment as a report.
  func shouldTell(every interval: Duration) -> Bool

  /// The messages of the work's own programs since the last call.
  func takeMessages() -> [String]

  /// Records how the chunks have ended: durable first, then written.
  ///
  /// - Parameters:
  ///   - ending: How.
  ///   - failure: The error that ended them.
  ///   - reason: Why they were stopped, if not by a request.
  /// - Throws: Errors of the record; what is committed stays.
  func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError)

  /// Notes an error outside the chunks, and records it if possible.
  func fail(_ error: BatchError)

  /// Lets go of everything that is not needed to report the end.
  func end() async -> End
}

/// A run whose rows are done, or that has ended for this process, which reports that.
package protocol RunEnd {
  var summary: RunSummary { get }
  /// Whom to tell; nil if nobody knows who that was.
  var notifier: (any RunNotifier)? { get }
  /// Whether this process reports it, rather than the one that did the last chunk.
  var isDeliveredHere: Bool { get }

  /// Writes the report that the work asks for.
  func report() throws(BatchError)

  /// Verifies that nobody has changed what is recorded while others were told.
  func verify() async throws(BatchError)

  /// Lets go of the run.
  ///
  /// - Parameter isDelivered: Whether whoever asked for the run knows of its end.
  func leave(isDelivered: Bool) async

  /// Records that whoever asked for the run knows of its end: the last write.
  func acknowledge() async throws(BatchError)
}
