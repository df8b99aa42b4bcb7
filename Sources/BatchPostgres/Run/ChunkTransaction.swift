#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// How long the transaction of a chunk may be in the way of others.
package struct ChunkLimits: Sendable {
  /// How long a statement waits for a lock.
  package var lock: Duration
  /// How long a statement may take.
  package var statement: Duration
  /// How long the process may say nothing: as long as a lease, so that the locks of a host that is gone are gone
  /// when its spans are free.
  package var silence: Duration

  package init(lock: Duration, statement: Duration, silence: Duration) {
    self.lock = lock
    self.statement = statement
    self.silence = silence
  }
}

/// Changes the rows of a chunk and enters it in the ledger of a run, in one transaction.
package struct ChunkTransaction<Change: ChunkChange>: Sendable {
  package let change: Change
  package let fence: SpanFence
  package let limits: ChunkLimits
  package let onFailure: FailurePolicy

  package init(
    _ change: Change,
    _ fence: SpanFence,
    limits: ChunkLimits,
    onFailure: FailurePolicy = .failChunk
  ) {
    self.change = change
    self.fence = fence
    self.limits = limits
    self.onFailure = onFailure
  }

  /// Does a chunk.
  ///
  /// After an error of code `connectionLost` it may be done or not: the same chunk again, on a new connection, finds out. It is the
  /// first of a session then, and with that it is seen whether the ledger is whole.
  ///
  /// - Parameters:
  ///   - rows: The rows of the chunk.
  ///   - positions: Its positions.
  ///   - lease: What the process has the span by.
  ///   - method: How to begin: as chunks before had to be done, since what makes one row be passed over often does so
  ///     with many. It is what this chunk had to be done by afterwards.
  ///   - session: The session, in no transaction.
  /// - Returns: What became of the identifiers.
  /// - Throws: `BatchError` of code `leaseLost` if another process has the span by now, `damagedFile` if somebody has changed the
  ///   ledger; what is about the chunk.
  package func run(
    _ rows: Change.Rows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Outcomes {
    if method == .counting {
      do {
        if let statement = try change.countingStatement(for: rows),
          let outcomes = try attempt(rows, statement, at: positions, under: lease, in: session)
        {
          session.hasDoneChunk = true
          return outcomes
        }
      } catch {
        guard !session.isLost, change.canBeListed(error) else { throw error }
        method = error.isAboutAmount ? .halving : .listing
      }
    }
    let outcomes = try attempt(
      rows,
      at: positions,
      under: lease,
      by: method == .counting ? .listing : method,
      in: session
    )
    session.hasDoneChunk = true
    // Where a chunk takes too long, others of its size do.
    if method == .listing, outcomes.succeeded == positions.count { method = .counting }
    return outcomes
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

  /// Does a chunk by one statement, in two journeys to the server: all up to the COMMIT, and that.
  ///
  /// - Returns: What became of the identifiers; nil, with nothing done, if the chunk cannot be entered in the ledger, where
  ///   it is to be seen why.
  private func attempt(
    _ rows: Change.Rows,
    _ statement: PostgresStatement,
    at positions: Range<Int>,
    under lease: SpanLease,
    in session: PostgresSession
  ) throws(BatchError) -> Outcomes? {
    let outcomes: Outcomes
    do {
      let entry = fence.entry(of: positions, under: lease)
      let checks = checks(under: lease, in: session)
      let answers = try session.execute(
        together: options.statements + [entry, statement] + checks
      ).suffix(2 + checks.count)
      guard let entered = answers.first, entered.affectedCount == 1 else {
        session.rollBack()
        return nil
      }
      try check(answers.suffix(checks.count), under: lease)
      let written = try change.counted(rows, by: answers[answers.startIndex + 1])
      try fence.complete(positions, written, in: session)
      outcomes = written.outcomes
    } catch {
      session.rollBack()
      throw error
    }
    try session.commit()
    return outcomes
  }

  /// What is asked once the chunk is entered and its rows are written: whether the tables are the same, and with the first chunk of
  /// a session, which may be one that is done, whether the ledger is whole.
  private func checks(
    under lease: SpanLease,
    in session: PostgresSession
  ) -> [PostgresStatement] {
    [change.identities] + (session.hasDoneChunk ? [] : [fence.counts(under: lease)])
  }

  private func check(
    _ answers: ArraySlice<PostgresResult>,
    under lease: SpanLease
  ) throws(BatchError) {
    guard let identities = answers.first else {
      preconditionFailure("a statement without an answer")
    }
    try change.requireSameTables(by: identities)
    if let counts = answers.dropFirst().first { try fence.requireCounted(lease, by: counts) }
  }

  /// Does a chunk in parts.
  private func attempt(
    _ rows: Change.Rows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Outcomes {
    try session.transaction(options) { () throws(BatchError) in
      if case .isThere(let outcomes) = try fence.enter(positions, under: lease, in: session) {
        return outcomes
      }
      var policy = onFailure
      if onFailure != .failChunk {
        policy = onFailure.after(try fence.tables.failureCount(ofRun: fence.run, in: session))
      }
      let written = try change.list(rows, method, onFailure: policy, in: session)
      let checks = checks(under: lease, in: session)
      try check(session.execute(together: checks)[...], under: lease)
      try fence.complete(positions, written, in: session)
      return written.outcomes
    }
  }
}
#endif
