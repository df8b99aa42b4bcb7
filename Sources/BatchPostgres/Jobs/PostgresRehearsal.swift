#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

/// A rehearsal of a job's run: which rows stand for all, and what was measured with them.
package final class PostgresRehearsal: Sendable {
  /// What was measured, and what that means for all rows.
  package struct Measured: Sendable {
    /// The number of identifiers that a run would have.
    package let selected: Int
    /// How many places of the list the rehearsed rows come from.
    package let places: Int
    /// The mean time of a chunk, without its COMMIT; nil if no rows are written.
    package let secondsPerChunk: Double?
    /// How much the server has written to its log meanwhile, for whomever; nil if nothing is known.
    package let loggedBytes: Int?
    /// How long the chunks of all rows take, with the selection; nil if too few rows were done.
    package let estimate: TimeEstimate?
  }

  private struct State {
    var sample: ListSample?
    var selected = 0
    var selecting = Duration.zero
    var plan: PostgresPlan?
    var chunks: ChunkRehearsal?
    var start = ContinuousClock.now
    var log: Double?
    var notes: [String] = []
  }

  private let rows: Int?
  private let samples: Int
  private let chunkSize: Int
  private let state = Lock(State())

  /// - Parameters:
  ///   - rows: How many rows to rehearse, out of all parts of the list; nil for all.
  ///   - samples: How many rows to show per column, and of the removed ones.
  ///   - chunkSize: The number of identifiers in the first chunk.
  package init(rows: Int?, showing samples: Int, inChunksOf chunkSize: Int) {
    (self.rows, self.samples, self.chunkSize) = (rows, samples, chunkSize)
  }

  /// Takes the identifiers to rehearse with.
  package func take(
    from list: PackedIdentifiers,
    selectedIn time: Duration
  ) throws(BatchError) -> PackedIdentifiers {
    let sample = try ListSample(of: list, rows: rows, inChunksOf: chunkSize)
    state.withLock { state in
      (state.sample, state.selected, state.selecting) = (sample, list.count, time)
    }
    return sample.list
  }

  /// The positions of the parts of the list, which no chunk crosses.
  package var parts: [Range<Int>] { state.withLock { $0.sample?.parts ?? [] } }

  /// Notes what the rows are measured against, before the first chunk.
  package func begin(_ plan: PostgresPlan, in session: PostgresSession) throws(BatchError) {
    let options = TransactionOptions(isReadOnly: true, searchPath: plan.query.path)
    let warnings = try session.transaction(options) { () throws(BatchError) in
      try plan.warnings(in: session)
    }
    let log = try? plan.loggedBytes(in: session)
    state.withLock { state in
      state.notes = plan.notes + plan.warnings + warnings
      (state.plan, state.log, state.start) = (plan, log, .now)
    }
  }

  /// The processor of the chunks, each of which is rolled back.
  package func processor(
    of plan: PostgresPlan,
    run: String,
    onFailure policy: FailurePolicy,
    in session: PostgresSession,
    by connect: @escaping PostgresConnection.Connecting
  ) throws(BatchError) -> any ChunkProcessor {
    guard let sample = state.withLock({ $0.sample }) else {
      preconditionFailure("nothing was selected")
    }
    let (archive, undo) = (plan.newArchive, plan.undo)
    let chunks = ChunkRehearsal(
      of: sample.list,
      selectedBy: plan.query,
      showing: samples,
      timingTriggers: plan.firesTriggers
    ) { session throws(BatchError) in
      try archive?.create(in: session)
      try undo?.create(in: session)
    }
    state.withLock { $0.chunks = chunks }
    let spans = try SampledSpans(
      of: sample,
      key: plan.key,
      in: plan.table,
      session
    )
    return try plan.withArchive(in: session)
      .processor(of: spans, .rehearsed(chunks), run: run, onFailure: policy, by: connect)
  }

  /// What the chunks have done; nil for an export.
  package var chunks: ChunkRehearsal? { state.withLock { $0.chunks } }

  /// What should be known about the job, in words.
  package var notes: [String] { state.withLock { $0.notes } }

  /// What the last chunk makes known; `done` is the number of rows that were done.
  package func end(after done: Int, in session: PostgresSession) -> Measured {
    let state = state.withLock { $0 }
    let time = state.start.duration(to: .now)
    let now = try? state.plan?.loggedBytes(in: session)
    let logged = state.log.flatMap { before in now.map { $0 - before } }
    let chunks = state.chunks
    let estimate =
      isEnough(done, of: state.selected, chunks?.chunks)
      ? state.plan?.estimate(
        of: state.selected,
        after: done,
        in: time,
        chunks,
        inChunksOf: chunkSize,
        logging: logged ?? 0
      ) : nil
    return Measured(
      selected: state.selected,
      places: state.sample?.parts.count ?? 0,
      secondsPerChunk: chunks.flatMap { chunks in
        chunks.chunks > 0 ? chunks.times.changing / .seconds(1) / Double(chunks.chunks) : nil
      },
      loggedBytes: chunks == nil ? nil : logged.map { Int($0) },
      estimate: estimate?.adding(state.selecting / .seconds(1))
    )
  }

  /// Whether rows stand for all: what a chunk takes beside its rows would count for too much if it
  /// had few.
  private func isEnough(_ done: Int, of selected: Int, _ chunks: Int?) -> Bool {
    done > 0 && (done == selected || done / max(1, chunks ?? 1) >= min(chunkSize, 100))
  }
}

extension PostgresPlan {
  fileprivate var firesTriggers: Bool { !firingTriggers.isEmpty || !metForeignKeys.isEmpty }

  /// The plan with the archive that a run would create first, as it would be.
  fileprivate func withArchive(in session: PostgresSession) throws(BatchError) -> PostgresPlan {
    guard case .archiving(var change, let archive) = work, let name = job.archive else {
      return self
    }
    try session.begin(TransactionOptions(idleTimeout: .seconds(10)))
    defer { session.rollBack() }
    try archive.create(in: session)
    let made = try PostgresChange.Archive.table(named: name, for: table, in: session)
    change.action = .delete(archive: try PostgresChange.Archive(made, for: table))
    var plan = self
    plan.work = .change(change)
    return plan
  }

  /// Extrapolates how long the chunks of a run take.
  ///
  /// - Parameters:
  ///   - count: The number of all rows.
  ///   - done: The number of rehearsed rows.
  ///   - time: How long these took.
  ///   - chunks: Their chunks; nil for an export.
  ///   - size: The number of rows in a chunk of the run.
  ///   - logged: How much the server has written to its log meanwhile.
  /// - Returns: The estimate, without the selection.
  fileprivate func estimate(
    of count: Int,
    after done: Int,
    in time: Duration,
    _ chunks: ChunkRehearsal?,
    inChunksOf size: Int,
    logging logged: Double
  ) -> TimeEstimate {
    let rows = Double(count) / Double(done)
    guard let chunks else {
      return TimeEstimate(rows * (time / .seconds(1)), withinFactor: 2, besideChunks: 0)
    }
    let (changing, looking) = chunks.times
    let seconds = (changing / .seconds(1) + logged * Self.secondsPerLoggedByte) / Double(done)
    let estimate = estimate(of: count, taking: seconds, inChunksOf: size)
    // While chunks are rolled back, one after another, programs compute the next ones in parallel.
    guard case .transform = work else { return estimate }
    return estimate.adding(rows * max(0, (time - changing - looking) / .seconds(1)))
  }
}
#endif
