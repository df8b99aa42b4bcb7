#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

package struct ChunkLimits: Sendable {
  package var lock: Duration
  package var statement: Duration
  /// How long the process may be silent; this is as long as a lease, so that the server releases a
  /// dead host's locks by the time its spans are free.
  package var silence: Duration

  package init(lock: Duration, statement: Duration, silence: Duration) {
    self.lock = lock
    self.statement = statement
    self.silence = silence
  }
}

/// How the transaction of a chunk ends.
package enum ChunkEnd: Sendable {
  /// It commits, with the chunk entered in the run's ledger.
  case entered(SpanFence)
  /// It is rolled back.
  case rehearsed(ChunkRehearsal)
}

/// Changes the rows of a chunk and enters the chunk in the run's ledger, in one transaction.
package struct ChunkTransaction<Change: ChunkChange>: Sendable {
  package let change: Change
  package let end: ChunkEnd
  package let limits: ChunkLimits
  package let onFailure: FailurePolicy

  package init(
    _ change: Change,
    _ end: ChunkEnd,
    limits: ChunkLimits,
    onFailure: FailurePolicy = .failChunk
  ) {
    self.change = change
    self.end = end
    self.limits = limits
    self.onFailure = onFailure
  }

  /// Processes a chunk.
  ///
  /// After an error of code `connectionLost`, the chunk may or may not be committed; a retry on a
  /// new connection finds out. That retry is the first chunk of a session, so the ledger is checked
  /// against its count.
  ///
  /// `method` is the one that earlier chunks needed, since the reason for skipping one row often
  /// applies to many; set to the one that this chunk needed. The returned duration excludes the
  /// round trips and the COMMIT, which take as long for few rows as for many.
  package func run(
    _ rows: Change.Rows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Commit {
    do {
      return try write(rows, at: positions, under: lease, by: &method, in: session)
    } catch {
      // If the schema changed and made the statement fail, report that instead.
      if error.canComeOfSchema, !session.isLost { try change.verifySchema(in: session) }
      throw error
    }
  }

  private func write(
    _ rows: Change.Rows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Commit {
    if method == .counting {
      do {
        if let statement = try change.countingStatement(for: rows),
          let commit = try attempt(rows, statement, at: positions, under: lease, in: session)
        {
          return commit
        }
      } catch {
        guard change.canBeListed(error) else { throw error }
        // The connection broke during the rollback: on another one, the chunk is tried again.
        guard !session.isLost else {
          let loss = PostgresError("the connection broke", state: .connectionFailure)
          throw BatchError(loss, server: session.address.description)
        }
        method = error.isAboutAmount ? .halving : .listing
      }
    }
    let commit = try attempt(
      rows,
      at: positions,
      under: lease,
      by: method == .counting ? .listing : method,
      in: session
    )
    // If a chunk takes too long, others of its size will too.
    if method == .listing, commit.outcomes.succeeded == positions.count { method = .counting }
    return commit
  }

  private var options: TransactionOptions {
    TransactionOptions(
      .readCommitted,
      lockTimeout: limits.lock,
      statementTimeout: limits.statement,
      idleTimeout: limits.silence,
      searchPath: change.path
    )
  }

  /// Processes a chunk by one statement, in two round trips: everything before the COMMIT, and the
  /// COMMIT.
  ///
  /// Returns nil, with nothing changed, if the chunk could not be entered in the ledger.
  private func attempt(
    _ rows: Change.Rows,
    _ statement: PostgresStatement,
    at positions: Range<Int>,
    under lease: SpanLease,
    in session: PostgresSession
  ) throws(BatchError) -> Commit? {
    guard case .entered(let fence) = end else {
      return try rehearse(rows, statement, at: positions, by: .counting, in: session)
    }
    let commit: Commit
    do {
      let entry = fence.entry(of: positions, under: lease)
      let checks = checks(under: lease, by: fence, in: session)
      let answers = try session.execute(
        together: options.statements + [entry, statement] + checks
      ).suffix(2 + checks.count)
      guard let entered = answers.first, entered.affectedCount == 1 else {
        session.rollBack()
        return nil
      }
      let duration = try check(answers.suffix(checks.count), under: lease, by: fence, in: session)
      let written = try change.counted(rows, by: answers[answers.startIndex + 1])
      try fence.complete(positions, written, in: session)
      commit = Commit(outcomes: written.outcomes, duration: duration)
    } catch {
      session.rollBack()
      throw error
    }
    try session.commit()
    session.hasDoneChunk = true
    return commit
  }

  /// The checks after a chunk is entered and its rows are changed: that the schema is the same and,
  /// for the first chunk of a session, which may already be done, that the ledger is complete.
  ///
  /// They follow the writing statements, which have locked the tables, so the tables cannot change
  /// before the transaction ends.
  private func checks(
    under lease: SpanLease,
    by fence: SpanFence,
    in session: PostgresSession
  ) -> [PostgresStatement] {
    let schema = PostgresStatement(
      sql: "SELECT \(change.expected?.version ?? "NULL"),"
        + " pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - pg_catalog.now())"
    )
    return [schema] + (session.hasDoneChunk ? [] : [fence.counts(under: lease)])
  }

  /// Checks the answers to ``checks(under:by:in:)``, and returns how long the transaction has taken.
  private func check(
    _ answers: ArraySlice<PostgresResult>,
    under lease: SpanLease,
    by fence: SpanFence,
    in session: PostgresSession
  ) throws(BatchError) -> Duration {
    guard let schema = answers.first else {
      preconditionFailure("a statement without an answer")
    }
    if schema.text(0, 0) != session.schemaVersion { try change.verifySchema(in: session) }
    if let counts = answers.dropFirst().first { try fence.requireCounted(lease, by: counts) }
    return .seconds(schema.text(0, 1).flatMap(Double.init) ?? 0)
  }

  private func attempt(
    _ rows: Change.Rows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Commit {
    guard case .entered(let fence) = end else {
      return try rehearse(rows, at: positions, by: method, in: session)
    }
    let commit = try session.transaction(options) { () throws(BatchError) in
      if case .isThere(let outcomes) = try fence.enter(positions, under: lease, in: session) {
        return Commit(outcomes: outcomes, duration: .zero)
      }
      var policy = onFailure
      if onFailure != .failChunk {
        policy = onFailure.after(try fence.tables.failureCount(ofRun: fence.run, in: session))
      }
      let written = try change.list(rows, method, onFailure: policy, in: session)
      let checks = checks(under: lease, by: fence, in: session)
      let answers = try session.execute(together: checks)
      let duration = try check(answers[...], under: lease, by: fence, in: session)
      try fence.complete(positions, written, in: session)
      return Commit(outcomes: written.outcomes, duration: duration)
    }
    session.hasDoneChunk = true
    return commit
  }

  /// Processes a chunk as in a run, and rolls it back.
  private func rehearse(
    _ rows: Change.Rows,
    _ statement: PostgresStatement? = nil,
    at positions: Range<Int>,
    by method: WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Commit {
    guard case .rehearsed(let rehearsal) = end else {
      preconditionFailure("a chunk of a run is rehearsed")
    }
    let subject = ChunkRehearsal.Subject(positions, change.keys(of: rows), statement)
    return try rehearsal.perform(subject, options, onFailure, in: session) {
      policy throws(BatchError) in
      try change.write(to: rows, method, onFailure: policy, in: session)
    }
  }
}
#endif
