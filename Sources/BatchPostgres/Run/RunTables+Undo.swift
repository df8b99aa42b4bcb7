#if PostgreSQL
package import BatchJobs
import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// A run with undo records: its row of `_batch_undo`.
package struct RecordedUndo: Sendable {
  package let run: TableRun
  /// The table whose rows it has changed, as a name that is read back.
  let entity: String
  let key: [String]
  /// The recorded columns besides the key, in the order of the records.
  let columns: [String]
  let isDeletion: Bool
  package let undoable: UndoableRun
}

extension RunTables {
  /// Creates the table of a run's undo records, in the transaction in which the run begins.
  package func keep(
    _ records: UndoRecords,
    for time: Duration?,
    in session: PostgresSession
  ) throws(BatchError) {
    try records.create(in: session)
    try session.execute(
      """
      INSERT INTO \(undo) (run, entity, key, columns, is_deletion, kept_until)
      VALUES ($1::uuid, $2, $3, $4::text[], $5, clock_timestamp() + make_interval(secs => $6::float8))
      """,
      .text(records.run),
      .text(records.table.sql),
      .array(PostgresArray(records.key.columns.map(\.name))),
      .array(PostgresArray(records.columns.map(\.name))),
      .boolean(records.isDeletion),
      time.map { .text(String($0 / .seconds(1))) } ?? .null
    )
  }

  /// The runs of a job that have undo records, the newest first.
  package func undos(
    ofJob job: String,
    in session: PostgresSession
  ) throws(BatchError) -> [RecordedUndo] {
    var undos: [RecordedUndo] = []
    for run in try runs(ofJob: job, in: session).reversed() {
      if let undo = try recordedUndo(of: run, in: session) { undos.append(undo) }
    }
    return undos
  }

  /// The undo records of a run; nil if it has none.
  func recordedUndo(
    of run: TableRun,
    in session: PostgresSession
  ) throws(BatchError) -> RecordedUndo? {
    let name = PostgresName.qualified(schema, UndoRecords.name(ofRun: run.run))
    let found = try session.execute(
      """
      SELECT entity, is_undone, to_char(kept_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        pg_catalog.pg_total_relation_size(c.oid), pg_catalog.array_to_json(key)::text,
        pg_catalog.array_to_json(columns)::text, is_deletion
      FROM \(undo) JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass($2)
      WHERE run = $1::uuid
      """,
      .text(run.run),
      .text(name)
    )
    guard found.count == 1, let snapshot = try snapshot(ofRun: run.run, in: session) else {
      return nil
    }
    return RecordedUndo(
      run: run,
      entity: found.text(0, 0) ?? "",
      key: try names(found.text(0, 4), ofRun: run.run) ?? [],
      columns: try names(found.text(0, 5), ofRun: run.run) ?? [],
      isDeletion: found.isTrue(0, 6),
      undoable: UndoableRun(
        run: run.run,
        startedAt: run.startedAt,
        keptUntil: found.text(0, 2),
        rows: snapshot.outcomes.succeeded,
        bytes: Int(found.integer(0, 3) ?? 0),
        isUndone: found.isTrue(0, 1)
      )
    )
  }

  private func names(_ json: String?, ofRun run: String) throws(BatchError) -> [String]? {
    guard let json else { return nil }
    guard let names = [String](inJSON: json) else {
      throw Self.damaged("the row of run \(run) in _batch_undo cannot be read")
    }
    return names
  }

  /// Notes that the undo of a run has begun, in the transaction in which it begins.
  func noteUndo(of run: String, in session: PostgresSession) throws(BatchError) {
    try session.execute("UPDATE \(undo) SET is_undone = true WHERE run = $1::uuid", .text(run))
  }

  /// The completed undos of a run; nil if there is none.
  func completedUndo(
    of run: String,
    by undoing: String,
    in session: PostgresSession
  ) throws(BatchError) -> CompletedUndo? {
    var undos: [(metadata: RunMetadata, rows: Int, outcomes: Outcomes)] = []
    for undo in try runs(ofJob: undoing, in: session).reversed() {
      guard undo.state == .finished || undo.state == .acknowledged,
        let metadata = try? undo.described(), metadata.undone == run,
        let outcomes = try snapshot(ofRun: undo.run, in: session)?.outcomes
      else { continue }
      undos.append((metadata, undo.total, outcomes))
    }
    return CompletedUndo(undos)
  }

  /// Why no run of a job may begin or go on, by its runs, the newest last: an undo of one of them is
  /// unfinished, or has undone a part of the last one, whose other rows a new run would change again.
  func undoInTheWay(
    after runs: [TableRun],
    ofJob job: String,
    in session: PostgresSession
  ) throws(BatchError) -> BatchError? {
    guard let last = runs.last else { return nil }
    if let unfinished = try unfinishedUndo(ofJob: job, in: session) { return unfinished }
    guard last.state == .setAside, try isUndone(last.run, in: session) else { return nil }
    let undoing = ProgramWork.jobName(undoing: job)
    let undo = try completedUndo(of: last.run, by: undoing, in: session)
    guard undo?.isPartial ?? true else { return nil }
    return BatchError(
      .otherRun,
      "run \(last.run) was not finished, and not all of its rows were undone: a new run would change the others again",
      at: session.address.description,
      remedy:
        "undo the rest first, with --overwrite what others have changed, or start over with --fresh"
    )
  }

  /// Whether an undo of a run has begun.
  func isUndone(_ run: String, in session: PostgresSession) throws(BatchError) -> Bool {
    try session.text("SELECT is_undone FROM \(undo) WHERE run = $1::uuid", .text(run)) == "t"
  }

  /// The error for a retry of a run of which even a part was undone.
  func wasUndone(_ run: String, in session: PostgresSession) -> BatchError {
    BatchError(
      .otherRun,
      "run \(run) was undone, at least in part, and cannot be retried",
      at: session.address.description,
      remedy: "begin a run: batch run"
    )
  }

  private func unfinishedUndo(
    ofJob job: String,
    in session: PostgresSession
  ) throws(BatchError) -> BatchError? {
    let undos = try runs(ofJob: ProgramWork.jobName(undoing: job), in: session)
    guard let run = undos.last(where: { $0.state == .running }),
      let snapshot = try snapshot(ofRun: run.run, in: session)
    else { return nil }
    return BatchError(
      .unfinishedRun,
      "a run of the job is being undone: \(snapshot.outcomes.total.grouped) of \(run.total.grouped) rows are",
      at: session.address.description,
      remedy: "finish that with batch undo, or start over with --fresh"
    )
  }

  /// Removes undo records that are older than the job wants, inside the caller's transaction.
  func removeExpiredUndos(ofJob job: String, in session: PostgresSession) throws(BatchError) {
    let expired = try session.execute(
      """
      SELECT u.run FROM \(undo) AS u JOIN \(run) AS r USING (run)
      WHERE r.job = $1 AND u.kept_until < clock_timestamp() AND r.state <> 'running'
      """,
      .text(job)
    )
    for row in 0..<expired.count {
      if let run = expired.text(row, 0) { try removeUndo(of: run, in: session) }
    }
  }

  /// Removes the undo records of a run, inside the caller's transaction, if the role may.
  func removeUndo(of run: String, in session: PostgresSession) throws(BatchError) {
    let name = PostgresName.qualified(schema, UndoRecords.name(ofRun: run))
    let isForeign = try session.text(
      """
      SELECT NOT pg_catalog.pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class
      WHERE oid = pg_catalog.to_regclass($1)
      """,
      .text(name)
    )
    if isForeign == "t" { return }
    try session.execute("DROP TABLE IF EXISTS \(name)")
    try session.execute("DELETE FROM \(undo) WHERE run = $1::uuid", .text(run))
  }
}

extension [String] {
  fileprivate init?(inJSON text: String) {
    guard let names = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else {
      return nil
    }
    self = names
  }
}
#endif
