package import BatchRuns
package import BatchIdentifiers

/// A run in the store: its row in `_batch_run`, and the sum of its ledger.
package struct StoredRun: Sendable {
  package enum State: Sendable {
    case unfinished
    /// All identifiers are done, but the caller may not know that.
    case finished
    /// All identifiers are done, and the caller knows that.
    case acknowledged
    case setAside
  }

  package let run: String
  /// The caller's ID of the work, if any.
  package let runID: String?
  package let total: Int
  /// The time of the selection, as an ISO 8601 timestamp in UTC.
  package let startedAt: String
  package let checkpoint: String
  /// The time when all were done, as an ISO 8601 timestamp in UTC.
  package let endedAt: String?
  /// How long processes have worked on the run, to a second.
  package let elapsedSeconds: Double
  package let process: Int32?
  package let done: DoneRanges
  private let recordedState: RecordedState?

  private enum RecordedState: String {
    case acknowledged, setAside
  }

  package var state: State {
    switch recordedState {
    case .acknowledged?: return .acknowledged
    case .setAside?: return .setAside
    case nil: return done.count < total ? .unfinished : .finished
    }
  }
}

extension StoredRun {
  /// Whether the run has completed the work of an ID that is still remembered: a run that ended at
  /// or after `oldestEnd`, or at any time if that is nil.
  func isRemembered(since oldestEnd: String?) -> Bool {
    runID != nil && done.count == total && (oldestEnd ?? "") <= (endedAt ?? "")
  }
}

// MARK: The table

extension StoredRun {
  private static let columns = [
    "run", "job", "total", "started_at", "run_id", "checkpoint", "owner", "state", "ended_at",
    "elapsed_seconds",
  ]

  /// - Throws: `BatchError` of code `unsupportedVersion` for a table of an earlier version.
  static func createTable(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_run (
        run TEXT PRIMARY KEY, job TEXT NOT NULL, total INTEGER NOT NULL, started_at TEXT NOT NULL,
        run_id TEXT, checkpoint TEXT NOT NULL, owner TEXT, state TEXT, ended_at TEXT, elapsed_seconds REAL
      ) WITHOUT ROWID
      """
    )
    _ = try exists(in: connection)
  }

  private static func exists(in connection: Connection) throws(BatchError) -> Bool {
    try connection.hasOwnTable("_batch_run", with: columns)
  }

  package static func all(
    ofJob job: String,
    in connection: Connection
  ) throws(BatchError) -> [StoredRun] {
    guard try exists(in: connection) else { return [] }
    let rows = try connection.prepare(
      """
      SELECT run, total, started_at, run_id, checkpoint, owner, state, ended_at, elapsed_seconds
      FROM _batch_run WHERE job = ? ORDER BY started_at, run
      """
    )
    try rows.bind(.text(job), at: 1)
    var runs: [StoredRun] = []
    while try rows.step() {
      func text(_ index: Int) -> String? { rows.isNull(at: index) ? nil : rows.text(at: index) }
      let run = rows.text(at: 0)
      guard let ledger = try Ledger(of: run, in: connection) else { continue }
      runs.append(
        StoredRun(
          run: run,
          runID: text(3),
          total: Int(rows.integer(at: 1)),
          startedAt: rows.text(at: 2),
          checkpoint: rows.text(at: 4),
          endedAt: text(7),
          elapsedSeconds: rows.value(at: 8).seconds,
          process: text(5).flatMap(RunOwner.livingProcess),
          done: ledger.done,
          recordedState: text(6).flatMap(RecordedState.init)
        )
      )
    }
    return runs
  }
}

extension SQLValue {
  fileprivate var seconds: Double {
    if case .real(let seconds) = self { seconds } else { 0 }
  }
}

extension StoredRun {
  package static func jobs(in connection: Connection) throws(BatchError) -> [String] {
    guard try exists(in: connection) else { return [] }
    return try connection.texts("SELECT DISTINCT job FROM _batch_run ORDER BY job")
  }
}

extension Store {
  package func runs(ofJob job: String) async throws(BatchError) -> [StoredRun] {
    try await connection(label: "batch.runs").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try StoredRun.all(ofJob: job, in: connection)
      }
    }
  }
}

// MARK: The life of a run

extension StoredRun {
  /// Enters a new run with nothing done, and removes the remains of the job's finished runs.
  ///
  /// The store decides, since checkpoints can be lost or copied. Another run prevents this one if
  /// it is alive or partly done.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` or `unfinishedRun`; then nothing is written.
  static func enter(
    _ description: RunDescription,
    by owner: RunOwner,
    in connection: Connection
  ) throws(BatchError) {
    for other in try all(ofJob: description.job, in: connection) {
      let isSettled = description.settledRuns.contains(other.run)
      if other.process != nil { throw other.isAlive }
      let isRemembered = other.isRemembered(since: description.oldestEnd)
      if isRemembered, let id = description.runID, other.runID?.hasSameBytes(as: id) == true {
        throw other.isDoneMeanwhile
      }
      switch other.state {
      case .acknowledged: break
      case _ where isSettled: break
      case .setAside: continue
      case .finished:
        // Nothing is left to do, but the caller did not receive the result or has lost the
        // checkpoint.
        try acknowledge(other.run, in: connection)
        continue
      case .unfinished where other.done.rows.isEmpty && !description.setsOthersAside: break
      case .unfinished:
        guard description.setsOthersAside else { throw other.isInTheWay }
        try connection.execute(
          "UPDATE _batch_run SET state = 'setAside' WHERE run = ?",
          .text(other.run)
        )
        continue
      }
      // The ID of finished work is kept longer than the run.
      if isRemembered {
        try acknowledge(other.run, in: connection)
        try connection.execute("DELETE FROM _batch_failure WHERE run = ?", .text(other.run))
      } else if !isSettled || other.done.count == other.total {
        try connection.execute("DELETE FROM _batch_run WHERE run = ?", .text(other.run))
      }
    }
    try Ledger.removeLeftovers(in: connection)
    try connection.execute(
      """
      INSERT INTO _batch_run
        (run, job, total, started_at, run_id, checkpoint, owner, elapsed_seconds)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .text(description.identifier),
      .text(description.job),
      .integer(Int64(description.total)),
      .text(description.startedAt),
      description.runID.map { .text($0) } ?? .null,
      .text(description.checkpoint),
      .text(owner.text),
      .real(description.selectionSeconds)
    )
    _ = try StoredUndo.removeExpired(
      ofJob: description.job,
      at: description.startedAt,
      in: connection
    )
    try description.undo?.enter(in: connection)
    if let undone = description.undone {
      try StoredUndo.noteUndo(of: undone, in: connection)
    }
  }

  package var isInTheWay: BatchError {
    let name = runID.map { "run \($0.quotedForMessage) (\(run))" } ?? "run \(run)"
    let (kind, count) =
      done.count < total
      ? ("unfinished", "\(done.count.grouped) of \(total.grouped)")
      : ("finished", "all \(total.grouped)")
    return BatchError(
      .unfinishedRun,
      "the database has the \(kind) \(name) of this job, with \(count) identifiers done, and the"
        + " checkpoint of that run is missing",
      at: checkpoint,
      advice: """
        restore the checkpoint to resume the run, or \(.beginAnew), which may repeat rows that \
        are done
        """
    )
  }

  /// Refuses a run that has ended although its ledger is incomplete.
  ///
  /// - Throws: `BatchError` of code `damagedFile`.
  package func refuseIfIncomplete() throws(BatchError) {
    if endedAt != nil, done.count < total { throw Ledger.damaged(run) }
  }

  /// The error if another process has done the work in the meantime.
  private var isDoneMeanwhile: BatchError {
    BatchError(
      .unfinishedRun,
      "run \((runID ?? "").quotedForMessage) of this job was done meanwhile (\(run))",
      at: checkpoint,
      advice: "\(.repetition) to see what came of it"
    )
  }

  package var isAlive: BatchError { .alreadyRunning(process ?? 0, run, checkpoint) }

  /// Takes over a run, unless a process works on it.
  ///
  /// - Returns: The seconds that processes have worked on it.
  /// - Throws: `BatchError` of code `alreadyRunning`.
  static func claim(
    _ run: String,
    by owner: RunOwner,
    in connection: Connection
  ) throws(BatchError) -> Double {
    let statement = try connection.prepare(
      "SELECT owner, checkpoint, elapsed_seconds FROM _batch_run WHERE run = ?"
    )
    try statement.bind(.text(run), at: 1)
    guard try statement.step() else { return 0 }
    let elapsedSeconds = statement.value(at: 2).seconds
    if !statement.isNull(at: 0), statement.text(at: 0) != owner.text,
      let process = RunOwner.livingProcess(statement.text(at: 0))
    {
      throw .alreadyRunning(
        process,
        run,
        statement.text(at: 1)
      )
    }
    statement.reset()
    try connection.execute(
      "UPDATE _batch_run SET owner = ?, state = nullif(state, 'setAside') WHERE run = ?",
      .text(owner.text),
      .text(run)
    )
    return elapsedSeconds
  }

  /// How long processes have worked on a run; 0 if the store does not know it.
  static func elapsedSeconds(
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) -> Double {
    guard try exists(in: connection) else { return 0 }
    return try connection.value(
      "SELECT elapsed_seconds FROM _batch_run WHERE run = ?",
      .text(run)
    )?.seconds ?? 0
  }

  /// Records how long processes have worked on a run.
  static func note(
    _ elapsedSeconds: Double,
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      "UPDATE _batch_run SET elapsed_seconds = ? WHERE run = ?",
      .real(elapsedSeconds),
      .text(run)
    )
  }

  /// Releases a run, so that other processes may continue it while this one lives.
  static func release(
    _ run: String,
    by owner: RunOwner,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      "UPDATE _batch_run SET owner = NULL WHERE run = ? AND owner = ?",
      .text(run),
      .text(owner.text)
    )
  }

  static func isOwned(
    _ run: String,
    by owner: RunOwner,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let text = try connection.value("SELECT owner FROM _batch_run WHERE run = ?", .text(run))
    return text == .text(owner.text)
  }

  static func finish(
    _ run: String,
    after elapsedSeconds: Double,
    total: Int?,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      """
      UPDATE _batch_run SET ended_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), elapsed_seconds = ?,
        total = coalesce(?, total)
      WHERE run = ?
      """,
      .real(elapsedSeconds),
      total.map { .integer(Int64($0)) } ?? .null,
      .text(run)
    )
  }

  static func acknowledge(_ run: String, in connection: Connection) throws(BatchError) {
    try connection.execute(
      "UPDATE _batch_run SET state = 'acknowledged' WHERE run = ?",
      .text(run)
    )
  }
}

extension BatchError {
  fileprivate static func alreadyRunning(
    _ process: Int32,
    _ run: String,
    _ checkpoint: String
  ) -> BatchError {
    BatchError(
      .alreadyRunning,
      "run \(run) of this job is alive (process \(process))",
      at: checkpoint,
      remedy: "wait for it, or stop it: batch cancel, or SIGTERM"
    )
  }
}

package struct RunDescription: Sendable {
  package let identifier: String
  package var job: String
  package let total: Int
  /// The time of the selection, as an ISO 8601 timestamp in UTC.
  package let startedAt: String
  package var runID: String?
  package var checkpoint: String
  /// Other runs that do not prevent this one, whatever the store says: their checkpoints exist and
  /// are acknowledged or set aside.
  package var settledRuns: Set<String> = []
  /// Whether this run replaces unfinished ones.
  package var setsOthersAside = false
  /// How long its identifiers were selected.
  package var selectionSeconds = 0.0
  /// What to keep for undo; nil for nothing.
  package var undo: StoredUndo?
  package var undone: String?
  /// The earliest end of runs whose IDs are remembered.
  package var oldestEnd: String?

  package init(
    identifier: String,
    job: String,
    total: Int,
    startedAt: String,
    checkpoint: String = ""
  ) {
    self.identifier = identifier
    self.job = job
    self.total = total
    self.startedAt = startedAt
    self.checkpoint = checkpoint
  }
}
