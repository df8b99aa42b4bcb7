#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

/// A rehearsal of a job's run: which rows stand for all, and what was measured with them.
package final class PostgresRehearsal: Sendable {
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

  /// What the chunks say about all rows.
  ///
  /// - Parameters:
  ///   - done: The number of rows that were done.
  ///   - job: The job, with the settings that hold a run back.
  ///   - session: The session, in no transaction.
  /// - Returns: What was measured and extrapolated.
  package func sample(
    after done: Int,
    pacing job: Job,
    in session: PostgresSession
  ) -> RehearsalSample {
    let state = state.withLock { $0 }
    let time = state.start.duration(to: .now)
    let now = try? state.plan?.loggedBytes(in: session)
    let logged = state.log.flatMap { before in now.map { $0 - before } }
    var sample = RehearsalSample()
    (sample.selected, sample.places) = (state.selected, state.sample?.parts.count ?? 0)
    let chunks = state.chunks
    if let chunks, chunks.chunks > 0 {
      let seconds = chunks.times.changing / .seconds(1) / Double(chunks.chunks)
      sample.secondsPerChunk = (seconds * 1e6).rounded() / 1e6
      sample.triggers = chunks.triggers
      sample.walBytes = logged.map { Int($0) }
    }
    guard let plan = state.plan, done > 0 else { return sample }
    let all = Double(state.selected) / Double(done)
    sample.estimatedWALBytes = sample.walBytes.map { Int(Double($0) * all) }
    guard isEnough(done, of: state.selected, chunks?.chunks) else { return sample }
    let estimate = plan.estimate(
      of: state.selected,
      after: done,
      in: time,
      chunks,
      inChunksOf: chunkSize,
      logging: logged ?? 0
    ).adding(state.selecting / .seconds(1))
    let paced = job.paced(estimate, matches: state.selected).estimate
    sample.estimatedSeconds = (paced?.seconds).map { ($0 * 1000).rounded() / 1000 }
    return sample
  }

  /// Whether rows stand for all: what a chunk takes beside its rows would count for too much if it
  /// had few.
  private func isEnough(_ done: Int, of selected: Int, _ chunks: Int?) -> Bool {
    done == selected || done / max(1, chunks ?? 1) >= min(chunkSize, 100)
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
