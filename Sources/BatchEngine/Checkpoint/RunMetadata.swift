/// The fixed facts about a run in its checkpoint.
package struct RunMetadata: Codable, Sendable {
  /// The run's UUID.
  package var run: String
  /// The job's name.
  package var job: String
  /// When the run first began, as an ISO 8601 timestamp in UTC.
  package var startedAt: String
  /// The microseconds of that second, which order runs begun in it; nil in files of earlier
  /// versions.
  package var startedMicroseconds: Int?
  /// What determines the run's rows and what it writes.
  package var fingerprint: String
  /// The entity as it was when the identifiers were selected.
  package var schema: [String]
  /// Which table that is, of a run on PostgreSQL: the database's identity and the table's number in its catalog.
  package var table: String?
  /// Where done chunks are recorded.
  package var ledger: LedgerPlace
  /// The absolute path of the database; nil in files of earlier versions.
  package var database: String?
  /// The path of an export's file until it is complete.
  package var partialOutput: String?
  /// The path of an export's complete file.
  package var output: String?
  /// Whether the complete output replaces that of the job's previous run.
  package var replacesOwnOutput = false
  /// The caller's ID of the work.
  package var runID: String?
  /// For an undo: the run that it undoes.
  package var undone: String?
  /// The number of rows that run recorded; nil in files of earlier versions.
  package var undoableRows: Int?
  /// Whether the store knew the run before the checkpoint existed; nil in files of earlier
  /// versions.
  package var isEntered: Bool?
  /// Earlier runs of the job with such an ID, so that their work is not repeated.
  package var pastRuns: [PastRun]?

  /// Who began it; nil in files of earlier versions.
  package var invocation: RunInvocation?
  /// The values of the job's parameters in words; nil in files of earlier versions.
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
  /// In the checkpoint file, after the transaction.
  case file
}
