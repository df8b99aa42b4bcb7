package import BatchIdentifiers
import BatchPlatform

/// The fixed facts about a run in its checkpoint, or in the row of a shared run.
package struct RunMetadata: Codable, Sendable {
  /// The newest version of a run's record that this program can read.
  package static let version = 1

  /// The version of the metadata and of the progress beside it.
  package private(set) var version = Self.version
  package var run: String
  package var job: String
  /// When the run first began, in ISO 8601 and UTC.
  package var startedAt: String
  /// The microseconds within that second; they order runs that began in the same second.
  package var startedMicroseconds = 0
  /// Identifies everything that determines which rows the run changes and what it writes.
  package var fingerprint: String
  /// The entity as it was when the identifiers were selected.
  package var schema: [String]
  /// For PostgreSQL: the identity of the database and the number of the table in its catalog.
  package var table: String?
  package var ledger: LedgerPlace
  /// The absolute path; nil for a server.
  package var database: String?
  /// Where an export writes its file until it is complete.
  package var partialOutput: String?
  /// Where the complete file of an export goes.
  package var output: String?
  /// Whether the output replaces that of the job's previous run.
  package var replacesOwnOutput = false
  /// The runs whose files in the folder of an export this one replaces; nil for any other work.
  package var replacedRuns: [String]?
  /// The ID that the caller gave the work.
  package var runID: String?
  /// For an undo: the run that it undoes.
  package var undone: String?
  /// The number of rows that the undone run recorded.
  package var undoableRows: Int?
  /// What was planned, if somebody must approve it or has named it.
  package var planned: PlannedRun?
  /// The rows to process first; nil if the run has no canary.
  package var canary: CanaryRows?
  /// The files that the run loads; nil for work on rows.
  package var loaded: LoadedFiles?
  /// Whether the run loads a sequence, whose end it finds out; nil for not.
  package var isOpenEnded: Bool?
  /// The range of rows of an export of what changed; nil for any other work.
  package var increment: Increment?
  /// Earlier runs with an ID, so that their work is not repeated.
  package var pastRuns: [PastRun]?

  package var invocation: RunInvocation?
  /// The parameters as text; nil for work that has none.
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

  /// Decodes metadata, or explains why another version's or damaged text cannot be read.
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

/// The fields that every version of the record has.
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
  /// In the store, in the same transaction as the chunk.
  case store
  /// In the checkpoint file, after the chunk's transaction.
  case file
}
