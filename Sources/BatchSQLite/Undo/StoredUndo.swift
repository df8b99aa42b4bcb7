import BatchRuns
package import BatchIdentifiers

/// A run's undo data in the store: its row in `_batch_undo_run`, and its records in `_batch_undo`.
package struct StoredUndo: Sendable {
  package let run: String
  package let job: String
  /// When the run began, as an ISO 8601 timestamp in UTC.
  package let startedAt: String
  /// When the records expire, as an ISO 8601 timestamp in UTC; nil for never.
  package let keptUntil: String?
  package let entity: String
  package let shape: UndoShape
  /// The declared types of the recorded columns; nil for runs by objects.
  package let types: [String]?
  /// The schema that the run expected; for a run by objects, all tables as they were when it began.
  package let schema: [String]?
  /// The UUID of the changed store; nil if that has none of its own.
  package private(set) var store: String?
  package private(set) var rows = 0
  private var recordedRows = 0
  /// The size of the records in bytes.
  package private(set) var bytes = 0
  package private(set) var isUndone = false

  package init(
    run: String,
    job: String,
    startedAt: String,
    keptUntil: String?,
    entity: String,
    shape: UndoShape,
    types: [String]? = nil,
    schema: [String]?
  ) {
    self.run = run
    self.job = job
    self.startedAt = startedAt
    self.keptUntil = keptUntil
    self.entity = entity
    self.shape = shape
    self.types = types
    self.schema = schema
  }

  // MARK: The tables

  static let tables = """
    SELECT count(*) = 2 FROM sqlite_schema
    WHERE type = 'table' AND name IN ('_batch_undo_run', '_batch_undo')
    """

  private static func createTables(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_undo_run (
        run TEXT PRIMARY KEY, job TEXT NOT NULL, started_at TEXT NOT NULL, kept_until TEXT,
        entity TEXT NOT NULL, key TEXT NOT NULL, columns TEXT NOT NULL,
        is_deletion INTEGER NOT NULL, is_undone INTEGER NOT NULL DEFAULT 0, kind TEXT, store TEXT,
        types TEXT, seal TEXT NOT NULL, recorded INTEGER NOT NULL, schema TEXT
      )
      """
    )
    try requireColumns(in: connection)
    // Later records of a run have higher numbers.
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_undo (
        number INTEGER PRIMARY KEY, run TEXT NOT NULL, rows INTEGER NOT NULL, bytes BLOB NOT NULL
      )
      """
    )
    try connection.execute("CREATE INDEX IF NOT EXISTS _batch_undo_by_run ON _batch_undo (run)")
  }

  private static func requireColumns(in connection: Connection) throws(BatchError) {
    _ = try connection.hasOwnTable(
      "_batch_undo_run",
      with: ["kind", "store", "types", "seal", "recorded", "schema"]
    )
  }

  /// Enters a new run, in the transaction that enters it in the ledger.
  func enter(in connection: Connection) throws(BatchError) {
    try Self.createTables(in: connection)
    let identity = try StoreIdentity.read(in: connection)
    let store = identity.isDerived ? nil : identity.uuid
    try connection.execute(
      """
      INSERT INTO _batch_undo_run
        (run, job, started_at, kept_until, entity, key, columns, is_deletion, kind, store, types,
          seal, schema, recorded)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
      """,
      .text(run),
      .text(job),
      .text(startedAt),
      keptUntil.map { .text($0) } ?? .null,
      .text(entity),
      .text(Self.json(shape.key)),
      .text(Self.json(shape.columns)),
      .integer(shape.isDeletion ? 1 : 0),
      shape.kind == .objects ? .text("objects") : .null,
      store.map { .text($0) } ?? .null,
      types.map { .text(Self.json($0)) } ?? .null,
      .text(seal(ofStore: store)),
      schema.map { .text(Self.json($0)) } ?? .null
    )
  }

  /// A hash of what determines how to read the records.
  private func seal(ofStore store: String?) -> String {
    let kind = shape.isDeletion ? "deletion" : shape.kind == .objects ? "objects" : "update"
    let names = [shape.key, shape.columns, types ?? [], schema ?? []].map(Self.json)
    let content = ([run, job, entity, kind, store ?? ""] + names).joined(separator: "\u{0}")
    let hash = String(XXHash64.hash(Array(content.utf8)), radix: 16)
    return String(repeating: "0", count: 16 - hash.count) + hash
  }

  /// Adds a record to the store, in the transaction that it records.
  static func keep(
    _ bytes: [UInt8],
    of rows: Int,
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      "INSERT INTO _batch_undo (run, rows, bytes) VALUES (?, ?, ?)",
      .text(run),
      .integer(Int64(rows)),
      .blob(bytes)
    )
    // This count reveals removed and copied records.
    try connection.execute(
      "UPDATE _batch_undo_run SET recorded = recorded + ? WHERE run = ?",
      .integer(Int64(rows)),
      .text(run)
    )
  }

  /// Refuses records that are not exactly those of the run.
  func requireAllRecords(at path: String) throws(BatchError) {
    guard recordedRows != rows else { return }
    throw BatchError(
      .damagedFile,
      "table _batch_undo has \(rows.grouped) rows of run \(run), which has recorded \(recordedRows.grouped)",
      at: path,
      remedy: "records were removed or added by hand; restore a backup of the database, or undo"
        + " with --ids the remaining rows"
    )
  }

  /// Marks a run as undone, in the transaction that enters the undo.
  static func noteUndo(of run: String, in connection: Connection) throws(BatchError) {
    try connection.execute(
      "UPDATE _batch_undo_run SET is_undone = 1 WHERE run = ?",
      .text(run)
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

  /// A job's runs that can be undone, the last one first.
  static func all(ofJob job: String, in connection: Connection) throws(BatchError) -> [StoredUndo] {
    guard try connection.value(tables) == .integer(1) else { return [] }
    try requireColumns(in: connection)
    let rows = try connection.prepare(
      """
      SELECT r.run, started_at, kept_until, entity, is_deletion,
        (SELECT sum(rows) FROM _batch_undo AS u WHERE u.run = r.run), is_undone,
        (SELECT sum(length(bytes)) FROM _batch_undo AS u WHERE u.run = r.run),
        kind, store, types, seal, recorded, schema
      FROM _batch_undo_run AS r WHERE job = ? ORDER BY r.rowid DESC
      """
    )
    try rows.bind(.text(job), at: 1)
    var found: [StoredUndo] = []
    while try rows.step() {
      func text(_ column: Int) -> String? {
        rows.isNull(at: column) ? nil : rows.text(at: column)
      }
      let run = rows.text(at: 0)
      let kind = Self.kind(rows.integer(at: 4) != 0, isOfObjects: text(8) != nil)
      var undo = StoredUndo(
        run: run,
        job: job,
        startedAt: rows.text(at: 1),
        keptUntil: text(2),
        entity: rows.text(at: 3),
        shape: UndoShape(
          key: try names("key", ofRun: run, in: connection),
          columns: try names("columns", ofRun: run, in: connection),
          kind: kind
        ),
        types: text(10) == nil ? nil : try names("types", ofRun: run, in: connection),
        schema: text(13) == nil ? nil : try names("schema", ofRun: run, in: connection)
      )
      undo.rows = Int(rows.integer(at: 5))
      undo.isUndone = rows.integer(at: 6) != 0
      undo.bytes = Int(rows.integer(at: 7))
      undo.store = text(9)
      undo.recordedRows = Int(rows.integer(at: 12))
      if text(11) != undo.seal(ofStore: undo.store) { throw damaged(run) }
      try undo.check()
      found.append(undo)
    }
    return found
  }

  /// Refuses a row that cannot have been written by a run.
  private func check() throws(BatchError) {
    let lacksNames = shape.key.isEmpty || shape.columns.isEmpty && !shape.isDeletion
    let isWhole = shape.kind == .objects || !lacksNames
    guard isWhole, types.map({ $0.count == shape.columns.count }) ?? true, rows >= 0 else {
      throw Self.damaged(run)
    }
  }

  private static func damaged(_ run: String, underlying: BatchError? = nil) -> BatchError {
    let run = SQLValue.text(run).sql
    return BatchError(
      .damagedFile,
      "table _batch_undo_run has a row that no run entered: that of run \(run)",
      remedy: "it was changed by hand; DELETE FROM _batch_undo_run WHERE run = \(run) gives up"
        + " undoing that run",
      underlying: underlying
    )
  }

  private static func kind(_ isDeletion: Bool, isOfObjects: Bool) -> UndoShape.Kind {
    isOfObjects ? .objects : isDeletion ? .deletion : .update
  }

  private static func names(
    _ column: String,
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    do throws(BatchError) {
      return try connection.texts(
        """
        SELECT j.value FROM _batch_undo_run AS r, json_each(r.\(column)) AS j
        WHERE r.run = ? ORDER BY j.id
        """,
        .text(run)
      )
    } catch {
      guard error.sqlite?.resultCode == .SQLITE_ERROR else { throw error }
      throw damaged(run, underlying: error)
    }
  }
}

extension Store {
  package func undoableRuns(ofJob job: String) async throws(BatchError) -> [StoredUndo] {
    try await connection(label: "batch.undo").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try StoredUndo.all(ofJob: job, in: connection)
      }
    }
  }
}
