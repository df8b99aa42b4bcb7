public import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchError.Code {
  /// A checkpoint belongs to another run, job or store than this one.
  public static let otherRun = Self(rawValue: "otherRun")
}

extension Checkpoint {
  /// Refuses to resume a run whose job, store or schema is no longer the one it began with.
  func refuse(unless plan: JobPlan, identifiersHash: String?) throws(BatchError) {
    guard metadata.job == plan.job.name else {
      throw refusal("this is the checkpoint of job \"\(metadata.job)\"")
    }
    let store = list.header.storeIdentifier
    guard plan.store.identity.admits(store, atPath: plan.store.path) else {
      throw refusal(
        "the checkpoint belongs to store \(store), the database is \(plan.store.identity.uuid)"
      )
    }
    let now = plan.fingerprint(identifiersHash: identifiersHash)
    let then = JobFingerprint(text: metadata.fingerprint)
    guard now == then else {
      let differences = now.differences(from: then).joined(separator: ", ")
      throw refusal("the job has changed since the run began: \(differences)")
    }
    let columns = plan.entity.fingerprint
    guard metadata.schema == columns else {
      let gone = metadata.schema.filter { !columns.contains($0) }.map { "- \($0)" }
      let new = columns.filter { !metadata.schema.contains($0) }.map { "+ \($0)" }
      throw refusal(
        "\"\(plan.entity.name)\" has changed since the run began:"
          + " \((gone + new).joined(separator: ", "))"
      )
    }
  }

  private func refusal(_ reason: String) -> BatchError {
    BatchError(
      .otherRun,
      reason,
      at: path.string,
      remedy: "undo the change to resume, or run with --fresh to set the checkpoint aside"
    )
  }
}

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

  /// Where done chunks are recorded.
  var ledger: LedgerPlace {
    job.action.writes && job.checkpoint.ledger == .store ? .store : .file
  }

  /// The lane of a job that writes to the store.
  func makeLane() throws(BatchError) -> WriterLane? {
    guard job.action.writes else { return nil }
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = job.database.journalMode == .wal
    configuration.enforcesForeignKeys = job.database.foreignKeys
    configuration.synchronous = job.database.synchronous
    return try store.makeWriterLane(configuration)
  }

  /// The identifiers that the job's source names by a file, with a hash of them.
  func importedIdentifiers() throws(BatchError) -> (list: IdentifierList, hash: String)? {
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
