import BatchIdentifiers
public import BatchRuns

/// A comparison of a database after runs of jobs with a copy from before them.
///
/// It shows whether the runs did what the jobs declare, and nothing else has changed.
///
///     let verification = try await job.verify(against: "shop-before.db")
///     for difference in verification.differences { print(difference.table, difference.key) }
///
/// Every row of every table is matched by key and compared by storage class and bytes.
///
/// Each row must be in the state that its run recorded. In a row that an update has changed, the
/// columns that it sets must have the values that its expressions give over the row in the copy. A
/// deleted row must be gone; if there is an archive, it must have a copy of each, and no other new
/// rows. All others must be as in the copy. What cannot be checked is named and counted: values of
/// programs, of the time, of chance or of other tables, and what triggers and foreign keys may
/// write. The comparison excludes views, virtual tables (but not the tables that hold their data),
/// the `_batch_…` tables of runs, and the statistics of SQLite.
public struct Verification: Sendable {
  /// A run whose effect was checked.
  public struct Run: Sendable, Hashable, Encodable {
    /// The job's name.
    public let job: String
    /// The run's UUID.
    public let run: String
    /// The number of identifiers that the run has done.
    public let done: Int
    /// Their outcome, as the run recorded it.
    public let outcomes: Outcomes

    package init(job: String, run: String, outcomes: Outcomes) {
      self.job = job
      self.run = run
      done = outcomes.total
      self.outcomes = outcomes
    }
  }

  /// The runs, in the order in which they ran.
  public let runs: [Run]
  /// The database of the jobs.
  public let database: String
  /// The path of the copy.
  public let file: String
  /// The number of tables compared.
  public package(set) var tables = 0
  /// The number of rows compared, including those in only one of the two databases.
  public package(set) var rows = 0
  /// The tables whose rows were not compared, and why.
  package var uncompared: [UncomparedTable] = []
  /// The columns that the runs set, as `table.column`, whose values were computed again.
  public package(set) var computedColumns: [String] = []
  /// What differs and was not checked, and why not.
  public package(set) var unchecked: [UncheckedPart] = []
  /// The number of rows that the runs have set, and that are as they should be.
  public package(set) var changedAsDeclared = 0
  /// The number of rows that the runs have deleted.
  public package(set) var deletedAsDeclared = 0
  /// The number of rows in archives that are copies of these.
  public package(set) var archivedAsDeclared = 0
  /// The number of rows with values that the runs do not explain.
  public package(set) var changed = 0
  /// The number of rows that are only in the database.
  public package(set) var added = 0
  /// The number of rows that are only in the copy.
  public package(set) var removed = 0
  /// The number of rows that are not in the state that their run recorded.
  public package(set) var outcome = 0
  /// The number of tables, indexes, triggers and views that differ.
  public package(set) var schema = 0
  /// For each table with differences, the number of rows and the columns that differ.
  package var byTable: [TableDifferences] = []
  /// The first of these differences.
  public package(set) var differences: [StoreDifference] = []
  /// Possible causes, in words.
  public package(set) var notes: [String] = []

  package init(of runs: [Run], database: String, file: String) {
    self.runs = runs
    self.database = database
    self.file = file
  }

  /// The number of identifiers that the runs have done.
  public var selected: Int { runs.reduce(0) { $0 + $1.done } }
  /// The number of differences that the runs do not explain.
  public var differenceCount: Int { changed + added + removed + outcome + schema }
  /// Whether the runs explain all differences but those that were not checked.
  public var isAsDeclared: Bool { differenceCount == 0 }

  /// The maximum number of differences to keep.
  public static let maximumLimit = 1000
}

extension Verification: Encodable {
  private enum CodingKeys: CodingKey {
    case runs, database, file, selected, tables, rows, uncompared, computedColumns, unchecked
    case changedAsDeclared, deletedAsDeclared, archivedAsDeclared
    case changed, added, removed, outcome, schema, byTable, differences, notes, isAsDeclared
  }

  /// Encodes the results, and whether they are as declared.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(runs, forKey: .runs)
    try container.encode(database, forKey: .database)
    try container.encode(file, forKey: .file)
    try container.encode(selected, forKey: .selected)
    try container.encode(tables, forKey: .tables)
    try container.encode(rows, forKey: .rows)
    try container.encode(uncompared, forKey: .uncompared)
    try container.encode(computedColumns, forKey: .computedColumns)
    try container.encode(unchecked, forKey: .unchecked)
    try container.encode(changedAsDeclared, forKey: .changedAsDeclared)
    try container.encode(deletedAsDeclared, forKey: .deletedAsDeclared)
    try container.encode(archivedAsDeclared, forKey: .archivedAsDeclared)
    try container.encode(changed, forKey: .changed)
    try container.encode(added, forKey: .added)
    try container.encode(removed, forKey: .removed)
    try container.encode(outcome, forKey: .outcome)
    try container.encode(schema, forKey: .schema)
    try container.encode(byTable, forKey: .byTable)
    try container.encode(differences, forKey: .differences)
    try container.encode(notes, forKey: .notes)
    try container.encode(isAsDeclared, forKey: .isAsDeclared)
  }
}
