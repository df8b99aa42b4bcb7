#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
import BatchPlatform
package import BatchRuns

/// Rehearses the chunks of a run: each is done as in the run, looked at, and rolled back.
package final class ChunkRehearsal: Sendable {
  /// What a run creates when it begins; each transaction creates it again.
  package typealias Preparation = @Sendable (PostgresSession) throws(BatchError) -> Void

  private let list: PackedIdentifiers
  private let reader: RowReader
  private let timesTriggers: Bool
  private let prepare: Preparation
  private let tally: Lock<RehearsalTally>

  /// - Parameters:
  ///   - list: The identifiers of the rehearsal.
  ///   - query: The query of the job.
  ///   - samples: How many rows to show per column, and of the removed ones.
  ///   - timesTriggers: Whether triggers or foreign keys are to be timed.
  ///   - prepare: Creates what the run would create.
  init(
    of list: PackedIdentifiers,
    selectedBy query: PostgresQuery,
    showing samples: Int,
    timingTriggers timesTriggers: Bool,
    _ prepare: @escaping Preparation
  ) {
    self.list = list
    reader = RowReader(
      table: query.table,
      key: query.key,
      columns: query.table.columns,
      condition: nil,
      parameters: PostgresParameters(),
      path: query.path,
      hasVersions: false
    )
    self.timesTriggers = timesTriggers
    self.prepare = prepare
    tally = Lock(RehearsalTally(of: query.table, key: query.key, samples: samples))
  }

  /// What a chunk changes.
  struct Subject {
    /// The positions of its identifiers in the list.
    let positions: Range<Int>
    /// The keys of its rows; nil if it inserts them, and they are only counted.
    let keys: RowKeys?
    /// The single statement that changes the rows; nil if there is none.
    let statement: PostgresStatement?

    init(_ positions: Range<Int>, _ keys: RowKeys?, _ statement: PostgresStatement?) {
      (self.positions, self.keys, self.statement) = (positions, keys, statement)
    }
  }

  /// Does a chunk, and rolls it back with all that its triggers have done.
  ///
  /// - Parameters:
  ///   - subject: What it changes.
  ///   - options: Those of a transaction of the run.
  ///   - policy: What happens if rows fail, before the first one.
  ///   - session: The session, in no transaction.
  ///   - change: Changes the rows.
  /// - Returns: What the run would have committed.
  /// - Throws: The error with which the run's transaction would have failed.
  func perform(
    _ subject: Subject,
    _ options: TransactionOptions,
    _ policy: FailurePolicy,
    in session: PostgresSession,
    _ change: (FailurePolicy) throws(BatchError) -> ChunkResult
  ) throws(BatchError) -> Commit {
    let failedBefore = tally.withLock { $0.failed }
    let clock = ContinuousClock()
    try session.begin(options)
    defer { session.rollBack() }
    try prepare(session)
    let start = clock.now
    let counts = try changeCounts(of: subject, in: session)
    let before = try images(of: subject, in: session)
    let begun = clock.now
    let written = try change(policy.after(failedBefore))
    // What is deferred would act at COMMIT.
    try session.run("SET CONSTRAINTS ALL IMMEDIATE")
    let duration = begun.duration(to: clock.now)
    let looked = clock.now
    let after = try images(of: subject, in: session)
    let others = try changeCounts(of: subject, in: session)
    session.rollBack()
    let looking = start.duration(to: begun) + looked.duration(to: clock.now)
    let isTimed = tally.withLock { tally in
      tally.note(written, at: subject.positions, duration, looking)
      if let before, let after { tally.note(before, after) }
      tally.note(others, since: counts)
      defer { tally.isTimed = tally.isTimed || subject.statement != nil }
      return tally.isTimed
    }
    if timesTriggers, !isTimed, let statement = subject.statement {
      try timeTriggers(of: statement, on: subject.positions.count, options, in: session)
    }
    return Commit(
      outcomes: written.outcomes,
      passedOver: written.passedOver,
      duration: duration
    )
  }

  private func images(
    of subject: Subject,
    in session: PostgresSession
  ) throws(BatchError) -> RowImages? {
    guard let keys = subject.keys else { return nil }
    return try RowImages(of: keys, by: reader, in: session)
  }

  /// How many rows of tables whose rows are not compared this session has inserted, updated and
  /// deleted, as far as the server has not yet told others.
  private func changeCounts(
    of subject: Subject,
    in session: PostgresSession
  ) throws(BatchError) -> RehearsalTally.Counts {
    let found = try session.execute(
      """
      WITH RECURSIVE own AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT i.inhrelid FROM own AS o JOIN pg_catalog.pg_inherits AS i ON i.inhparent = o.oid)
      SELECT schemaname, relname, n_tup_upd, n_tup_ins, n_tup_del
      FROM pg_catalog.pg_stat_xact_user_tables
      WHERE n_tup_upd + n_tup_ins + n_tup_del > 0 AND relname !~ '^_batch_'
        AND relid NOT IN (SELECT oid FROM own)
      """,
      .literal(subject.keys == nil ? "0" : String(reader.table.oid))
    )
    var counts: RehearsalTally.Counts = [:]
    for row in 0..<found.count {
      let name = found.text(row, 1) ?? ""
      let schema = found.text(row, 0) ?? ""
      counts[schema == "public" ? name : "\(schema).\(name)"] = (2...4).map {
        Int(found.integer(row, $0) ?? 0)
      }
    }
    return counts
  }

  /// Does a chunk once more, and rolls it back, to have the server time its triggers.
  private func timeTriggers(
    of statement: PostgresStatement,
    on rows: Int,
    _ options: TransactionOptions,
    in session: PostgresSession
  ) throws(BatchError) {
    do {
      try session.begin(options)
      defer { session.rollBack() }
      try prepare(session)
      let answer = try session.execute(
        "EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, FORMAT JSON) \(statement.sql)",
        statement.values
      )
      let text = (0..<answer.count).compactMap { answer.text($0, 0) }.joined(separator: "\n")
      let explained = try? JSONDecoder().decode([Explanation].self, from: Data(text.utf8))
      let triggers = (explained?.first?.triggers ?? []).map { trigger in
        RehearsalSample.Trigger(
          name: trigger.constraint ?? trigger.name ?? "",
          table: trigger.relation ?? reader.table.name,
          calls: Int(trigger.calls),
          rows: rows,
          seconds: trigger.milliseconds / 1000
        )
      }
      tally.withLock { $0.triggers = triggers }
    } catch {
      // The chunk itself has succeeded, so somebody has only been faster.
      if session.isLost || error.code == .interrupted { throw error }
    }
  }

  private struct Explanation: Decodable {
    struct Trigger: Decodable {
      let name: String?
      let constraint: String?
      let relation: String?
      let milliseconds: Double
      let calls: Double

      enum CodingKeys: String, CodingKey {
        case name = "Trigger Name"
        case constraint = "Constraint Name"
        case relation = "Relation"
        case milliseconds = "Time"
        case calls = "Calls"
      }
    }

    let triggers: [Trigger]?

    enum CodingKeys: String, CodingKey {
      case triggers = "Triggers"
    }
  }

  // MARK: Results

  /// The tables with changed rows: first the job's, then those that triggers, foreign keys and
  /// copies have reached.
  package var tables: [TableChanges] { tally.withLock { $0.changes } }

  /// What should be known about the counts of ``tables``, in words.
  package var notes: [String] {
    let (failed, tables) = tally.withLock { ($0.failed, $0.othersChanged) }
    guard failed > 0, !tables.isEmpty else { return [] }
    return [
      "the rows of \(tables.joined(separator: ", ")) include those that failed rows had reached, which"
        + " a run undoes"
    ]
  }

  package var triggers: [RehearsalSample.Trigger] { tally.withLock { $0.triggers } }

  /// How many rows were compared.
  package var comparedRows: Int { tally.withLock { $0.compared } }

  package var chunks: Int { tally.withLock { $0.chunks } }

  /// The sum of the times from the first change of a chunk to its COMMIT, and that of the times in
  /// which its rows were looked at.
  package var times: (changing: Duration, looking: Duration) {
    tally.withLock { ($0.changing, $0.looking) }
  }

  package func failures(atMost limit: Int) throws(BatchError) -> [FailureCount] {
    let counter = tally.withLock { $0.failures }
    return try counter.counts(atMost: limit) { failed throws(BatchError) in
      try list.key(at: failed.position).description
    }
  }
}
#endif
