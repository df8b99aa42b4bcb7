public import BatchIdentifiers
public import BatchJobs
import BatchRuns
import BatchSQLite
public import SystemPackage

extension Verification {
  /// The choices of a verification.
  package struct Choices: Sendable {
    /// The runs, by their UUIDs or the beginnings of them, in the order in which they ran; empty for
    /// the last run of each job.
    package var runs: [String] = []
    /// The values of parameters that are not recorded, as `name=value`.
    package var parameters: [String] = []
    /// What may differ, as `table` or `table.column`.
    package var allowed: [String] = []
    package var limit = 20
    package var partCount = StoreComparison.partCount

    package init() {}
  }

  package init(
    of jobs: [Job],
    against file: FilePath,
    _ choices: Choices = .init(),
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws(BatchError) {
    if let verification = try await Verification(onServerOf: jobs, against: file.string, choices) {
      self = verification
      return
    }
    let runs = try await VerifiedRun.all(of: jobs, choices)
    let store = runs[0].store
    let copy = try store.copy(named: file.string, of: runs.compactMap(\.changes))
    let path = copy == nil ? try Self.path(ofCopy: file, of: store) : store.path
    if copy == nil { try store.refuseOther(try await runs[0].job.storeToRead(atPath: path)) }
    let changes = runs.compactMap { copy == nil ? $0.changes : $0.changes?.withoutArchive }
    let allowed = try await store.allowed(choices.allowed)
    let comparison = try await StoreComparison(
      of: store,
      and: path,
      table: copy,
      for: .surprises(
        changes,
        unchecked: allowed + runs.flatMap(\.unchecked),
        limit: min(max(choices.limit, 0), Self.maximumLimit)
      ),
      partCount: choices.partCount,
      progress: progress
    )
    self.init(of: runs.map(\.description), database: store.path, file: copy ?? path)
    tables = comparison.tables
    rows = comparison.rows
    uncompared = comparison.uncompared
    computedColumns = comparison.computedColumns
    unchecked = comparison.unchecked
    changedAsDeclared = comparison.set
    deletedAsDeclared = comparison.deleted
    archivedAsDeclared = comparison.copied
    changed = comparison.counts[.changed, default: 0]
    added = comparison.counts[.added, default: 0]
    removed = comparison.counts[.removed, default: 0]
    outcome = comparison.counts[.outcome, default: 0]
    schema = comparison.counts[.schema, default: 0]
    byTable = comparison.byTable
    differences = comparison.differences
    notes =
      (copy.map { ["only the rows of the job's table were compared, with \($0.quotedForMessage)"] }
        ?? [])
      + comparison.uncompared.map(\.note)
      + comparison.movedTables.map { table in
        "most rows of \(table.quotedForMessage) differ, and it has no INTEGER PRIMARY KEY: its rows may have"
          + " got new rowids, as after VACUUM; compare with a copy of the file"
      }
    for run in runs {
      let undo = CompletedUndo(of: run.description.run, ofWork: run.job)
      if let undo { notes.append("run \(run.description.run) was undone by run \(undo.run)") }
    }
    // What an earlier run gave, a later one may have replaced.
    if let last = runs.last, last.hasAnswers, let table = last.changes?.table {
      try await compareAnswers(of: last, in: table, limit: choices.limit)
    }
  }

  /// Compares what a program gave with the run's undo records.
  private mutating func compareAnswers(
    of run: VerifiedRun,
    in table: String,
    limit: Int
  ) async throws(BatchError) {
    let report = try await UndoReport(
      undoingWork: run.job,
      run: run.description.run,
      showing: limit
    )
    computedColumns += report.comparedColumns.map { "\(table).\($0)" }
    unchecked.removeAll { $0.table == table && $0.because == UncheckedPart.ofProgram }
    let wrong = report.outcomes.failed + report.outcomes.unchanged
    guard wrong > 0 else { return }
    changed += wrong
    changedAsDeclared -= min(wrong, changedAsDeclared)
    let known = byTable.first { $0.table == table }
    byTable.removeAll { $0.table == table }
    let counts: [StoreDifference.Kind: Int] = [
      .changed: wrong + (known?.changed ?? 0), .added: known?.added ?? 0,
      .removed: known?.removed ?? 0, .outcome: known?.outcome ?? 0,
    ]
    byTable += [TableDifferences(table, counts, known?.columns ?? [])].compactMap(\.self)
    let found = report.changedSince.map { StoreDifference(.changed, table, detail: $0) }
    differences = Array((differences + found).prefix(limit))
  }

  /// The copy must not be the database itself.
  private static func path(
    ofCopy file: FilePath,
    of store: Store
  ) throws(BatchError) -> String {
    let path = try resolvedPath(file.string)
    let identity = FileSystem.status(of: FilePath(path))?.identity
    guard identity != FileSystem.status(of: FilePath(store.path))?.identity else {
      throw BatchError(
        .otherStore,
        "this is the database of the job itself",
        at: file.string,
        remedy: "name a copy of it from before the run"
      )
    }
    return path
  }
}

extension Store {
  fileprivate func refuseOther(_ copy: Store) throws(BatchError) {
    let remedy = "name a copy of \(path) from before the run"
    if !identity.isDerived, !copy.identity.isDerived, identity.uuid != copy.identity.uuid {
      throw BatchError(
        .otherStore,
        "this is another database: store \(copy.identity.uuid), and not \(identity.uuid)",
        at: copy.path,
        remedy: remedy
      )
    }
    // A copy from before the first run has no identity.
    let tables = Set(schema.all.filter { $0.kind == .table }.map(\.table))
    guard copy.schema.all.contains(where: { tables.contains($0.table) }) else {
      throw BatchError(
        .otherStore,
        "this is another database: it has no table of the database",
        at: copy.path,
        remedy: remedy
      )
    }
  }

  /// The table of this database that a name means, if it is not that of a file.
  fileprivate func copy(
    named name: String,
    of changes: [ExpectedChanges]
  ) throws(BatchError) -> String? {
    guard FileSystem.status(of: FilePath(name)) == nil,
      let copy = schema.all.first(where: { $0.kind == .table && SQLName.equal($0.table, name) })
    else { return nil }
    guard let table = changes.first?.table,
      changes.allSatisfy({ $0.table == table && copy.table != table })
    else {
      throw BatchError(
        .otherStore,
        "the table \(name.quotedForMessage) is not a copy of one table that the runs changed",
        at: path,
        remedy: "name a copy of the database from before the run"
      )
    }
    return copy.table
  }

  /// The parts that a person allows to differ, as `table` or `table.column`.
  fileprivate func allowed(_ names: [String]) async throws(BatchError) -> [UncheckedPart] {
    if names.isEmpty { return [] }
    // Tables behind virtual ones are no entities.
    let tables = try await connection(label: "batch.verify").perform {
      connection throws(BatchError) in
      try connection.texts(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')"
      )
    }
    return try names.map { name throws(BatchError) in
      if let table = tables.first(where: { SQLName.equal($0, name) }) {
        return UncheckedPart(table, because: UncheckedPart.allowed)
      }
      // A name may have a point in it.
      let points = name.indices.filter { name[$0] == "." }
      let point = points.first { point in
        tables.contains { SQLName.equal($0, String(name[..<point])) }
      }
      let entity = try schema.entity(named: point.map { String(name[..<$0]) } ?? name)
      guard let point else { return UncheckedPart(entity.table, because: UncheckedPart.allowed) }
      let attribute = try entity.requireAttribute(named: String(name[name.index(after: point)...]))
      return UncheckedPart(entity.table, attribute.column, because: UncheckedPart.allowed)
    }
  }
}

extension Job {
  /// Checks that runs did what they declare, and that nothing else has changed, by comparing the
  /// database with a copy.
  ///
  /// Both are only read, in transactions that last as long as the comparison. With a write-ahead
  /// log, others may write in the meantime, and the log grows.
  ///
  /// - Parameters:
  ///   - file: A backup or a clone of the database from before the runs; or a table of the database
  ///     that has the rows of the job's table as they were, to compare only these.
  ///   - earlier: Other jobs that have run since the copy, before this one, in their order.
  ///   - names: The runs, by their UUIDs or the beginnings of them, in the order in which they ran;
  ///     empty for the last run of each job.
  ///   - parts: What else may differ, as `table` or `table.column`.
  ///   - limit: The number of differences to keep, up to ``Verification/maximumLimit``; all are
  ///     counted.
  ///   - progress: Called with the number of rows compared so far, on any thread.
  /// - Returns: The differences.
  /// - Throws: `BatchError` of code `otherStore` if the file is not a copy of the database,
  ///   `alreadyRunning` if the run is alive, `otherRun` if the job is no longer that of its
  ///   checkpoint, or the error of a file that cannot be read.
  /// - Complexity: O(*n*) in the rows of both databases. Memory is needed for the packed list of
  ///   identifiers, 8 bytes each unless they are integers, and for the kept differences.
  public func verify(
    against file: FilePath,
    after earlier: [Job] = [],
    runs names: [String] = [],
    allowing parts: [String] = [],
    limit: Int = 20,
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws(BatchError) -> Verification {
    var choices = Verification.Choices()
    choices.runs = names
    choices.allowed = parts
    choices.limit = limit
    return try await Verification(of: earlier + [self], against: file, choices, progress: progress)
  }
}
