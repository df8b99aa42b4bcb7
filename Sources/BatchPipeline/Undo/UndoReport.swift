import BatchJobs
import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// The effect of undoing a run, as `undo --plan --json` prints it.
public struct UndoReport: Sendable, Encodable {
  /// The entity whose rows would be restored.
  public let entity: String
  /// The run that would be undone.
  public let run: UndoableRun
  /// The job's other undoable runs, newest first.
  public let others: [UndoableRun]
  /// How many rows would be undone, are as before, are gone, or would be left because others have
  /// changed them.
  public let outcomes: Outcomes
  /// The columns whose values were compared with those that the run set.
  ///
  /// They are empty for deleted rows, which are found by key, and for changes of objects.
  public let comparedColumns: [String]
  /// The first rows that would be left as others have changed them, with their values.
  public let changedSince: [String]
  /// Facts that an operator should know before the undo.
  public let warnings: [String]

  /// Whether every recorded row is still as the run left it.
  public var isAsLeft: Bool { outcomes.total == outcomes.succeeded }

  init(
    entity: String,
    run: UndoableRun,
    others: [UndoableRun],
    outcomes: Outcomes,
    comparedColumns: [String],
    changedSince: [String],
    warnings: [String]
  ) {
    (self.entity, self.run, self.others) = (entity, run, others)
    (self.outcomes, self.comparedColumns) = (outcomes, comparedColumns)
    (self.changedSince, self.warnings) = (changedSince, warnings)
  }

  package init(
    undoingWork cause: some RunCause,
    run: String? = nil,
    only identifiers: IdentifierList? = nil,
    overwriting overwrites: Bool = false,
    whileAlive mayBeAlive: Bool = false,
    showing limit: Int = 5
  ) async throws(BatchError) {
    let request = UndoRequest(
      of: cause,
      run: run,
      only: identifiers,
      overwriting: overwrites,
      fresh: true,
      whileAlive: mayBeAlive
    )
    if let report = try await UndoReport(onServer: request, showing: limit) {
      self = report
      return
    }
    let plan = try await UndoPlan(UndoWork(request), in: nil)
    entity = plan.undo.entity
    self.run = UndoableRun(plan.undo, of: cause)
    others = try await plan.store.undoableRuns(ofJob: cause.name).map { UndoableRun($0, of: cause) }
      .filter {
        $0.run != plan.undo.run
      }
    let reader = plan.store.connection(label: "batch.plan")
    var outcomes = Outcomes()
    var errors: [BatchError] = []
    switch plan.log {
    case .objects(let log):
      (outcomes, errors) = try await ChangeUndo(log, overwriting: overwrites, again: plan.wasUndone)
        .foresee(telling: limit, in: reader)
    case .rows(let log, let entity, _) where plan.undo.shape.isDeletion:
      let undo = DeletionUndo(log, of: entity, overwriting: overwrites)
      var place = 0
      while place < log.count {
        let rows = try undo.rows(at: place..<min(place + Self.chunk, log.count))
        let foreseen = try await reader.perform { connection throws(BatchError) in
          try undo.foresee(rows, in: connection)
        }
        outcomes += foreseen.0
        errors += foreseen.1.prefix(limit - errors.count)
        place += rows.count
      }
    case .rows(let log, let entity, let key):
      let list = try plan.identifiers(plan.store.identity)
      let transform = try await plan.transform(log, of: entity, by: key)
      var place = 0
      while place < list.count {
        let positions = place..<min(place + Self.chunk, list.count)
        let chunk = try await reader.perform { connection throws(BatchError) in
          try transform.prepare(
            ChunkKeys(list, positions, key: transform.target.key),
            at: positions.lowerBound,
            run: "",
            lookCount: 0,
            onFailure: .skip(upTo: .max),
            holding: ChunkBytes.chunkLimit,
            in: connection
          )
        }
        outcomes += chunk.foreseen.0
        errors += chunk.foreseen.1.prefix(limit - errors.count)
        place += chunk.count
      }
    }
    self.outcomes = outcomes
    let shape = plan.undo.shape
    if case .rows = plan.log, !shape.isDeletion {
      comparedColumns = shape.columns
    } else {
      comparedColumns = []
    }
    changedSince = errors.map(\.message)
    let facts = [plan.unknownIdentifiers, plan.loss].compactMap(\.self)
    guard case .rows(_, let entity, _) = plan.log else {
      warnings = facts
      return
    }
    let table = entity.table
    let triggers = try await reader.perform { connection throws(BatchError) in
      try connection.texts(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?",
        .text(table)
      )
    }
    let running =
      triggers.isEmpty
      ? [] : ["\(entity.name.quotedForMessage) has triggers, which run: \(triggers.quoted)"]
    warnings = facts + running
  }

  private static let chunk = 1_000
}

extension Job {
  /// Checks what an undo would do with every row that a run recorded; writes nothing.
  ///
  /// - Parameters:
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - identifiers: The rows to check; nil for all.
  ///   - overwrites: Whether to undo rows even if others have changed them since then.
  ///   - limit: The maximum number of rows to report that would be left as they are.
  /// - Returns: What the undo would restore, and what it would leave.
  /// - Throws: The error that makes ``BatchRun/init(undoing:run:only:overwriting:options:)`` refuse
  ///   the undo.
  /// - Complexity: O(*n*) in the rows; one chunk of them is held at a time.
  public func planUndo(
    ofRun run: String? = nil,
    only identifiers: IdentifierList? = nil,
    overwriting overwrites: Bool = false,
    showing limit: Int = 5
  ) async throws(BatchError) -> UndoReport {
    try await UndoReport(
      undoingWork: self,
      run: run,
      only: identifiers,
      overwriting: overwrites,
      showing: limit
    )
  }
}
