package import BatchIdentifiers

/// The positions that a process works on.
package enum RunPositions {
  /// All of these, known at the start.
  case all([Range<Int>])
  /// Spans that are granted during the run, and may be revoked.
  case granted(any SpanSource)
}

/// This process's part of a run.
package protocol RunPart {
  associatedtype End: RunEnd

  var positions: RunPositions { get }
  /// The average size of the chunks done so far; nil if there are none.
  var meanChunkSize: Int? { get }
  /// The expected size of the rows of a chunk.
  var chunkBytes: ChunkBytes { get }
  /// The number of workers in addition to those requested.
  var spareWorkers: Int { get }
  /// When this process began.
  var start: ContinuousClock.Instant { get }
  /// Whether the previous process was killed before it recorded its end.
  var followsKill: Bool { get }
  var requests: any RunRequests { get }
  /// Commits the chunks and empties its log; nil if each worker commits, or if there is no log.
  var writer: (any ChunkWriter)? { get }
  var workersCommit: Bool { get }
  /// Adds the store's own conditions to those of the throttle; nil if there are none.
  var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? { get }
  var notifier: any RunNotifier { get }

  func summary() -> RunSummary

  /// The plan that too few users have approved; nil if the chunks may begin.
  func unapprovedPlan() async throws(BatchError) -> PlannedRun?

  /// Whether ``positions`` are only those of the canary, since the trial is not over.
  var isTrying: Bool { get }

  /// Decides whether the trial is over, once the canary is done; then, the positions are all others.
  ///
  /// - Parameter asked: The requests of operators.
  /// - Returns: What the run waits for; nil if the trial is over.
  /// - Throws: `BatchError` of code `canaryFailed` if the run must not go on.
  func canaryGate(_ asked: RunControl) async throws(BatchError) -> RunGate?

  func makeProcessor() async throws(BatchError) -> any ChunkProcessor

  /// Begins to observe the store, after the workers are made and before the first chunk.
  func attend() async

  /// Ends everything begun by ``makeProcessor()`` and ``attend()``, after the last chunk.
  func settle() async throws(BatchError)

  /// Counts a committed chunk, and records progress if a record is due.
  func committed(_ chunk: Range<Int>, _ commit: Commit) async throws(BatchError)

  /// Notes that there is nothing to do from a position on.
  func end(at position: Int)

  /// Registers a hold; returns whether to report it.
  func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool

  func release() throws(BatchError)

  /// Notes that settings have changed.
  func tune(_ throttle: RunPolicy.Throttle)

  /// What follows the last chunk; nil for nothing, or if it is done.
  func makeSpaceReturn() async -> (any SpaceReturn)?

  /// Records that space is being given back, or what came of it.
  func note(_ space: ReturnedSpace) async

  /// Notes what people have asked of this process.
  func note(_ actions: [OperatorAction])

  /// Notes that time passes, and the chunk that takes unusually long, if one does.
  ///
  /// - Returns: Whether a wait that has begun or ended is to be reported at once.
  func pass(_ stalled: StalledChunk?) throws(BatchError) -> Bool

  /// Whether nothing was reported for `interval`; if so, a report is assumed to follow.
  func shouldTell(every interval: Duration) -> Bool

  /// The messages of the job's programs since the last call.
  func takeMessages() -> [String]

  /// Records the end of the chunks: first makes them durable, then writes the record.
  ///
  /// - Parameters:
  ///   - ending: How the chunks ended.
  ///   - failure: The error that ended them.
  ///   - reason: Why they were stopped, if not by request.
  /// - Throws: An error of the record; committed chunks remain.
  func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError)

  /// Records an error outside the chunks, if possible.
  func fail(_ error: BatchError)

  /// Releases everything that is not needed to report the end.
  func end() async -> End
}

extension RunPart {
  // For a record to which those who ask add what they ask, and for work without such an end or with
  // a known number of rows.

  package func end(at position: Int) {}

  package func note(_ actions: [OperatorAction]) {}

  package func makeSpaceReturn() async -> (any SpaceReturn)? { nil }

  package func note(_ space: ReturnedSpace) async {}
}

/// A run that is finished, or that has ended for this process, and must be reported.
package protocol RunEnd {
  var summary: RunSummary { get }
  /// Whom to notify of the end; nil if that is not known.
  var notifier: (any RunNotifier)? { get }
  /// Whether this process reports the end, rather than the one that did the last chunk.
  var isDeliveredHere: Bool { get }

  /// Writes the report that the job requests.
  func report() async throws(BatchError)

  /// Verifies that nothing in the record has changed while others were notified.
  func verify() async throws(BatchError)

  /// Releases the run; `isDelivered` says whether the caller has been informed of its end.
  func leave(isDelivered: Bool) async

  /// Records that the caller knows the end of the run; this is the last write.
  func acknowledge() async throws(BatchError)
}
