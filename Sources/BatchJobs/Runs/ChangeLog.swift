public import BatchIdentifiers
package import BatchRuns

/// The log of the changes of a table, as triggers keep it: for each change, the key of its row and a number.
///
/// On SQLite, each change has the next number. On PostgreSQL, all changes of a transaction have its ID, and the log
/// ends before the first transaction that is still open.
package struct ChangeLog: Sendable {
  /// A job that exports the changes.
  package struct Reader: Sendable {
    package let job: String
    /// The number at which its next run begins.
    package let position: Int64
    /// How many changes there have been since.
    package let changes: Int

    package init(_ job: String, from position: Int64, changes: Int) {
      (self.job, self.position, self.changes) = (job, position, changes)
    }
  }

  /// The column that says of an exported row what has happened to it.
  package static let column = "_change"
  /// The columns beside those of the key: the number, and whether the change has inserted the row.
  package static let number = "_batch_number"
  package static let inserted = "_batch_inserted"
  /// The table of all tracked tables and their readers.
  ///
  /// Of a tracked table itself, which has no job, the position is that from which on the log has all changes.
  package static let register = "_batch_track"

  /// The columns of an export, with that of the changes.
  package static func adding(to columns: [String]) -> [String] {
    columns.contains(column) ? columns : columns + [column]
  }

  package static func name(of table: String) -> String { "_batch_change_\(table)" }

  package let table: String
  package let key: [String]
  /// Where it begins: the changes before it were removed.
  package let start: Int64
  /// Where it ends: all changes before it are there, and all later ones will come after it.
  package let end: Int64
  package let count: Int
  package let readers: [Reader]
  /// What it was made of just now; empty if it was there.
  package var made: [String] = []
  package var warnings: [String] = []

  package init(
    of table: String,
    key: [String],
    start: Int64,
    end: Int64,
    count: Int,
    readers: [Reader]
  ) {
    (self.table, self.key) = (table, key)
    (self.start, self.end, self.count, self.readers) = (start, end, count, readers)
  }

  /// Refuses an increment of a job of which the log does not have all changes.
  package func require(_ increment: Increment, of job: String) throws(BatchError) {
    let log = "the log of the changes of \(table.quotedForMessage)"
    guard let from = increment.from?.number else {
      guard let to = increment.to?.number, to < start else { return }
      throw BatchError(.changesMissing, "\(log) has just been emptied", remedy: "run it again")
    }
    let reason: String
    if !readers.contains(where: { $0.job == job }) {
      reason = "\(log) was made again since the last increment, or the job was forgotten"
    } else if from < start {
      reason =
        "\(log) begins at \(start), and the last increment ended at \(from): changes in between were removed, or not logged"
    } else if from > end {
      reason =
        "\(log) ends at \(end), and the last increment at \(from): an older copy of the database was restored"
    } else {
      return
    }
    throw BatchError(.changesMissing, reason, remedy: "export all rows again with --fresh")
  }

  /// The increment of a run: for one that begins now, from where the last one ended to the end of the log.
  package func increment(
    of job: Job,
    _ parameters: ParameterValues,
    for run: RunIdentity
  ) throws(BatchError) -> Increment {
    let increment =
      if let recorded = run.increment { recorded } else {
        Increment(
          "change",
          from: try run.last?.end(for: job, parameters).0,
          to: .init(.integer(end))
        )
      }
    try require(increment, of: job.name)
    return increment
  }

  /// The SELECT of the rows of an increment in their present state: all rows for the first one, otherwise those of
  /// the keys that have changed, with NULLs if they are gone.
  ///
  /// Changes after the increment do not affect which keys it has.
  package static func rows(
    of increment: Increment,
    from table: String,
    _ log: String,
    _ columns: [String],
    key: [String],
    quoted: (String) -> String,
    equality: (String, String) -> String = { "\($0) = \($1)" }
  ) -> String {
    let names = columns.map(quoted)
    let (column, number) = (quoted(column), quoted(number))
    guard let from = increment.from?.number, let to = increment.to?.number else {
      return "SELECT \(names.joined(separator: ", ")), 'insert' AS \(column) FROM \(table)"
    }
    let selected = zip(columns, names).map { "\(key.contains($0) ? "l" : "t").\($1) AS \($1)" }
    let key = key.map(quoted)
    func isSame(_ other: String, _ equality: (String, String) -> String) -> String {
      key.map { equality("\(other).\($0)", "l.\($0)") }.joined(separator: " AND ")
    }
    // The last change of each key, so that it is there once.
    return """
      SELECT \(selected.joined(separator: ", ")), CASE WHEN t.\(key[0]) IS NULL THEN 'delete' \
      WHEN EXISTS (SELECT 1 FROM \(log) AS i WHERE \(isSame("i") { "\($0) = \($1)" }) \
      AND i.\(number) >= \(from) AND i.\(number) < \(to) AND i.\(quoted(inserted)) = 1) \
      THEN 'insert' ELSE 'update' END AS \(column) \
      FROM \(log) AS l LEFT JOIN \(table) AS t ON \(isSame("t", equality)) \
      WHERE l.\(number) >= \(from) AND l.\(number) < \(to) \
      AND NOT EXISTS (SELECT 1 FROM \(log) AS n WHERE \(isSame("n") { "\($0) = \($1)" }) \
      AND n.\(number) > l.\(number) AND n.\(number) < \(to))
      """
  }
}

extension ChangeLog {
  /// The error for a table whose changes are not logged.
  package static func isMissing(_ reason: String, _ table: String, in database: String)
    -> BatchError
  {
    BatchError(
      .notTracked,
      reason,
      remedy: "run batch track \(database.quotedForShell) --entity \(table.quotedForShell)"
    )
  }

  /// The error for a table that cannot be tracked.
  package static func refusal(_ table: String, _ reason: String) -> BatchError {
    BatchError(.notTracked, "\(table.quotedForMessage) \(reason), and cannot be tracked")
  }
}

extension Increment.Bound {
  /// The number of a change.
  package var number: Int64? { if case .integer(let number) = cursor { number } else { nil } }
}

extension BatchError.Code {
  /// The changes of a table are not logged, or not all of them.
  public static let notTracked = Self(rawValue: "notTracked")
  /// The log of changes does not have those that an increment needs.
  public static let changesMissing = Self(rawValue: "changesMissing")
}
