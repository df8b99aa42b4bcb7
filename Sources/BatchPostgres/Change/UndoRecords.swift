#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// The rows of a run as they were before and after it, in a table of their own, `_batch_undo_…`.
///
/// The statement that changes rows also records them. Values have the types of their columns, and
/// only the server moves them, so that what returns is the same bit for bit.
///
/// | column | |
/// | --- | --- |
/// | those of the key | under their own names |
/// | `_batch_before_1`, … | the recorded columns before the run |
/// | `_batch_after_1`, … | the same after it, unless the rows were deleted |
package struct UndoRecords: Sendable {
  package let run: String
  package let table: PostgresTable
  package let key: PostgresKey
  /// The recorded columns besides the key: those that an update sets, or all that can be set.
  package let columns: [PostgresColumn]
  package let isDeletion: Bool
  let schema: String

  /// `columns` are the names of the recorded ones, and `isDeletion` is whether rows are deleted.
  ///
  /// Values are found again by the order of these names, whatever the order of the table's columns is then.
  package init(
    ofRun run: String,
    inSchema schema: String,
    over table: PostgresTable,
    key: PostgresKey,
    recording columns: [String],
    deleting isDeletion: Bool
  ) throws(BatchError) {
    self.run = run
    self.table = table
    self.key = key
    self.isDeletion = isDeletion
    self.schema = schema
    self.columns = try columns.map { name throws(BatchError) in
      try table.requireColumn(named: name)
    }
  }

  /// The columns to record of deleted rows: all that can be set.
  static func columns(ofDeleted table: PostgresTable, besides key: PostgresKey) -> [String] {
    table.columns.filter { column in
      !column.isGenerated && !key.columns.contains { $0.name == column.name }
    }.map(\.name)
  }

  /// The name of the table.
  package var sql: String { PostgresName.qualified(schema, Self.name(ofRun: run)) }

  static func name(ofRun run: String) -> String {
    "_batch_undo_\(run.lowercased().replacing("-", with: ""))"
  }

  /// The same records in a table of another name, for a trial.
  package func renamed(_ run: String) -> UndoRecords {
    UndoRecords(self, run: run)
  }

  private init(_ other: UndoRecords, run: String) {
    self.run = run
    (table, key, columns) = (other.table, other.key, other.columns)
    (isDeletion, schema) = (other.isDeletion, other.schema)
  }

  // MARK: Recording

  /// Creates the table, inside the caller's transaction.
  package func create(in session: PostgresSession) throws(BatchError) {
    let values = [keyNames] + columns.indices.map { before($0, of: columns[$0]) }
    let after = isDeletion ? [] : columns.indices.map { self.after($0, of: columns[$0]) }
    try session.execute(
      "CREATE TABLE \(sql) AS SELECT \((values + after).joined(separator: ", "))"
        + " FROM \(table.sql) WITH NO DATA"
    )
  }

  private var keyNames: String { PostgresName.list(key.columns.map(\.name)) }

  private func before(_ index: Int, of column: PostgresColumn) -> String {
    "\(PostgresName.quoted(column.name)) AS \(PostgresName.quoted(Self.before(index)))"
  }

  private func after(_ index: Int, of column: PostgresColumn) -> String {
    "\(PostgresName.quoted(column.name)) AS \(PostgresName.quoted(Self.after(index)))"
  }

  static func before(_ index: Int) -> String { "_batch_before_\(index + 1)" }
  static func after(_ index: Int) -> String { "_batch_after_\(index + 1)" }

  private static let former = "_batch_former"
  private static let place = "_batch_place"
  private static let part = "_batch_part"

  /// The rows before an update, as a source of the statement that updates them; `condition` finds
  /// them, perhaps among others.
  ///
  /// Only renamed columns leave it, so that names in the job's expressions mean the updated row.
  func before(among condition: String) -> String {
    let values =
      ["ctid AS \(Self.place)", "tableoid AS \(Self.part)"]
      + columns.indices.map { before($0, of: columns[$0]) }
    return
      "(SELECT \(values.joined(separator: ", ")) FROM \(table.sql) WHERE \(condition)) AS \(Self.former)"
  }

  /// The condition that a row of ``before(among:)`` is the version that the statement updates.
  ///
  /// If somebody has changed the row since the statement began, the server checks this again for the
  /// new version, which has another place. The row is then left to a later statement.
  var isBefore: String {
    let (place, part) = ("ctid", "tableoid")
    return
      "\(PostgresName.qualified(table.name, place)) = \(Self.former).\(Self.place)"
      + " AND \(PostgresName.qualified(table.name, part)) = \(Self.former).\(Self.part)"
  }

  /// The record that the statement makes of the rows that it changes.
  var copy: RowCopy {
    var returned = key.columns.map { (PostgresName.qualified(table.name, $0.name), $0.name) }
    for (index, column) in columns.enumerated() {
      let own = PostgresName.qualified(table.name, column.name)
      returned.append(
        (isDeletion ? own : "\(Self.former).\(Self.before(index))", Self.before(index))
      )
      if !isDeletion { returned.append((own, Self.after(index))) }
    }
    return RowCopy(table: sql, returned: returned, action: "recorded")
  }

  /// An update that also records the rows; see ``RowCopy/sql(_:numbering:_:)``.
  ///
  /// `rows` is a condition for rows that include those of `conditions`, without the relation.
  func sql(
    setting sets: String,
    from relation: String?,
    where conditions: [String],
    among rows: String
  ) -> String {
    let sources = (relation.map { [$0] } ?? []) + [before(among: rows)]
    let filter = (conditions + [isBefore]).joined(separator: " AND ")
    return RowCopy.sql(
      "UPDATE \(table.sql) SET \(sets) FROM \(sources.joined(separator: ", ")) WHERE \(filter)",
      numbering: nil,
      [copy]
    )
  }

  // MARK: Checks

  /// Refuses a table whose rows cannot be recorded or would not return.
  static func requireSupport(
    for table: PostgresTable,
    deleting: Bool,
    in session: PostgresSession
  ) throws(BatchError) {
    func refusal(_ reason: String, _ remedy: String) -> BatchError {
      BatchError(
        .invalidSQL,
        "\(table.title.quotedForMessage) cannot be undone: \(reason)",
        remedy: remedy
      )
      .about(.entity(table.name))
    }
    guard table.kind != .view else {
      throw refusal("a view has no rows of its own", "name the table behind it, or remove undo")
    }
    guard deleting else { return }
    guard !table.hasChildren else {
      throw refusal(
        "the deleted rows would return to it, and not to the tables that inherit from it",
        "run a job for each of them, or remove undo"
      )
    }
    try table.requireWholeArchive(in: session)
  }

  /// Refuses to take part in a run whose records are gone, or which the role cannot write.
  func requireUse(in session: PostgresSession) throws(BatchError) {
    let found = try session.execute(
      """
      SELECT pg_catalog.has_table_privilege(c.oid, 'INSERT') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
      FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass($1)
      """,
      .text(sql)
    )
    guard found.count == 1 else {
      throw BatchError(
        .damagedFile,
        "the table of undo records \(sql) is gone",
        at: session.address.description,
        advice: "bring it back, or \(.beginAnew)"
      )
    }
    guard found.isTrue(0, 0) else {
      throw BatchError(
        .accessDenied,
        "the role may not write the undo records of the run in \(sql)",
        at: session.address.description,
        remedy:
          "have it granted SELECT and INSERT on the table, or take part as the role that began the run"
      )
    }
  }
}
#endif
