#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// Limits on how long a chunk's transaction may block others.
package struct ChunkLimits: Sendable {
  /// How long a statement waits for a lock.
  package var lock: Duration
  /// How long a statement may take.
  package var statement: Duration
  /// How long the process may be silent: as long as a lease, so that the server releases a dead host's locks by the
  /// time its spans are free.
  package var silence: Duration

  package init(lock: Duration, statement: Duration, silence: Duration) {
    self.lock = lock
    self.statement = statement
    self.silence = silence
  }
}

/// Changes the rows of a chunk and enters the chunk in the run's ledger, in one transaction.
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

  /// Processes a chunk.
  ///
  /// After an error of code `connectionLost`, the chunk may or may not be committed: retrying it on a new connection
  /// finds out. It is then the first chunk of a session, for which the ledger is checked against its count.
  ///
  /// - Parameters:
  ///   - rows: The rows of the chunk.
  ///   - positions: Its positions.
  ///   - lease: The process's lease of the span.
  ///   - method: The method to start with: the one that earlier chunks needed, since the cause for which one row is
  ///     passed over often applies to many. Afterwards, the method that this chunk needed.
  ///   - session: The session, in no transaction.
  /// - Returns: The outcomes of the identifiers.
  /// - Throws: `BatchError` of code `leaseLost` if another process has taken over the span, `damagedFile` if somebody
  ///   has changed the ledger; errors about the chunk.
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
    // If a chunk takes too long, others of its size will too.
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

  /// Processes a chunk by one statement, in two round trips to the server: one for everything up to the COMMIT, and
  /// one for the COMMIT.
  ///
  /// - Returns: The outcomes of the identifiers; nil, with nothing changed, if the chunk could not be entered in the
  ///   ledger, so the caller must find out why.
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
      try check(answers.suffix(checks.count), under: lease, in: session)
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

  /// The checks that follow the entry of a chunk and the change of its rows: that the tables are the same and, with the
  /// first chunk of a session, which may already be done, that the ledger is whole.
  private func checks(
    under lease: SpanLease,
    in session: PostgresSession
  ) -> [PostgresStatement] {
    [change.identities] + (session.hasDoneChunk ? [] : [fence.counts(under: lease)])
  }

  private func check(
    _ answers: ArraySlice<PostgresResult>,
    under lease: SpanLease,
    in session: PostgresSession
  ) throws(BatchError) {
    guard let identities = answers.first else {
      preconditionFailure("a statement without an answer")
    }
    try change.requireSameTables(by: identities, in: session)
    if let counts = answers.dropFirst().first { try fence.requireCounted(lease, by: counts) }
  }

  /// Processes a chunk in parts.
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
      try check(session.execute(together: checks)[...], under: lease, in: session)
      try fence.complete(positions, written, in: session)
      return written.outcomes
    }
  }
}
#endif
