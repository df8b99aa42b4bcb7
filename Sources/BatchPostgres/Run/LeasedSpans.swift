#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// The spans out of which a processor takes its chunks.
package protocol ChunkSpans: Sendable {
  var inOrder: Bool { get }

  /// - Throws: `BatchError` of code `leaseLost` if the process has no such span.
  func span(of positions: Range<Int>) throws(BatchError) -> LeasedSpans.Span
}

/// The spans of a run that a process has leased, with their identifiers.
package final class LeasedSpans: SpanSource, ChunkSpans {
  package struct Span: Sendable {
    package let lease: SpanLease
    private let list: PackedIdentifiers
    private let places: RowPlaces

    init(_ lease: SpanLease, _ list: PackedIdentifiers, _ places: RowPlaces) {
      self.lease = lease
      self.list = list
      self.places = places
    }

    /// The keys at some positions of the run, with the pages that contained their rows when the
    /// span was leased.
    package func keys(_ positions: Range<Int>, key: PostgresKey) throws(BatchError) -> RowKeys {
      let first = lease.positions.lowerBound
      let local = positions.lowerBound - first..<positions.upperBound - first
      return try RowKeys(list, local, key: key).near(places.pages(of: local))
    }
  }

  /// The longest wait before asking again for a dead host's span, or for the end of the run.
  private static let longestRest = Duration.seconds(1)

  private let claims: SpanClaims
  private let (table, key): (PostgresTable, PostgresKey)
  private let connection: PostgresConnection
  private let spans = Lock<[Int: Span]>([:])
  /// The only positions that are claimed while the run's canary is on trial; nil for all.
  private let trial = Lock<[Range<Int>]?>(nil)

  package var inOrder: Bool { claims.inOrder }

  package init(
    _ claims: SpanClaims,
    of table: PostgresTable,
    key: PostgresKey,
    by connection: PostgresConnection
  ) {
    self.claims = claims
    (self.table, self.key) = (table, key)
    self.connection = connection
  }

  /// Claims only spans of these positions from now on; nil for all.
  func claimOnly(_ positions: [Range<Int>]?) { trial.withLock { $0 = positions } }

  package func span(of positions: Range<Int>) throws(BatchError) -> Span {
    let found = spans.withLock { spans in
      spans.values.first { $0.lease.positions.contains(positions.lowerBound) }
    }
    if let found { return found }
    throw SpanFence.lost(SpanLease(positions: positions, token: 0), ofRun: claims.run)
  }

  package func claim(besides own: [Range<Int>]) async throws(BatchError) -> SpanClaim {
    let known = own.map(\.lowerBound)
    let (claims, table, key) = (claims, table, key)
    let trial = trial.withLock(\.self)
    spans.withLock { spans in spans = spans.filter { known.contains($0.key) } }
    let (answer, span) = try await persistently { session throws(BatchError) in
      let answer = try claims.claim(knowing: known, only: trial, in: session)
      guard case .granted(let lease, _) = answer else { return (answer, Span?.none) }
      let list = try claims.tables.list(of: lease.positions, ofRun: claims.run, in: session).packed
      let places = try RowPlaces(of: list, 0..<list.count, key: key, in: table, session)
      return (answer, Span(lease, list, places))
    }
    switch answer {
    case .granted(let lease, let remaining):
      spans.withLock { $0[lease.positions.lowerBound] = span }
      return .granted(lease.positions, remaining: remaining)
    case .noneFree: return .noneFree(askingAgainAfter: min(Self.longestRest, claims.lease / 4))
    case .exhausted: return .exhausted
    }
  }

  package func close(_ span: Range<Int>) async throws(BatchError) {
    let lease = try self.span(of: span).lease
    let claims = claims
    try await persistently { session throws(BatchError) in try claims.close(lease, in: session) }
    spans.withLock { $0[span.lowerBound] = nil }
  }

  /// Whether the process has a span.
  var hasAny: Bool { spans.withLock { !$0.isEmpty } }

  package func interrupt() { connection.interrupt() }

  package func end() async { await connection.close() }

  private func persistently<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    try await connection.persistently(within: claims.lease, body)
  }
}
#endif
