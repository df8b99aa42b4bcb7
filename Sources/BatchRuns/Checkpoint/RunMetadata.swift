package import BatchIdentifiers
import BatchPlatform

/// The fixed facts about a run in its checkpoint, or in the row of a shared run.
package struct RunMetadata: Codable, Sendable {
  /// The newest version of the record of a run that this program supports.
  package static let version = 1

  /// The version of the record: of these facts, and of the progress beside them.
  package private(set) var version = Self.version
  /// The run's UUID.
  package var run: String
  /// The job's name.
  package var job: String
  /// When the run first began, as an ISO 8601 timestamp in UTC.
  package var startedAt: String
  /// The microseconds of that second, which order runs begun in it.
  package var startedMicroseconds = 0
  /// What determines the run's rows and what it writes.
  package var fingerprint: String
  /// The entity as it was when the identifiers were selected.
  package var schema: [String]
  /// Which table that is, of a run on PostgreSQL: the database's identity and the table's number in its catalog.
  package var table: String?
  /// Where done chunks are recorded.
  package var ledger: LedgerPlace
  /// The absolute path of the database; nil for a server.
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
  /// The number of rows that run recorded.
  package var undoableRows: Int?
  /// Earlier runs of the job with such an ID, so that their work is not repeated.
  package var pastRuns: [PastRun]?

  /// Who began it.
  package var invocation: RunInvocation?
  /// The values of the job's parameters in words; nil for work that has none.
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

  /// Reads what a run was begun with.
  ///
  /// - Parameters:
  ///   - json: The text.
  ///   - place: Where it is recorded.
  /// - Throws: `BatchError` of code `unsupportedVersion` if another version wrote it, `damagedFile` if it is something
  ///   else.
  package init(_ json: some Sequence<UInt8>, at place: String?) throws(BatchError) {
    let json = Data(json)
    do {
      let record = try JSONDecoder().decode(VersionedRecord.self, from: json)
      if record.version != Self.version {
        throw BatchError.otherVersion(isNewer: record.version != nil, at: place)
      }
      self = try JSONDecoder().decode(RunMetadata.self, from: json)
    } catch let error as BatchError {
      throw error
    } catch {
      throw BatchError(
        .damagedFile,
        "this is not the record of a run",
        at: place,
        underlying: error
      )
    }
  }
}

/// What every version of the record has.
private struct VersionedRecord: Decodable {
  let run: String
  let version: Int?
}

extension BatchError {
  fileprivate static func otherVersion(isNewer: Bool, at place: String?) -> BatchError {
    BatchError(
      .unsupportedVersion,
      isNewer
        ? "the run was begun by a newer version of batch"
        : "the run was begun by an earlier version of batch",
      at: place,
      remedy: "finish it with that version, or run with --fresh to set it aside"
    )
  }
}

/// Where done chunks are recorded.
package enum LedgerPlace: String, Codable, Sendable {
  /// In the store, in the transaction of the chunk.
  case store
  /// In the checkpoint file, after the transaction.
  case file
}
