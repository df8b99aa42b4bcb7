#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// Changes the rows of a chunk and enters it in the ledger of a run, in one transaction.
package struct ChunkTransaction: Sendable {
  /// How long the transaction may be in the way of others.
  package struct Limits: Sendable {
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

  package let change: PostgresChange
  package let fence: SpanFence
  package let limits: Limits
  package let onFailure: FailurePolicy

  package init(
    _ change: PostgresChange,
    _ fence: SpanFence,
    limits: Limits,
    onFailure: FailurePolicy = .failChunk
  ) {
    self.change = change
    self.fence = fence
    self.limits = limits
    self.onFailure = onFailure
  }

  /// Does a chunk.
  ///
  /// After an error of code `connectionLost` it may be done or not: the same chunk again, on a new connection, finds out.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - positions: Its positions.
  ///   - lease: What the process has the span by.
  ///   - method: How to begin: as chunks before had to be done, since what makes one row be passed over often does so
  ///     with many. It is what this chunk had to be done by afterwards.
  ///   - session: The session, in no transaction.
  /// - Returns: What became of the identifiers.
  /// - Throws: `BatchError` of code `leaseLost` if another process has the span by now; what is about the chunk.
  package func run(
    _ keys: RowKeys,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Outcomes {
    if method == .counting {
      do {
        return try attempt(keys, at: positions, under: lease, by: .counting, in: session)
      } catch {
        guard !session.isLost, change.canBeListed(error) else { throw error }
        method = error.isAboutAmount ? .halving : .listing
      }
    }
    let outcomes = try attempt(keys, at: positions, under: lease, by: method, in: session)
    // Where a chunk takes too long, others of its size do.
    if method == .listing, outcomes.succeeded == positions.count { method = .counting }
    return outcomes
  }

  private func attempt(
    _ keys: RowKeys,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: WritingMethod,
    in session: PostgresSession
  ) throws(BatchError) -> Outcomes {
    let options = TransactionOptions(
      .readCommitted,
      lockTimeout: limits.lock,
      statementTimeout: limits.statement,
      idleTimeout: limits.silence,
      searchPath: change.path
    )
    return try session.transaction(options) { () throws(BatchError) in
      if case .isThere(let outcomes) = try fence.enter(positions, under: lease, in: session) {
        return outcomes
      }
      var policy = onFailure
      if method != .counting, onFailure != .failChunk {
        policy = onFailure.after(try fence.tables.failureCount(ofRun: fence.run, in: session))
      }
      let written = try change.write(to: keys, method, onFailure: policy, in: session)
      try fence.complete(positions, written, in: session)
      return written.outcomes
    }
  }
}
#endif
