import BatchJobs
import BatchRuns
public import BatchIdentifiers
public import BatchSQLite
public import SystemPackage

/// A comparison of a database after a job's last run with a copy from before it.
///
/// It shows whether the run changed what the job declares, and nothing else.
///
///     let verification = try await job.verify(against: "shop-before.db")
///     for difference in verification.differences { print(difference.table, difference.key) }
///
/// Every row of every table is matched by key and compared by storage class and bytes.
///
/// In the rows that the run processed, an update may change the columns that it sets, and a
/// transform those that it may write. A deletion may remove the rows; if there is an archive, it
/// must have a copy of each, and no other new rows. Everything else is a difference, including
/// changes by triggers and foreign keys. The comparison excludes views, virtual tables (but not the
/// tables that hold their data), the `_batch_…` tables of runs, and the statistics of SQLite.
public struct Verification: Sendable, Encodable {
  /// The job's name.
  public let job: String
  /// The run's UUID.
  public let run: String
  /// The database of the job.
  public let database: String
  /// The path of the copy.
  public let file: String
  /// The number of identifiers that the run has done.
  public let selected: Int
  /// The number of tables compared.
  public let tables: Int
  /// The number of rows compared, including those in only one of the two databases.
  public let rows: Int
  /// The tables whose rows were not compared, and why.
  package let uncompared: [UncomparedTable]
  /// The columns that the job sets, as `table.column`.
  ///
  /// Their values may differ in selected rows, but whether the new values are right is unknown.
  public let uncheckedColumns: [String]
  /// The number of rows that differ in columns that the job sets.
  public let changedAsDeclared: Int
  /// The number of rows that the job deleted.
  public let deletedAsDeclared: Int
  /// The number of rows in the archive that are copies of these.
  public let archivedAsDeclared: Int
  /// The number of rows with values that the job does not explain.
  public let changed: Int
  /// The number of rows that are only in the database.
  public let added: Int
  /// The number of rows that are only in the copy.
  public let removed: Int
  /// The number of tables, indexes, triggers and views that differ.
  public let schema: Int
  /// For each table with differences, the number of rows and the columns that differ.
  package let byTable: [TableDifferences]
  /// The first of these differences.
  public let differences: [StoreDifference]
  /// Possible causes, in words.
  public let notes: [String]

  /// The number of differences that the job does not explain.
  public var differenceCount: Int { changed + added + removed + schema }
  /// Whether the job explains all differences.
  public var isAsDeclared: Bool { differenceCount == 0 }

  package init(
    of job: Job,
    against file: FilePath,
    run name: String? = nil,
    allowing columns: [String] = [],
    limit: Int,
    partCount: Int,
    progress: @escaping @Sendable (Int) -> Void
  ) async throws(BatchError) {
    let limit = min(max(limit, 0), Self.maximumLimit)
    let run = try await VerifiedRun(name, of: job, allowing: columns)
    let path = try Self.path(ofCopy: file, of: run.store)
    let copy = try await job.storeToRead(atPath: path)
    try run.store.refuseOther(copy)
    let comparison = try await StoreComparison(
      of: run.store,
      and: path,
      for: .surprises(run.expected, limit: limit),
      partCount: partCount,
      progress: progress
    )
    self.job = job.name
    self.run = run.run
    self.file = path
    database = run.store.path
    selected = run.done
    tables = comparison.tables
    rows = comparison.rows
    uncompared = comparison.uncompared
    uncheckedColumns = comparison.uncheckedColumns
    changedAsDeclared = comparison.changed
    deletedAsDeclared = comparison.deleted
    archivedAsDeclared = comparison.copied
    changed = comparison.counts[.changed, default: 0]
    added = comparison.counts[.added, default: 0]
    removed = comparison.counts[.removed, default: 0]
    schema = comparison.counts[.schema, default: 0]
    byTable = comparison.byTable
    differences = comparison.differences
    let triggers =
      comparison.counts.values.allSatisfy { $0 == 0 } ? [] : try await run.notesAboutTriggers()
    notes =
      triggers + comparison.uncompared.map(\.note)
      + comparison.movedTables.map { table in
        "most rows of \(table.quotedForMessage) differ, and it has no INTEGER PRIMARY KEY: its rows may have"
          + " got new rowids, as after VACUUM; compare with a copy of the file"
      }
  }

  /// The maximum number of differences to keep.
  public static let maximumLimit = 1000

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

extension Verification {
  private enum CodingKeys: CodingKey {
    case job, run, database, file, selected, tables, rows, uncompared, uncheckedColumns
    case changedAsDeclared, deletedAsDeclared, archivedAsDeclared, changed, added, removed, schema,
      byTable, differences, notes
    case isAsDeclared
  }

  /// Encodes the results, and whether they are as declared.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(job, forKey: .job)
    try container.encode(run, forKey: .run)
    try container.encode(database, forKey: .database)
    try container.encode(file, forKey: .file)
    try container.encode(selected, forKey: .selected)
    try container.encode(tables, forKey: .tables)
    try container.encode(rows, forKey: .rows)
    try container.encode(uncompared, forKey: .uncompared)
    try container.encode(uncheckedColumns, forKey: .uncheckedColumns)
    try container.encode(changedAsDeclared, forKey: .changedAsDeclared)
    try container.encode(deletedAsDeclared, forKey: .deletedAsDeclared)
    try container.encode(archivedAsDeclared, forKey: .archivedAsDeclared)
    try container.encode(changed, forKey: .changed)
    try container.encode(added, forKey: .added)
    try container.encode(removed, forKey: .removed)
    try container.encode(schema, forKey: .schema)
    try container.encode(byTable, forKey: .byTable)
    try container.encode(differences, forKey: .differences)
    try container.encode(notes, forKey: .notes)
    try container.encode(isAsDeclared, forKey: .isAsDeclared)
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
}

extension Job {
  /// Checks that only what a run declares has changed, by comparing the database with a copy.
  ///
  /// Both are only read, in transactions that last as long as the comparison. With a write-ahead
  /// log, others may write in the meantime, and the log grows.
  ///
  /// - Parameters:
  ///   - file: A backup or a clone of the database from before the run.
  ///   - name: The UUID of one of the job's last runs, or the beginning of it; nil for the last
  ///     run.
  ///   - columns: Other columns of the job's table that may differ in the rows that the run has
  ///     done, as `table.column`, such as a column that a trigger maintains.
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
    run name: String? = nil,
    allowing columns: [String] = [],
    limit: Int = 20,
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws(BatchError) -> Verification {
    try await Verification(
      of: self,
      against: file,
      run: name,
      allowing: columns,
      limit: limit,
      partCount: StoreComparison.partCount,
      progress: progress
    )
  }
}
