import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension JobPlan {
  /// What decides which rows the run concerns and what it writes.
  ///
  /// The store is compared apart, since it may get its UUID between two runs.
  func fingerprint(identifiersHash: String?) -> JobFingerprint {
    JobFingerprint(
      job: job,
      parameters: parameters,
      store: "",
      identifiersHash: identifiersHash
    )
  }

  /// The lane of a job that writes to the store.
  func makeLane() throws(BatchError) -> WriterLane? {
    guard job.action.writes else { return nil }
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = job.database.journalMode == .wal
    configuration.enforcesForeignKeys = job.database.foreignKeys
    configuration.synchronous = job.database.synchronous
    configuration.courtesyTarget = job.chunk.target
    configuration.limitCheckpoints(to: job.throttle.maximumWAL)
    return try store.makeWriterLane(configuration)
  }

  /// The identifiers that the job's source names by a file, with a hash of them.
  func importedIdentifiers() throws(BatchError) -> (list: PackedIdentifiers, hash: String)? {
    guard let path = job.source.identifiers else { return nil }
    do throws(BatchError) {
      let file = try IdentifierFile(opening: path)
      let header = file.list.header
      guard header.entityName == entity.name else {
        throw BatchError(
          .otherRun,
          "the identifiers are of entity \"\(header.entityName)\"",
          at: path.string,
          remedy: "name a file of \"\(entity.name)\" identifiers"
        )
      }
      guard store.identity.admits(header.storeIdentifier, atPath: store.path) else {
        throw BatchError(
          .otherRun,
          "the identifiers are of store \(header.storeIdentifier), the database is"
            + " \(store.identity.uuid)",
          at: path.string
        )
      }
      return (file.list, file.contentHash)
    } catch {
      throw error.located(at: job.place(of: .identifiers))
    }
  }
}

extension Entity {
  /// The entity's key and columns, a line each, so that a change can be told in words.
  var fingerprint: [String] {
    let keys = "key \(key?.columns.joined(separator: ", ") ?? "none")"
    return [keys]
      + attributes.map {
        "column \($0.column) \($0.type)\($0.isGenerated ? " generated" : "")"
      }
  }
}
