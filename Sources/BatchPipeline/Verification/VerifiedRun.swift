import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

/// The facts about a job's last run that determine which differences are expected.
struct VerifiedRun {
  let store: Store
  let run: String
  let done: Int
  /// The changes that the job may make to these rows; nil if nothing may differ.
  let expected: ExpectedChanges?

  /// A statement that fires the same triggers as the run; nil if the run wrote nothing.
  private let statement: String?

  init(
    _ name: String?,
    of job: Job,
    allowing columns: [String]
  ) async throws(BatchError) {
    let checkpoint = try Checkpoint.ofRun(name, of: job)
    try checkpoint.refuse(unless: job, nil)
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      throw BatchError(
        .alreadyRunning,
        "a run of this job is alive (process \(process)), and changes rows meanwhile",
        at: job.checkpointPath.string,
        remedy: "wait for its end"
      )
    }
    do throws(BatchError) {
      store = try await job.storeToRead()
    } catch {
      throw job.located(openingStore: error)
    }
    let identifier = checkpoint.list.header.storeIdentifier
    guard store.identity.admits(identifier, atPath: store.path) else {
      throw BatchError(
        .otherRun,
        "the checkpoint belongs to store \(identifier), the database is \(store.identity.uuid)",
        at: job.checkpointPath.string,
        remedy: "restore the run's database"
      )
    }
    let ranges = try await checkpoint.doneRanges(of: job)
    run = checkpoint.metadata.run
    done = ranges.count
    statement = try job.statement(in: store)
    expected = try job.expectedChanges(
      in: store,
      allowing: columns,
      rows: checkpoint.list.slice(ranges.rows.map { $0.first..<$0.next }).packed
    )
  }
}

extension VerifiedRun {
  /// Notes about the triggers that the run has fired, and what they may have written.
  func notesAboutTriggers() async throws(BatchError) -> [String] {
    guard let statement else { return [] }
    return try await store.connection(label: "batch.verify").perform {
      connection throws(BatchError) in
      var notes: [String] = []
      let triggers = try connection.triggers(setOffBy: [statement])
      for (name, written) in triggers.sorted(by: { $0.key < $1.key }) where !written.isEmpty {
        let table = try connection.texts(
          "SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name = ?",
          .text(name)
        ).first
        let columns = written.sorted { $0.key < $1.key }.flatMap { other, columns in
          columns.isEmpty
            ? ["rows of \(other.quotedForMessage)"]
            : columns.sorted().map { other == table ? $0 : "\(other).\($0)" }
        }
        notes.append(
          "\((table ?? "").quotedForMessage) has the trigger \(name), which may have written"
            + " \(columns.joined(separator: ", "))"
        )
      }
      return notes
    }
  }
}

extension Job.Action {
  fileprivate var isDelete: Bool { if case .delete = self { true } else { false } }
}

extension Job {
  /// A statement that sets the job's columns, or deletes rows, like the job.
  fileprivate func statement(in store: Store) throws(BatchError) -> String? {
    guard action.writes else { return nil }
    let entity = try store.schema.entity(named: source.entity)
    let written = try WrittenEntity(entity, in: store)
    let table = SQLName.quoted(written.entity.table)
    if action.isDelete { return "DELETE FROM \(table)" }
    let columns = columns(of: entity, written).map(SQLName.quoted)
    return "UPDATE \(table) SET \(columns.map { "\($0) = \($0)" }.joined(separator: ", "))"
  }

  /// The columns of the table that the job sets, including those that it no longer has.
  private func columns(of entity: Entity, _ written: WrittenEntity) -> [String] {
    let names =
      switch action {
      case .update(let update): update.set.map(\.column)
      case .transform(let transform): transform.writes
      case .delete, .export: [String]()
      }
    var columns: [String] = []
    for name in names {
      let own = entity.attribute(named: name).map(written.columnNames) ?? [name]
      columns += own.filter { !columns.contains($0) }
    }
    return columns
  }

  /// Columns of the job's table that others may have changed in the rows of the run.
  private func columns(
    named names: [String],
    of entity: Entity,
    _ written: WrittenEntity
  ) throws(BatchError) -> [String] {
    var columns: [String] = []
    for name in names {
      let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
      guard parts.count == 2, SQLName.equal(parts[0], entity.name), !action.isDelete,
        action.writes
      else {
        throw BatchError(
          .invalidJob,
          "\(name.quotedForMessage) is not a column of rows that the run changed",
          remedy: "name one of \(entity.name.quotedForMessage) as \(entity.name).COLUMN"
        )
      }
      columns += written.columnNames(of: try entity.requireAttribute(named: parts[1]))
    }
    return columns
  }

  /// The changes that the job may make to some rows; nil if it leaves all unchanged.
  fileprivate func expectedChanges(
    in store: Store,
    allowing others: [String],
    rows: PackedIdentifiers
  ) throws(BatchError) -> ExpectedChanges? {
    guard action.writes else {
      guard let first = others.first else { return nil }
      throw BatchError(
        .invalidJob,
        "\(first.quotedForMessage) is not a column of rows that the run changed: an export changes none"
      )
    }
    let expected: ExpectedChanges.Action
    let entity = try store.schema.entity(named: source.entity)
    let written = try WrittenEntity(entity, in: store)
    let others = try columns(named: others, of: entity, written)
    switch action {
    case .update, .transform:
      expected = .update(columns: columns(of: entity, written) + others)
    case .delete(let delete):
      var archive: ExpectedChanges.Archive?
      if let name = delete.archive {
        archive = .init(
          try store.schema.entity(named: name),
          of: written.entity,
          isCreated: delete.createsArchive
        )
      }
      expected = .delete(archive: archive)
    case .export:
      return nil
    }
    let key = if let key = source.key { key } else { try entity.requireKey().columns }
    return try ExpectedChanges(
      table: written.entity.table,
      key: key,
      action: expected,
      rows: rows
    )
  }
}
