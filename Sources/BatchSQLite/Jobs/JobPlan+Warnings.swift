package import BatchJobs
import BatchRuns
package import BatchIdentifiers

extension JobPlan {
  package func warnings(
    about queryPlan: QueryPlan,
    fullScan: Bool,
    _ lookUp: PlanReport.LookUp?,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    var warnings: [String] = []
    let repeated = Set(queryPlan.scannedForEachRow).sorted()
    if !repeated.isEmpty {
      warnings.append(
        "where scans all of \(repeated.map(\.quotedForMessage).joined(separator: ", ")) for"
          + " each row of \"\(entity.name)\"; an index that its subquery can use would make the"
          + " selection much faster"
      )
    } else if fullScan, let condition, condition.terms.contains(where: { !$0.reads.isEmpty }) {
      warnings.append(
        "where reads every row of \"\(entity.name)\", and what its subqueries"
          + " read; an index could help those, and the selection only"
      )
    } else if fullScan, !queryPlan.materializes(entity.table) {
      warnings.append(
        "where reads every row of \"\(entity.name)\"; an index would help"
          + " the selection, not the rest of the run"
      )
    }
    if job.action.writes, job.database.journalMode == .wal, store.journalMode != "wal" {
      warnings.append(
        "the database's journal mode changes from \(store.journalMode) to wal, which stays"
      )
    }
    if job.action.writes, try connection.isReplicatedByLitestream() {
      warnings.append(
        "Litestream replicates the database: the run leaves it to Litestream to restart the log, and"
          + " waits for that where the log is longer than throttle.maximumWAL,"
          + " \(ByteSize(bytes: job.throttle.maximumWAL))"
      )
    }
    warnings += job.risks
    switch query.key.origin {
    case .wholeRow:
      warnings.append(
        "\"\(entity.name)\" does not show the keys of its tables, so each row is found by all of its"
          + " columns; source.key may name better ones"
      )
    case .declared, .viewOrigin, .rowID, .primaryKey, .uniqueIndex: break
    }
    let compiled =
      if case .change(let change, _) = work { change.statements } else { ownStatements }
    let triggers = job.action.writes ? try connection.triggers(setOffBy: compiled) : [:]
    warnings += try writtenEntity.warnings(
      about: job,
      triggers: Set(triggers.keys),
      in: connection
    )
    if job.action.writes, store.coreData != nil {
      warnings.append(
        "this is a Core Data store, and \(job.database.coreData == .overwrite ? "is" : "would be")"
          + " overwritten: no app may open it again, since it would not notice the change; neither"
          + " delete rules nor Core Data's history are maintained"
      )
    }
    var scans = false
    for sql in compiled {
      // A subquery of the condition may scan the table, but that is not how rows are found.
      if try QueryPlan(of: sql, in: connection).scans(writtenEntity.table) { scans = true }
    }
    // An index cannot find rows that a query computes, and a copy has its own.
    if scans, job.action.writes || lookUp == nil {
      warnings.append(
        "each row is found by reading all of \"\(entity.name)\"; an index on"
          + " \(query.key.columns.joined(separator: ", ")) would make the run much faster"
      )
    }
    return warnings
  }

  func warningsAboutIndexes(in connection: Connection) throws(BatchError) -> [String] {
    guard let change, case let shape = change.undoShape, !shape.isDeletion else { return [] }
    let columns = shape.columns
    var indexes: [String] = []
    for index in try connection.texts(
      "SELECT name FROM pragma_index_list(?)",
      .text(change.entity.table)
    ) {
      let indexed = try connection.texts(
        "SELECT ifnull(name, '') FROM pragma_index_info(?)",
        .text(index)
      )
      let sql = try connection.texts(
        "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ? AND sql IS NOT NULL",
        .text(index)
      )
      // An expression, or the condition of a partial index, mentions its columns only in its text.
      let isWritten = columns.contains { column in
        indexed.contains { SQLName.equal($0, column) }
          || (indexed.contains("") || sql.contains { $0.uppercased().contains(" WHERE ") })
            && sql.contains { $0.hasWord(column) }
      }
      if isWritten { indexes.append(index) }
    }
    if indexes.isEmpty { return [] }
    let names = indexes.sorted().quoted
    return [
      "each row that changes moves its entry in the \(indexes.count == 1 ? "index" : "indexes") \(names),"
        + " which takes longer than the row itself, and may make the file grow"
    ]
  }

  /// Warnings about changes that undoing a run would not revert.
  func warningsAboutUndo(
    in connection: Connection
  ) throws(BatchError) -> [String] {
    guard job.undo != nil, let change else { return [] }
    let effects = try change.effects(
      enforcesForeignKeys: job.database.foreignKeys,
      butUndone: true,
      in: connection
    )
    let others = effects.tables.union(change.ownWrites.tables).filter {
      !SQLName.equal($0, writtenEntity.table)
    }
    let own = change.undoShape.writesBeside(effects, in: writtenEntity)
    let parts = [others.sorted().quoted, own ?? ""].filter { !$0.isEmpty }
    if parts.isEmpty { return [] }
    return [
      "the run may also write \(parts.joined(separator: " and ")), which batch undo leaves as it is"
    ]
  }

  /// The error of reading the first rows, unless an update's values report it.
  func warningsAboutReading(
    by sampler: RowSampler,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    if case .update = job.action { return [] }
    do throws(BatchError) {
      _ = try sampler.rows(limit: 5, in: connection)
      return []
    } catch {
      guard error.isAboutRows else { throw error }
      let end =
        job.skip.limit > 0 ? "skip decides how many may fail" : "the first one stops the run"
      return [
        "one of the first rows cannot be read: \(error.message); \(end)"
      ]
    }
  }
}

extension Entity {
  /// Warnings about parts of the schema that an operator may have forgotten.
  fileprivate func warnings(
    about job: Job,
    triggers running: Set<String>,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    guard job.action.writes else { return [] }
    var warnings: [String] = []
    let triggers = try connection.texts(
      "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?",
      .text(table)
    ).filter(running.contains)
    if !triggers.isEmpty {
      warnings.append("\"\(name)\" has triggers, which run: \(triggers.joined(separator: ", "))")
    }
    if case .delete = job.action {
      let isEnforced = job.database.foreignKeys
      // Rows of the table itself are tried in their order.
      let children = try connection.texts(
        """
        SELECT DISTINCT s.name FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
        WHERE s.type = 'table' AND lower(f."table") = lower(?1)
          AND (NOT ?2 OR f.on_delete IN ('NO ACTION', 'RESTRICT') AND lower(s.name) <> lower(?1))
        """,
        .text(table),
        .integer(isEnforced ? 1 : 0)
      )
      if !children.isEmpty, isEnforced {
        warnings.append(
          "a row that rows of \(children.joined(separator: ", ")) refer to cannot be deleted"
            + " (database.foreignKeys), and fails"
        )
      } else if !children.isEmpty {
        warnings.append(
          "rows of \(children.joined(separator: ", ")) refer to \"\(name)\" and are left as they"
            + " are; database.foreignKeys enforces foreign keys"
        )
      }
      if isEnforced {
        warnings += try warningsAboutActions(of: job, in: connection)
        warnings += try warningsAboutReferrers(in: connection)
      }
    }
    return warnings
  }

  /// Warnings about tables that are read whole for each deleted row, since no index leads to the
  /// rows that refer to it.
  private func warningsAboutReferrers(in connection: Connection) throws(BatchError) -> [String] {
    var warnings: [String] = []
    var (reached, next) = (Set([table.lowercased()]), [table])
    while let parent = next.popLast() {
      let keys = try connection.prepare(
        """
        SELECT s.name, f.on_delete = 'CASCADE', f.id FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
        WHERE s.type = 'table' AND f.seq = 0 AND lower(f."table") = lower(?) ORDER BY s.name, f.id
        """
      )
      try keys.bind(.text(parent), at: 1)
      while try keys.step() {
        let name = keys.text(at: 0)
        let columns = try connection.texts(
          "SELECT \"from\" FROM pragma_foreign_key_list(?) WHERE id = ? ORDER BY seq",
          .text(name),
          .integer(keys.integer(at: 2))
        )
        let isReferring = columns.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: " AND ")
        let search = "SELECT 1 FROM \(SQLName.quoted(name)) WHERE \(isReferring)"
        if try QueryPlan(of: search, in: connection).scans {
          let list = columns.joined(separator: ", ")
          warnings.append(
            "for each deleted row of \"\(parent)\", SQLite reads all of \"\(name)\", since no index leads to the rows"
              + " that refer to it; an index on \(list) would make the run much faster"
          )
        }
        if keys.integer(at: 1) == 1, reached.insert(name.lowercased()).inserted {
          next.append(name)
        }
      }
    }
    return warnings
  }

  /// Warnings about rows that foreign keys delete or change together with those that the job
  /// deletes.
  private func warningsAboutActions(
    of job: Job,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    var warnings: [String] = []
    for (action, words) in [
      ("CASCADE", "are deleted with it"), ("SET NULL", "lose the reference"),
      ("SET DEFAULT", "get the default reference"),
    ] {
      let children = try connection.texts(
        """
        SELECT DISTINCT s.name FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
        WHERE s.type = 'table' AND lower(f."table") = lower(?1) AND f.on_delete = ?2 ORDER BY 1
        """,
        .text(table),
        .text(action)
      )
      if children.isEmpty { continue }
      var isArchived = false
      if case .delete(let delete) = job.action { isArchived = delete.archive != nil }
      warnings.append(
        "rows of \(children.joined(separator: ", ")) that refer to a deleted row \(words) (database.foreignKeys)"
          + (isArchived ? ", without a copy in the archive" : "")
      )
    }
    return warnings
  }
}

extension String {
  /// Whether SQL contains this name, or a word in a text that looks like it.
  fileprivate func hasWord(_ name: String) -> Bool {
    let words = split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    return contains(SQLName.standard(name)) || words.contains { SQLName.equal(String($0), name) }
  }
}
