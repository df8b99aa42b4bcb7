package import BatchJobs
import BatchRuns
package import BatchIdentifiers
import SystemPackage

extension JobPlan {
  /// The fingerprint of what determines the run's rows and what it writes; the store is compared
  /// separately, since it may get its UUID between two runs.
  package func fingerprint(identifiersHash: String?) -> JobFingerprint {
    JobFingerprint(
      job: job,
      parameters: parameters,
      store: "",
      identifiersHash: identifiersHash
    )
  }

  package func makeLane() throws(BatchError) -> WriterLane? { try job.makeLane(in: store) }

  package func identifierFile() throws(BatchError) -> IdentifierFile? {
    try job.identifierFile(of: entity.name, in: store.identity.uuid) {
      store.identity.admits($0, atPath: store.path)
    }
  }

  /// The identifiers in that file, without those that name the same row as an earlier one.
  package func givenIdentifiers() async throws(BatchError) -> (
    list: PackedIdentifiers, hash: String
  )? {
    guard let file = try identifierFile() else { return nil }
    let list = try file.list.distinct()
    let reader = store.connection(label: "batch.given")
    let rows = try await reader.perform { [entity, query] connection throws(BatchError) in
      try list.distinctRows(of: entity, by: query.key, in: connection)
    }
    return (rows, file.contentHash)
  }
}

extension RunCause {
  /// The lane for a job that writes to its store; nil for other jobs.
  package func makeLane(
    in store: Store,
    runningTriggers runsTriggers: Bool = true
  ) throws(BatchError) -> WriterLane? {
    guard writes else { return nil }
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = database.journalMode == .wal
    configuration.enforcesForeignKeys = database.foreignKeys
    configuration.runsTriggers = runsTriggers
    configuration.synchronous = database.synchronous
    configuration.courtesyTarget = policy.chunk.target
    configuration.limitCheckpoints(to: policy.throttle.maximumWAL)
    return try store.makeWriterLane(configuration)
  }
}

extension JobPlan.Work {
  /// The definitions of the triggers that the changes of rows set off.
  func triggers(in connection: Connection) throws(BatchError) -> [String] {
    let statements: [String]
    switch self {
    case .change(let change, _): statements = change.statements
    case .transform(let transform, _, _): statements = transform.target.statements
    case .export: return []
    }
    return try connection.definitionsOfTriggers(setOffBy: statements)
  }

  /// What the action requires of the schema as it is now.
  package func expectedSchema(
    for query: IdentifierQuery,
    keepsCopies: Bool,
    in connection: Connection
  ) throws(BatchError) -> ExpectedSchema {
    let keys = ChunkKeys.shape(of: query.key)
    var columns: [String] = []
    var statements: [String] = []
    var target = query.entity
    var isWhole = false
    switch self {
    case .change(let change, _):
      (target, columns, statements) = (change.entity, change.writtenColumns, change.statements)
      if case .delete(let archive) = change.action { isWhole = archive != nil || keepsCopies }
    case .transform(let transform, _, _):
      (target, columns) = (transform.target.entity, transform.target.writtenColumns)
      statements = [transform.readSQL(for: keys)] + transform.target.statements
    case .export(let export, _):
      statements = [export.sql(for: keys)]
    }
    return try ExpectedSchema(
      of: query.entity,
      key: query.key,
      target: target,
      columns: columns,
      statements: statements,
      isWhole: isWhole,
      in: connection
    )
  }
}
