/// What a checkpoint says of its run once and for all.
package struct RunMetadata: Codable, Sendable {
  /// The run's UUID.
  package var run: String
  /// The job's name.
  package var job: String
  /// When the run began first, as an ISO 8601 timestamp in UTC.
  package var startedAt: String
  /// How many microseconds of that second had passed, since runs may begin in the same one; nil in what an
  /// earlier version wrote.
  package var startedMicroseconds: Int?
  /// What decides which rows the run concerns and what it writes.
  package var fingerprint: String
  /// The entity as it was when the identifiers were selected.
  package var schema: [String]
  /// Which table that is, of a run on PostgreSQL: the database's identity and the table's number in its catalog.
  package var table: String?
  /// Where done chunks are recorded.
  package var ledger: LedgerPlace
  /// The database, by its absolute path; nil in what an earlier version wrote.
  package var database: String?
  /// The file that an export writes until it is complete.
  package var partialOutput: String?
  /// The file that an export writes.
  package var output: String?
  /// Whether the complete output takes the place of the one that the job's last run made.
  package var replacesOwnOutput = false
  /// The identifier that the caller gave to the work.
  package var runID: String?
  /// The run that is undone, of a run that undoes another one.
  package var undone: String?
  /// How many rows that run had recorded; nil in what an earlier version wrote.
  package var undoableRows: Int?
  /// Whether the store knew the run before there was a checkpoint; nil in what an earlier version wrote.
  package var isEntered: Bool?
  /// Earlier runs of the job that had such an identifier, so that none of that work is done again.
  package var pastRuns: [PastRun]?

  /// Who has begun it; nil in what an earlier version wrote.
  package var invocation: RunInvocation?
  /// The values of the job's parameters, in words; nil in what an earlier version wrote.
  package var parameters: [String: String]?

  package init(
    run: String,
    job: String,
    startedAt: String,
    fingerprint: String,
    schema: [String],
    ledger: LedgerPlace
  ) {
    self.run = run
    self.job = job
    self.startedAt = startedAt
    self.fingerprint = fingerprint
    self.schema = schema
    self.ledger = ledger
  }
}

/// Where done chunks are recorded.
package enum LedgerPlace: String, Codable, Sendable {
  /// In the store, in the transaction of the chunk.
  case store
  /// In the checkpoint file, after the fact.
  case file
}
