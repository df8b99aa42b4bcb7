package import BatchIdentifiers

/// What the store keeps so that a run can be undone: its row of `_batch_undo_run`, and its records in
/// `_batch_undo`.
package struct StoredUndo: Sendable {
  /// The run's UUID.
  package let run: String
  /// The name of its job.
  package let job: String
  /// When it began, as an ISO 8601 timestamp in UTC.
  package let startedAt: String
  /// Until when the records are kept, as an ISO 8601 timestamp in UTC; nil for ever.
  package let keptUntil: String?
  /// The entity whose rows it changed.
  package let entity: String
  /// What was recorded.
  package let shape: UndoShape

  package init(
    run: String,
    job: String,
    startedAt: String,
    keptUntil: String?,
    entity: String,
    shape: UndoShape
  ) {
    self.run = run
    self.job = job
    self.startedAt = startedAt
    self.keptUntil = keptUntil
    self.entity = entity
    self.shape = shape
  }

  // MARK: The tables

  private static let tables = """
    SELECT count(*) = 2 FROM sqlite_schema
    WHERE type = 'table' AND name IN ('_batch_undo_run', '_batch_undo')
    """

  private static func createTables(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_undo_run (
        run TEXT PRIMARY KEY, job TEXT NOT NULL, started_at TEXT NOT NULL, kept_until TEXT,
        entity TEXT NOT NULL, key TEXT NOT NULL, columns TEXT NOT NULL, is_deletion INTEGER NOT NULL
      ) WITHOUT ROWID
      """
    )
    // A later record of a run has a higher number.
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_undo (
        number INTEGER PRIMARY KEY, run TEXT NOT NULL, rows INTEGER NOT NULL, bytes BLOB NOT NULL
      )
      """
    )
    try connection.execute("CREATE INDEX IF NOT EXISTS _batch_undo_by_run ON _batch_undo (run)")
  }

  /// Enters a run that begins, in the transaction that enters it.
  func enter(in connection: Connection) throws(BatchError) {
    try Self.createTables(in: connection)
    try connection.execute(
      "INSERT INTO _batch_undo_run VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      .text(run),
      .text(job),
      .text(startedAt),
      keptUntil.map { .text($0) } ?? .null,
      .text(entity),
      .text(Self.json(shape.key)),
      .text(Self.json(shape.columns)),
      .integer(shape.isDeletion ? 1 : 0)
    )
  }

  private static func json(_ names: [String]) -> String {
    var json: [UInt8] = []
    for name in names {
      json.append(UInt8(ascii: json.isEmpty ? "[" : ","))
      JSONString.append(name, to: &json)
    }
    return String(decoding: json.isEmpty ? [UInt8(ascii: "[")] : json, as: UTF8.self) + "]"
  }

  /// Removes the records of a job's runs that are not kept any more.
  ///
  /// - Parameters:
  ///   - job: The job's name.
  ///   - now: The time, as an ISO 8601 timestamp in UTC.
  ///   - connection: The connection, in a transaction.
  /// - Returns: How many runs cannot be undone any more.
  /// - Throws: What SQLite says.
  static func removeExpired(
    ofJob job: String,
    at now: String,
    in connection: Connection
  ) throws(BatchError) -> Int {
    guard try connection.value(tables) == .integer(1) else { return 0 }
    try connection.execute(
      "DELETE FROM _batch_undo_run WHERE job = ? AND kept_until < ?",
      .text(job),
      .text(now)
    )
    let count = connection.changes
    if count > 0 {
      try connection.execute(
        "DELETE FROM _batch_undo WHERE run NOT IN (SELECT run FROM _batch_undo_run)"
      )
    }
    return count
  }

  /// The runs of a job that can be undone, the last one first.
  static func all(ofJob job: String, in connection: Connection) throws(BatchError) -> [StoredUndo] {
    guard try connection.value(tables) == .integer(1) else { return [] }
    let rows = try connection.prepare(
      """
      SELECT run, started_at, kept_until, entity, is_deletion FROM _batch_undo_run
      WHERE job = ? ORDER BY started_at DESC, run
      """
    )
    try rows.bind(.text(job), at: 1)
    var found: [(String, String, String?, String, Bool)] = []
    while try rows.step() {
      found.append(
        (
          rows.text(at: 0), rows.text(at: 1), rows.isNull(at: 2) ? nil : rows.text(at: 2),
          rows.text(at: 3), rows.integer(at: 4) != 0
        )
      )
    }
    return try found.map { run, startedAt, keptUntil, entity, isDeletion throws(BatchError) in
      StoredUndo(
        run: run,
        job: job,
        startedAt: startedAt,
        keptUntil: keptUntil,
        entity: entity,
        shape: UndoShape(
          key: try names("key", ofRun: run, in: connection),
          columns: try names("columns", ofRun: run, in: connection),
          isDeletion: isDeletion
        )
      )
    }
  }

  private static func names(
    _ column: String,
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    let statement = try connection.prepare(
      "SELECT j.value FROM _batch_undo_run AS r, json_each(r.\(column)) AS j WHERE r.run = ? ORDER BY j.id"
    )
    try statement.bind(.text(run), at: 1)
    var names: [String] = []
    while try statement.step() { names.append(statement.text(at: 0)) }
    return names
  }
}

extension Store {
  /// The runs of a job that can be undone, the last one first.
  package func undoableRuns(ofJob job: String) async throws(BatchError) -> [StoredUndo] {
    try await connection(label: "batch.undo").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try StoredUndo.all(ofJob: job, in: connection)
      }
    }
  }
}
