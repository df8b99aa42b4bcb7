public import BatchRuns

/// What a run of a job would do, on either store, in the form of `plan --json`.
///
/// What a store or an action does not have is nil, and left out of the JSON.
public struct PlanReport: Sendable, Encodable {
  /// The statements of a run.
  public struct Statements: Sendable, Encodable {
    /// Creates the archive before the first chunk; nil if it exists or there is none.
    public let create: String?
    /// Selects the identifiers.
    public let fetch: String
    /// Is run for each chunk.
    public let apply: String

    package init(
      create: String?,
      fetch: String,
      apply: String
    ) {
      self.create = create
      self.fetch = fetch
      self.apply = apply
    }
  }

  /// A row before and after.
  public struct Sample: Sendable, Encodable {
    /// The identifier's key, as in a URI.
    public let identifier: String
    /// The values that change, or the whole row if it is deleted or exported.
    public let before: [String: SQLValue]
    /// The values after an update; nil if the row is deleted or unchanged, and for a transform: its
    /// program may do more than compute, and a plan does nothing.
    public let after: [String: SQLValue]?

    package init(
      identifier: String,
      before: [String: SQLValue],
      after: [String: SQLValue]?
    ) {
      self.identifier = identifier
      self.before = before
      self.after = after
    }
  }

  /// The number of rows that already have their new values, and are left alone.
  public struct Unchanged: Sendable, Encodable {
    /// The number of such rows.
    public let count: Int
    /// The number of first rows checked.
    public let of: Int

    package init(
      count: Int,
      of: Int
    ) {
      self.count = count
      self.of = of
    }
  }

  /// What must still hold of a row when its turn comes.
  public struct Rechecking: Sendable, Encodable {
    /// A term of the condition that is not rechecked.
    public struct Omission: Sendable, Encodable {
      /// The term.
      public let term: String
      /// The reason.
      public let because: String

      package init(
        term: String,
        because: String
      ) {
        self.term = term
        self.because = because
      }
    }

    /// The job's setting: `row`, `skip`, `fail` or `off`.
    public let mode: String
    /// The terms of the condition that are rechecked.
    public let terms: [String]
    /// The terms that are not.
    public let notRechecked: [Omission]
    /// How long rechecking the first chunk takes; nil if only the row is read, and if it was not
    /// measured.
    public let secondsPerChunk: Double?
    /// Whether it takes longer than that, and was interrupted.
    public let isInterrupted: Bool

    package init(
      mode: String,
      terms: [String],
      notRechecked: [Omission],
      secondsPerChunk: Double? = nil,
      isInterrupted: Bool = false
    ) {
      self.mode = mode
      self.terms = terms
      self.notRechecked = notRechecked
      self.secondsPerChunk = secondsPerChunk
      self.isInterrupted = isInterrupted
    }
  }

  /// How rows are found by key.
  public struct LookUp: Sendable, Encodable {
    /// The database's plan for finding one, or those of a chunk, one step per line.
    public let queryPlan: [String]
    /// Whether that takes so many steps that the rows are copied once and found in the copy.
    public let isCopied: Bool
    /// The approximate size of the copy in bytes; nil without one.
    public let copyBytes: Int?

    package init(
      queryPlan: [String],
      isCopied: Bool = false,
      copyBytes: Int? = nil
    ) {
      self.queryPlan = queryPlan
      self.isCopied = isCopied
      self.copyBytes = copyBytes
    }
  }

  /// The job's name.
  public let job: String
  /// What it does: `update`, `delete`, `export` or `transform`.
  public let action: String
  /// The path of the database, or the server with the name of the database.
  public let database: String
  /// The version of the server; nil on SQLite.
  public package(set) var server: String?
  /// The role in which the server is used; nil on SQLite.
  public package(set) var role: String?
  /// The entity of the job's rows.
  public let entity: String
  /// The columns that identify a row.
  public let key: [String]
  /// The file that determines the run's rows; nil if `where` does.
  public let identifiers: String?
  /// The number of matching rows.
  public let matches: Int
  /// The number of chunks; if they adapt to a target, their number at the size of the first.
  public let chunks: Int
  /// The number of rows in the first chunk, if the next ones adapt to a target; else nil.
  public let firstChunk: Int?
  /// The SQL of the run.
  public let sql: Statements
  /// The database's plan for the selection, one step per line.
  public let queryPlan: [String]
  /// Whether `where` scans all rows; nil on PostgreSQL.
  public package(set) var fullScan: Bool?
  /// How rows are found by key; nil on SQLite, unless an export finds them by keys that the database does not enforce.
  public let lookUp: LookUp?
  /// What must still hold of a row when its turn comes.
  public let recheck: Rechecking
  /// What each chunk locks; nil on SQLite.
  public package(set) var locks: [String]?
  /// The triggers that a chunk sets off; nil on SQLite, where a warning names them.
  public package(set) var triggers: [String]?
  /// The foreign keys that are looked at; nil on SQLite.
  public package(set) var foreignKeys: [String]?
  /// What would spare the server work; nil on SQLite.
  public package(set) var advice: [String]?
  /// What an operator should know before the run.
  public package(set) var warnings: [String]
  /// An estimate of the run's time, from chunks that were tried and undone; nil without rows, if none could be tried on
  /// PostgreSQL, and for a transform without a rate, whose program has not been timed.
  public package(set) var estimatedSeconds: Double?
  /// How long the run takes at least, most likely.
  public package(set) var leastSeconds: Double?
  /// How long it takes at most, most likely; nil also if a term of the condition was interrupted.
  public package(set) var mostSeconds: Double?
  /// The keys of the throttle that determine the time; nil if none does.
  public package(set) var pace: String?
  /// How many of the first rows would be left alone; nil unless the job sets `unchanged`, and on PostgreSQL.
  public package(set) var unchanged: Unchanged?
  /// How many of the first rows were tried against the table's constraints; others may still fail;
  /// nil if the action is not tried.
  public package(set) var triedRows: Int?
  /// How many texts of the first 10,000 rows are not UTF-8; nil for an update or a deletion, in which
  /// no text is read, and on PostgreSQL, which has no such texts.
  public package(set) var invalidTexts: Int?
  /// The columns of the sample, in the order in which they are shown.
  public let columns: [String]
  /// The first rows of the selection.
  public package(set) var sample: [Sample]
  /// What `batch run` would do, in a word, as in ``NextStep/name``.
  public package(set) var next = ""
  /// The same in a clause, with the reason if the run would be refused.
  public package(set) var nextWords = ""

  /// A report; what only one store has is added afterwards.
  package init(
    job: String,
    action: String,
    database: String,
    entity: String,
    key: [String],
    identifiers: String?,
    matches: Int,
    chunks: Int,
    firstChunk: Int?,
    sql: Statements,
    queryPlan: [String],
    lookUp: LookUp?,
    recheck: Rechecking,
    warnings: [String],
    columns: [String],
    sample: [Sample] = []
  ) {
    self.job = job
    self.action = action
    self.database = database
    self.entity = entity
    self.key = key
    self.identifiers = identifiers
    self.matches = matches
    self.chunks = chunks
    self.firstChunk = firstChunk
    self.sql = sql
    self.queryPlan = queryPlan
    self.lookUp = lookUp
    self.recheck = recheck
    self.warnings = warnings
    self.columns = columns
    self.sample = sample
  }
}
