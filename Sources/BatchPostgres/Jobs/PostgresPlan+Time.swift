#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform

extension PostgresPlan {
  /// The time to sync the log at a COMMIT, and to write the pages at a checkpoint, which depends on
  /// the disk.
  static let secondsPerLoggedByte = 8e-9
  /// The time before a run begins and after it has ended.
  private static let secondsOfStart = 0.4
  /// The time of a transaction without its rows: the round trip, the ledger, and the COMMIT.
  private static let secondsPerTransaction = 4e-3

  /// Tries chunks as a run does, rolls each back at once, and extrapolates, without the selection;
  /// nil if nothing can be tried, for example because a row is locked.
  ///
  /// Rolled-back changes stay in the table as dead rows, so only a small part of the rows is tried.
  /// A trigger, or a transform's program, may have other effects than writing rows, and a plan must
  /// have none.
  func estimate(of report: PlanReport, in session: PostgresSession) -> TimeEstimate? {
    let isKnown = newArchive == nil && job.action.kind != .transform
    guard isKnown, report.matches > 0, table.kind != .view || !job.action.writes,
      firingTriggers.isEmpty,
      cascades.isEmpty
    else { return nil }
    let size = min(
      report.firstChunk ?? job.policy.chunk.size,
      TimeEstimate.triedAtOnce,
      max(100, report.matches / 60)
    )
    guard let (seconds, secondsPerKey) = try? secondsPerRow(inChunksOf: size, in: session) else {
      return nil
    }
    return estimate(
      of: report.matches,
      taking: seconds,
      inChunksOf: report.firstChunk ?? job.policy.chunk.size
    ).adding(Double(report.matches) * secondsPerKey / 2)
  }

  /// Extrapolates from the time of a row, with its part of the log, without the selection.
  func estimate(of count: Int, taking seconds: Double, inChunksOf size: Int) -> TimeEstimate {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let workers = Double(isInOrder ? 1 : job.policy.workers ?? cores)
    let rows = Double(count)
    let target = job.policy.chunk.target.map { $0 / .seconds(1) / seconds } ?? 0
    let chunk = max(Double(size), target)
    let alone = rows * seconds + (rows / chunk + 1) * Self.secondsPerTransaction
    // How much several workers gain depends on the server.
    return TimeEstimate(
      seconds: Self.secondsOfStart + alone * (1 + 1 / workers) / 2,
      least: Self.secondsOfStart / 2 + alone / workers / 1.7,
      most: Self.secondsOfStart * 2 + alone * 1.7 * 1.3,
      besideChunks: Self.secondsOfStart
    )
  }

  static let longestQuery = Duration.seconds(3)

  /// The median time for a row of some chunks, and the time to select one.
  private func secondsPerRow(
    inChunksOf size: Int,
    in session: PostgresSession
  ) throws(BatchError) -> (row: Double, key: Double)? {
    let clock = ContinuousClock()
    let start = clock.now
    let reading = TransactionOptions(
      isReadOnly: true,
      statementTimeout: .seconds(3),
      searchPath: query.path
    )
    let list = try session.transaction(reading) { () throws(BatchError) in
      if let identifiers { return try identifiers.load().packed }
      return try query.first(10_000, in: session, store: database.derivedIdentity)
    }
    let secondsPerKey = start.duration(to: clock.now) / .seconds(1) / Double(max(list.count, 1))
    var positions = TimeEstimate.triedPositions(of: list.count, size)
    if table.query != nil { positions = Array(positions.prefix(2)) }
    let times = try positions.map { positions throws(BatchError) in
      try seconds(of: RowKeys(list, positions, key: key), in: session) / Double(positions.count)
    }
    let measured = (times.count > 1 ? times.dropFirst() : times[...]).sorted()
    return measured.isEmpty ? nil : (measured[measured.count / 2], secondsPerKey)
  }

  private func seconds(
    of keys: RowKeys,
    in session: PostgresSession
  ) throws(BatchError) -> Double {
    let clock = ContinuousClock()
    let limit = TimeEstimate.longestTrial
    if case .export(let export, _) = work {
      let start = clock.now
      // A query may compute all its rows for a chunk, and nobody waits for one that reads.
      _ = try export.lines(
        for: keys,
        within: table.query == nil ? limit : Self.longestQuery,
        halving: false,
        in: session
      )
      return start.duration(to: clock.now) / .seconds(1)
    }
    guard case .change(var change) = work else {
      throw BatchError(.invalidJob, "what the job does is not tried")
    }
    try session.begin(
      TransactionOptions(
        lockTimeout: .milliseconds(1),
        statementTimeout: limit,
        idleTimeout: .seconds(1),
        searchPath: change.path
      )
    )
    defer { session.rollBack() }
    if let undo = change.undo {
      change.undo = undo.renamed(UUID().uuidString)
      try change.undo?.create(in: session)
    }
    let logged = try loggedBytes(in: session)
    let start = clock.now
    let method: WritingMethod = change.leavesUnchanged || change.isOneByOne ? .listing : .counting
    _ = try change.write(to: keys, method, onFailure: .failChunk, in: session)
    let time = start.duration(to: clock.now) / .seconds(1)
    return time + (try loggedBytes(in: session) - logged) * Self.secondsPerLoggedByte
  }

  /// The number of bytes that the server has ever written to its log.
  func loggedBytes(in session: PostgresSession) throws(BatchError) -> Double {
    let position = "pg_catalog.pg_current_wal_insert_lsn()"
    let sql = "SELECT pg_catalog.pg_wal_lsn_diff(\(position), '0/0')::text"
    return try session.execute(sql).text(0, 0).flatMap { Double($0) } ?? 0
  }
}
#endif
