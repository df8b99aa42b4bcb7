import BatchRuns
import BatchIdentifiers

/// The record of completed chunks in the store.
///
/// The row of a chunk is written in the chunk's own transaction, so data and record agree after
/// SIGKILL, after a power failure, and in every copy of the file.
struct Ledger {
  let run: String
  var done: DoneRanges
  /// The failed identifiers that chunks retry; nil if chunks process new positions.
  var retried: RetriedIdentifiers?

  static func createTables(in connection: Connection) throws(BatchError) {
    try StoredRun.createTable(in: connection)
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_ledger (
        run TEXT NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL,
        succeeded INTEGER NOT NULL, unchanged INTEGER NOT NULL, vanished INTEGER NOT NULL,
        no_longer_matching INTEGER NOT NULL, failed INTEGER NOT NULL, chunks INTEGER NOT NULL,
        PRIMARY KEY (run, first)
      ) WITHOUT ROWID
      """
    )
    try createFailureTable(in: connection)
    try createPassedOverTable(in: connection)
    try StoredList.createTable(in: connection)
  }

  /// Removes a job's finished runs except `kept`, and `runs` even if they are unfinished.
  ///
  /// Finished runs whose IDs are remembered stay if they ended at `oldestEnd` or later; nil keeps
  /// all. Returns the number of removed runs.
  static func remove(
    ofJob job: String,
    and runs: [String],
    but kept: String?,
    before oldestEnd: String?,
    in connection: Connection
  ) throws(BatchError) -> Int {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_run'"
    guard try connection.value(table) != nil else { return 0 }
    var count = 0
    for stored in try StoredRun.all(ofJob: job, in: connection) where stored.run != kept {
      switch stored.state {
      case _ where stored.process != nil: continue
      case _ where stored.isRemembered(since: oldestEnd): continue
      case _ where runs.contains(stored.run): break
      case .setAside, .acknowledged: break
      case .unfinished, .finished: continue
      }
      try connection.execute("DELETE FROM _batch_run WHERE run = ?", .text(stored.run))
      count += connection.changes
    }
    try removeLeftovers(in: connection)
    let now = try connection.value("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')")
    if case .text(let now) = now {
      _ = try StoredUndo.removeExpired(ofJob: job, at: now, in: connection)
    }
    return count
  }

  /// Removes what removed runs have left in other tables.
  static func removeLeftovers(in connection: Connection) throws(BatchError) {
    for table in ["_batch_ledger", "_batch_failure", "_batch_passed_over", "_batch_list"] {
      try connection.execute(
        "DELETE FROM \(table) WHERE run NOT IN (SELECT run FROM _batch_run)"
      )
    }
  }

  init(of run: String) {
    self.run = run
    done = DoneRanges()
  }

  /// Reads the ledger of a run; nil if the store does not know the run.
  init?(of run: String, in connection: Connection) throws(BatchError) {
    let tables = try connection.value(
      "SELECT count(*) FROM sqlite_schema WHERE name IN ('_batch_run', '_batch_ledger')"
    )
    guard tables == .integer(2),
      try connection.value("SELECT 1 FROM _batch_run WHERE run = ?", .text(run)) != nil
    else { return nil }
    let rows = try connection.prepare(
      """
      SELECT first, next, chunks, succeeded, unchanged, vanished, no_longer_matching, failed
      FROM _batch_ledger WHERE run = ? ORDER BY first
      """
    )
    try rows.bind(.text(run), at: 1)
    var read: [DoneRanges.Row] = []
    while try rows.step() {
      var outcomes = Outcomes()
      outcomes.succeeded = Int(rows.integer(at: 3))
      outcomes.unchanged = Int(rows.integer(at: 4))
      outcomes.vanished = Int(rows.integer(at: 5))
      outcomes.noLongerMatching = Int(rows.integer(at: 6))
      outcomes.failed = Int(rows.integer(at: 7))
      let (first, next) = (Int(rows.integer(at: 0)), Int(rows.integer(at: 1)))
      guard first < next else { throw Self.damaged(run) }
      read.append(
        DoneRanges.Row(first..<next, outcomes: outcomes, chunks: Int(rows.integer(at: 2)))
      )
    }
    guard let done = DoneRanges(read) else { throw Self.damaged(run) }
    self.run = run
    self.done = done
  }

  static func damaged(_ run: String) -> BatchError {
    BatchError(
      .damagedFile,
      "the ledger of run \(run) in table _batch_ledger contradicts itself",
      advice: "it was changed by hand; \(.beginAnew)"
    )
  }

  /// Enters a completed chunk, inside its transaction and after its failures.
  ///
  /// - Returns: The ledger after that transaction commits.
  func entering(
    _ row: DoneRanges.Row,
    in connection: Connection
  ) throws(BatchError) -> Ledger {
    if let retried {
      let places = row.first..<row.next
      return try replacingFailures(retried, at: places, with: row.outcomes, in: connection)
    }
    var copy = self
    let change = copy.done.insert(row)
    if let removed = change.removed {
      try connection.execute(
        "DELETE FROM _batch_ledger WHERE run = ? AND first = ?",
        .text(run),
        .integer(Int64(removed))
      )
    }
    try write(change.written, in: connection)
    return copy
  }

  /// Writes a row, replacing one with the same first position.
  func write(_ written: DoneRanges.Row, in connection: Connection) throws(BatchError) {
    try connection.execute(
      "INSERT OR REPLACE INTO _batch_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      .text(run),
      .integer(Int64(written.first)),
      .integer(Int64(written.next)),
      .integer(Int64(written.outcomes.succeeded)),
      .integer(Int64(written.outcomes.unchanged)),
      .integer(Int64(written.outcomes.vanished)),
      .integer(Int64(written.outcomes.noLongerMatching)),
      .integer(Int64(written.outcomes.failed)),
      .integer(Int64(written.chunks))
    )
  }
}
