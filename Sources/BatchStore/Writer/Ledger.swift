package import BatchIdentifiers

/// The record of done chunks inside the store.
///
/// Each chunk's row is written in the chunk's own transaction, so that data and record are either
/// both there or both not: after SIGKILL, after a power failure, and in every copy of the file.
struct Ledger {
  let run: String
  var done: DoneRanges
  /// The failed identifiers that chunks are of; nil if chunks are of positions that are not done.
  var retried: RetriedIdentifiers?

  /// Makes the ledger's tables where they are missing.
  static func createTables(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_run (
        run TEXT PRIMARY KEY, job TEXT NOT NULL, total INTEGER NOT NULL, started_at TEXT NOT NULL
      ) WITHOUT ROWID
      """
    )
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
  }

  /// Enters a new run, with nothing done.
  ///
  /// Finished runs of the same job go; an unfinished one stays, since its checkpoint may have been
  /// set aside to be resumed later.
  static func begin(_ run: RunDescription, in connection: Connection) throws(BatchError) {
    try removeFinished(ofJob: run.job, in: connection)
    try removeLeftovers(in: connection)
    try connection.execute(
      "INSERT INTO _batch_run (run, job, total, started_at) VALUES (?, ?, ?, ?)",
      .text(run.identifier),
      .text(run.job),
      .integer(Int64(run.total)),
      .text(run.startedAt)
    )
  }

  /// Removes the finished runs of a job and some others.
  ///
  /// - Returns: How many there were.
  static func remove(
    ofJob job: String,
    and runs: [String],
    but kept: String?,
    in connection: Connection
  ) throws(BatchError) -> Int {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_run'"
    guard try connection.value(table) != nil else { return 0 }
    // A run that an earlier version began has no such table.
    try createFailureTable(in: connection)
    var count = try removeFinished(ofJob: job, but: kept, in: connection)
    for run in runs where run != kept {
      try connection.execute("DELETE FROM _batch_run WHERE run = ?", .text(run))
      count += connection.changes
    }
    try removeLeftovers(in: connection)
    return count
  }

  @discardableResult
  private static func removeFinished(
    ofJob job: String,
    but kept: String? = nil,
    in connection: Connection
  ) throws(BatchError) -> Int {
    try connection.execute(
      """
      DELETE FROM _batch_run WHERE job = ? AND run IS NOT ? AND total = (
        SELECT coalesce(sum(next - first), 0) FROM _batch_ledger WHERE run = _batch_run.run)
      """,
      .text(job),
      kept.map { .text($0) } ?? .null
    )
    return connection.changes
  }

  /// Removes what is left of runs that are removed.
  private static func removeLeftovers(in connection: Connection) throws(BatchError) {
    for table in ["_batch_ledger", "_batch_failure"] {
      try connection.execute(
        "DELETE FROM \(table) WHERE run NOT IN (SELECT run FROM _batch_run)"
      )
    }
  }

  /// The ledger of a run as the store has it, or nil if the store knows no such run.
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
      remedy: "it was changed by hand; run with --fresh to begin anew"
    )
  }

  /// Writes something that changes nothing, for the sake of the commit.
  func touch(in connection: Connection) throws(BatchError) {
    try connection.execute("UPDATE _batch_run SET total = total WHERE run = ?", .text(run))
  }

  /// Enters a done chunk, inside the transaction that did it and after what failed of it.
  ///
  /// - Returns: The ledger as it is once that transaction is committed.
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

  /// Writes a row in place of the one that begins where it does.
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

/// The ledger of a run whose chunks are committed by contexts.
package struct ContextLedger: Sendable {
  private let run: String

  /// The ledger of a run that the store knows.
  package init(ofRun run: String) {
    self.run = run
  }

  /// Enters a done chunk, inside the transaction that did it.
  ///
  /// - Throws: `BatchError` with code `damagedFile` if the store knows no such run any more.
  /// - Complexity: O(*n*) in the ranges that are done: several contexts enter in turn, and what is
  ///   done stands in the store alone.
  package func enter(
    _ positions: Range<Int>,
    _ outcomes: Outcomes,
    in connection: Connection
  ) throws(BatchError) {
    guard let ledger = try Ledger(of: run, in: connection) else { throw Ledger.damaged(run) }
    _ = try ledger.entering(
      DoneRanges.Row(positions, outcomes: outcomes, chunks: 1),
      in: connection
    )
  }
}

/// What the store remembers of a run.
package struct RunDescription: Sendable {
  /// The run's UUID.
  package let identifier: String
  /// The job's name.
  package let job: String
  /// How many identifiers it selected.
  package let total: Int
  /// When, as an ISO 8601 timestamp in UTC.
  package let startedAt: String

  package init(identifier: String, job: String, total: Int, startedAt: String) {
    self.identifier = identifier
    self.job = job
    self.total = total
    self.startedAt = startedAt
  }
}
