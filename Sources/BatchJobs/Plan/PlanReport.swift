public import BatchRuns

/// What a run of a job would do, as `plan --json` prints it.
///
/// Values that do not exist for the store or the action are nil, and omitted from the JSON.
public struct PlanReport: Sendable, Encodable {
  /// The SQL statements of a run.
  public struct Statements: Sendable, Encodable {
    /// Creates the archive before the first chunk; nil if it exists or there is none.
    public let create: String?
    /// Selects the identifiers.
    public let fetch: String
    /// Processes a chunk.
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

  /// A row before and after the run.
  public struct Sample: Sendable, Encodable {
    /// The key of the row, as in a URI.
    public let identifier: String
    /// The values that change; the whole row if it is deleted or exported.
    public let before: [String: SQLValue]
    /// The values after an update; nil if the row is deleted or unchanged.
    ///
    /// It is also nil for a transform: its program may have effects, and a plan has none.
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

  /// How many rows already have their new values, and are not written.
  public struct Unchanged: Sendable, Encodable {
    /// The number of such rows.
    public let count: Int
    /// The number of rows that were checked: the first ones.
    public let of: Int

    package init(
      count: Int,
      of: Int
    ) {
      self.count = count
      self.of = of
    }
  }

  /// How `where` is checked again when the turn of a row comes.
  public struct Rechecking: Sendable, Encodable {
    /// A term of the condition that is not checked again.
    public struct Omission: Sendable, Encodable {
      /// The term in SQL.
      public let term: String
      /// The reason why it is not checked.
      public let because: String

      package init(
        term: String,
        because: String
      ) {
        self.term = term
        self.because = because
      }
    }

    /// The setting of the job: `row`, `skip`, `fail` or `off`.
    public let mode: String
    /// The terms of the condition that are checked again.
    public let terms: [String]
    /// The terms of the condition that are not checked again.
    public let notRechecked: [Omission]
    /// How long the check takes for the first chunk.
    ///
    /// It is nil if only the row itself is read, or if the time was not measured.
    public let secondsPerChunk: Double?
    /// Whether the check takes longer than that, and was interrupted.
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
    /// The database's plan for finding one row, or those of a chunk, one step per line.
    public let queryPlan: [String]
    /// Whether finding rows takes so many steps that they are copied once, and found in the copy.
    public let isCopied: Bool
    /// The approximate size of the copy in bytes; nil if there is none.
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

  /// How space is given back after the last row.
  public struct Afterwards: Sendable, Encodable {
    /// How: `vacuum` or `incremental`.
    public let by: String
    /// The size of the database; on PostgreSQL, of the table and its indexes.
    public let bytes: Int64
    /// What is free in it before the run, and would return without one; nil on PostgreSQL.
    public let freeBytes: Int64?
    /// The free space that it needs at most; nil for none.
    public let neededBytes: Int64?

    package init(by name: String, bytes: Int64, freeBytes: Int64?, neededBytes: Int64?) {
      (by, self.bytes, self.freeBytes, self.neededBytes) = (name, bytes, freeBytes, neededBytes)
    }
  }

  /// A file that a load reads.
  public struct LoadedFile: Sendable, Encodable {
    /// The path of the file.
    public let path: String
    /// The number of its records.
    public let records: Int
    /// Its size.
    public let bytes: Int

    package init(path: String, records: Int, bytes: Int) {
      (self.path, self.records, self.bytes) = (path, records, bytes)
    }
  }

  /// What a load reads.
  public struct Load: Sendable, Encodable {
    /// The files, in the order in which they are loaded.
    public let files: [LoadedFile]
    /// The type of each of their values, by name: the job's, or that of the column which gets it.
    public let types: [String: String]
    /// What happens if the table already has a row with the key: `fail`, `ignore` or `update`.
    public let onConflict: String

    package init(files: [LoadedFile], types: [String: String], onConflict: String) {
      (self.files, self.types, self.onConflict) = (files, types, onConflict)
    }
  }

  /// The job's name.
  public let job: String
  /// The type of the action: `update`, `delete`, `export`, `transform` or `load`.
  public let action: String
  /// The path of the database, or the server and the name of the database.
  public let database: String
  /// The SHA-256 of everything that decides what a run would do, for ``RunOptions/plan``.
  ///
  /// It is nil unless the job has ``Job/approval`` or it was asked for.
  public package(set) var digest: String?
  /// What a load reads; nil for other actions.
  public package(set) var load: Load?
  /// The range of rows that an export of what changed has; nil for other work.
  public package(set) var increment: ExportedRange?
  /// The types of the columns of a Parquet file, by name; nil for other outputs.
  public package(set) var types: [String: String]?
  /// The version of the server; nil on SQLite.
  public package(set) var server: String?
  /// The role that is used on the server; nil on SQLite.
  public package(set) var role: String?
  /// The entity of the job's rows.
  public let entity: String
  /// The columns that identify a row.
  public let key: [String]
  /// The identifier file that determines the rows; nil if `where` does.
  public let identifiers: String?
  /// The number of matching rows.
  public let matches: Int
  /// The number of chunks; if sizes adapt to a target, the number at the size of the first chunk.
  public let chunks: Int
  /// The number of rows in the first chunk if sizes adapt to a target; nil otherwise.
  public let firstChunk: Int?
  /// The SQL statements of a run.
  public let sql: Statements
  /// The database's plan for the selection, one step per line.
  public let queryPlan: [String]
  /// Whether `where` scans all rows; nil on PostgreSQL.
  public package(set) var fullScan: Bool?
  /// How rows are found by key; nil on SQLite, except for exports with keys that are not enforced.
  public let lookUp: LookUp?
  /// How `where` is checked again when the turn of a row comes.
  public let recheck: Rechecking
  /// The locks that each chunk takes; nil on SQLite.
  public package(set) var locks: [String]?
  /// The triggers that a chunk fires; nil on SQLite, where a warning names them.
  public package(set) var triggers: [String]?
  /// The foreign keys that are checked; nil on SQLite.
  public package(set) var foreignKeys: [String]?
  /// Advice that would save the server work; nil on SQLite.
  public package(set) var advice: [String]?
  /// Facts that an operator should know before the run.
  public package(set) var warnings: [String]
  /// The estimated time of the run, from chunks that were tried and rolled back.
  ///
  /// It is nil without rows, if no chunk could be tried on PostgreSQL, and for a transform without
  /// a rate, whose program has not been timed.
  public package(set) var estimatedSeconds: Double?
  /// The likely minimum time of the run.
  public package(set) var leastSeconds: Double?
  /// The likely maximum time of the run; also nil if checking a term, or trying a row, took too long.
  public package(set) var mostSeconds: Double?
  /// The keys of the throttle that determine the time; nil if none does.
  public package(set) var pace: String?
  /// How many of the first rows would not be written; nil unless the job sets `unchanged`, and on
  /// PostgreSQL.
  public package(set) var unchanged: Unchanged?
  /// How many of the first rows were tried against the constraints of the table.
  ///
  /// Others may still fail. It is nil if the action was not tried.
  public package(set) var triedRows: Int?
  /// What was left out of trying them, in words: triggers, and unique indexes of expressions, with
  /// conditions or of generated columns; nil if nothing was.
  public package(set) var untried: String?
  /// How space is given back after the last row; nil if it is not.
  public package(set) var afterwards: Afterwards?
  /// How many texts of the first 10,000 rows are not UTF-8.
  ///
  /// It is nil for an update or a deletion, which read no text, and on PostgreSQL, which has no
  /// such texts.
  public package(set) var invalidTexts: Int?
  /// The columns of the sample, in display order.
  public let columns: [String]
  /// The first rows of the selection.
  public package(set) var sample: [Sample]
  /// What `batch run` would do, in a word; see ``NextStep/name``.
  public package(set) var next = ""
  /// What `batch run` would do, in a clause with the reason if the run would be refused.
  public package(set) var nextWords = ""

  /// Values that only one kind of store has are added afterwards.
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
