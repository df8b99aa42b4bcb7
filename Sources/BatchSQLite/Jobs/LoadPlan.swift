package import BatchIdentifiers
package import BatchJobs
package import BatchRuns
import SystemPackage

/// A load resolved against its files and its database: every name found, every expression compiled,
/// nothing written.
package struct LoadPlan: Sendable {
  package let job: Job
  package let load: Job.Load
  package let store: Store
  package let parameters: ParameterValues
  package let files: LoadedFiles
  package let insertion: RowInsertion
  package let expected: ExpectedSchema
  /// All tables as they are, if undo records are kept: triggers may write any of them.
  private let recordable: ExpectedSchema?
  /// The type of each field of the files.
  package let types: [Job.ValueType]
  /// The definitions of the triggers that the inserted rows set off.
  let triggers: [String]
  package let hooks: RunHooks

  /// Resolves a load for a new run, or for one that expects an earlier schema.
  ///
  /// - Throws: `BatchError` with the place in the job file: files that cannot be read, or do not have
  ///   records; a table or a column that is unknown; an invalid expression.
  package init(
    _ job: Job,
    _ load: Job.Load,
    parameters: ParameterValues,
    store open: Store?,
    reading extent: LoadedFiles.Extent,
    expecting recorded: ExpectedSchema?
  ) async throws(BatchError) {
    let store: Store
    do throws(BatchError) {
      store = if let open { open } else { try await job.openStore() }
    } catch {
      throw job.located(openingStore: error)
    }
    if !job.isRehearsal {
      try job.refuseCoreData(store)
      guard !store.isReadOnly else {
        throw BatchError(
          .readOnly,
          "the database is read-only, and this job writes to it",
          at: job.place(of: .database),
          remedy: "make the file and its folder writable"
        )
      }
      try store.refuseIfLinked()
    }
    try job.refuseMissingFolders()
    let reader = store.connection(label: "batch.plan")
    func read(
      _ body: @escaping @Sendable () throws(BatchError) -> LoadedFiles
    ) async throws(BatchError) -> LoadedFiles {
      do throws(BatchError) {
        return try await reader.compute(body)
      } catch {
        throw error.located(at: job.place(of: .files))
      }
    }
    let named = try await read { () throws(BatchError) in
      try LoadedFiles(load, reading: extent)
    }
    let fields = named.fields
    let values = parameters.sqlValues
    (insertion, types, expected, recordable, triggers) = try await reader.perform {
      connection throws(BatchError) in
      try recorded?.verify(in: connection)
      try job.refuseAfterwards(in: connection)
      let entity: Entity
      do throws(BatchError) {
        entity = try store.schema.entity(named: job.source.entity)
        guard entity.kind == .table else {
          throw BatchError(
            .readOnly,
            "\(entity.name.quotedForMessage) is a \(entity.kind.words), which a load cannot fill",
            remedy: "name a table"
          )
        }
      } catch {
        throw error.located(at: job.place(of: .into))
      }
      let insertion = try RowInsertion(
        load,
        of: job,
        into: entity,
        fields: fields,
        parameters: values,
        in: connection
      )
      let triggers = try connection.definitionsOfTriggers(setOffBy: [insertion.sql])
      let expected =
        if let recorded { recorded } else {
          try ExpectedSchema(of: [(entity.table, nil, insertion.columns)], in: connection)
        }
      let recordable =
        job.undo == nil ? nil : try ExpectedSchema(ofRecordedTablesIn: connection)
      let types = try load.types(of: fields, job) { index in
        let field = fields[index]
        return insertion.entity.valueType(ofColumn: insertion.column(ofField: field) ?? field)
      }
      return (insertion, types, expected, recordable, triggers)
    }
    files = try await read { () throws(BatchError) in
      try named.completed(load, reading: extent)
    }
    hooks = try RunHooks(job, parameters: parameters)
    self.job = job
    self.load = load
    self.store = store
    self.parameters = parameters
  }

  package var reader: RecordReader { RecordReader(files, load, types: types) }

  /// What a run executes, with the triggers that it sets off.
  package var statements: [String] { [insertion.sql] + triggers }

  /// The records of the files, numbered from 1.
  package func list(_ identity: StoreIdentity) -> PackedIdentifiers {
    files.list(inStore: identity.uuid)
  }

  /// The undo records to keep: of whatever a chunk changes, as those of a run by objects.
  package func undo(of run: RunIdentity) -> StoredUndo? {
    job.undo.map { undo in
      StoredUndo(
        run: run.run,
        job: job.name,
        startedAt: run.startedAt,
        keptUntil: undo.keep.flatMap { run.time(after: $0) },
        entity: insertion.entity.name,
        shape: .objects,
        schema: recordable?.recorded
      )
    }
  }

  package func fingerprint() -> JobFingerprint {
    JobFingerprint(
      job: job,
      parameters: parameters,
      store: "",
      identifiersHash: files.contentHash
    )
  }

  /// Refuses to resume a run whose job, files, store or schema have changed since it began.
  package func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError) {
    try await store.refuse(undone: checkpoint)
    try checkpoint.refuse(
      unless: job,
      parameters,
      in: store,
      expecting: expected,
      identifiersHash: files.contentHash
    )
    try await store.connection(label: "batch.plan").compute { [files, load] () throws(BatchError) in
      try files.refuseChanged(by: load)
    }
  }
}
