#if PostgreSQL
package import BatchIdentifiers

/// A change that SQL alone can make: the keys of a chunk go to the server, and no row is returned.
///
/// A statement finds the rows by their keys and returns how many it has changed. Only if these are
/// fewer than the keys is the chunk repeated, by a statement that names the rows: see
/// ``write(to:_:onFailure:in:)``.
package struct PostgresChange: Sendable {
  package enum Action: Sendable {
    case update([Assignment])
    case delete(archive: Archive?)
  }

  package struct Assignment: Sendable {
    package let column: PostgresColumn
    package let value: CheckedExpression

    /// - Throws: `BatchError` of code `unknownAttribute` for a column that the server computes,
    ///   `unstableKey` for a column of the key.
    package init(
      of value: CheckedExpression,
      to name: String,
      in table: PostgresTable,
      key: PostgresKey
    ) throws(BatchError) {
      column = try table.requireSettableColumn(named: name, besides: key)
      self.value = value
    }
  }

  /// The condition that a row must still satisfy when it is processed.
  package struct Condition: Sendable {
    /// The part of `where` that is checked again; nil for none.
    package let predicate: CheckedExpression?
    /// Whether a row that does not satisfy it ends the run.
    package let isRequired: Bool

    package init(_ predicate: CheckedExpression? = nil, isRequired: Bool = false) {
      self.predicate = predicate
      self.isRequired = isRequired
    }
  }

  package let table: PostgresTable
  package let key: PostgresKey
  package var action: Action
  package let condition: Condition
  /// Whether an update skips rows that already have its values.
  package let leavesUnchanged: Bool
  package let parameters: PostgresParameters
  /// The search path under which names in the expressions were checked.
  package let path: SearchPath
  /// Whether each row has its own statement, in the order of the list.
  package let isOneByOne: Bool
  /// Where changed rows are recorded; nil to keep no record.
  package var undo: UndoRecords?
  /// The schema required for a change; nil before a run begins.
  package var expected: ExpectedTables?

  package init(
    of table: PostgresTable,
    key: PostgresKey,
    _ action: Action,
    condition: Condition = Condition(),
    leavesUnchanged: Bool = false,
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath,
    inOrder: Bool = false
  ) {
    self.table = table
    self.key = key
    self.action = action
    self.condition = condition
    self.leavesUnchanged = leavesUnchanged
    self.parameters = parameters
    self.path = path
    var columns: [String]?
    var expressions = [condition.predicate].compactMap(\.self)
    if case .update(let assignments) = action {
      columns = assignments.map(\.column.name)
      expressions += assignments.map(\.value)
    }
    isOneByOne =
      inOrder
      && (table.isAffectedByOrder(of: columns) || !expressions.allSatisfy(\.isAboutRow))
  }

  /// What a run requires of the schema; `keepsCopies` is whether it creates the archive of deleted
  /// rows.
  package func expectedTables(
    keepingCopies keepsCopies: Bool = false,
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    var columns: [PostgresColumn]? = keepsCopies || undo?.isDeletion == true ? nil : []
    var archive: (PostgresTable, [String])?
    var expressions = [condition.predicate].compactMap(\.self)
    switch action {
    case .update(let assignments):
      columns = assignments.map(\.column)
      expressions += assignments.map(\.value)
    case .delete(nil): break
    case .delete(let kept?):
      columns = nil
      archive = (kept.table, kept.columns)
    }
    return try ExpectedTables(
      of: table,
      key: key,
      using: columns,
      archive: archive,
      reading: expressions.map(\.reads),
      in: database,
      session
    )
  }

  // MARK: Statements

  /// The conditions for a row found by its key to be changed.
  private var matching: [String] {
    condition.predicate.map { [$0.sql(parameters, .place)] } ?? []
  }

  /// The condition that a row already has the update's values; nil to write such rows like others.
  ///
  /// Rows are compared by their stored bytes, so 1.0 and 1.00 differ, as do texts that a collation
  /// considers equal.
  private var unchanged: String? {
    guard leavesUnchanged, case .update(let assignments) = action else { return nil }
    let columns = assignments.map { PostgresName.qualified(table.name, $0.column.name) }
    let values = assignments.map {
      "\($0.value.sql(parameters, .place))::\($0.column.comparedType)"
    }
    let kept = zip(columns, assignments).map { "\($0)::\($1.column.comparedType)" }
    return "pg_catalog.record_image_eq(ROW(\(kept.joined(separator: ", "))), "
      + "ROW(\(values.joined(separator: ", "))))"
  }

  var isUpdate: Bool { if case .update = action { true } else { false } }

  /// The copies of changed rows that a statement makes.
  var copies: [RowCopy] {
    if case .delete(let archive?) = action {
      return [archive.copy] + (undo.map { [$0.copy] } ?? [])
    }
    return undo.map { [$0.copy] } ?? []
  }

  private var assignments: String {
    guard case .update(let assignments) = action else { return "" }
    return assignments.map {
      "\(PostgresName.quoted($0.column.name)) = \($0.value.sql(parameters, .place))"
    }.joined(separator: ", ")
  }

  /// The statement that changes rows and returns how many; if it copies them, it returns one row: how
  /// many rows were changed, and how many copied.
  package func statement(for keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let place = parameters.values.count
    let found: PostgresStatement
    var relation: String?
    if keys.isNear {
      // A join compares each row of the pages with all keys at once, and is planned faster than a
      // list of keys.
      let (source, join) = try keys.relation(in: table, after: place)
      found = PostgresStatement(sql: join, values: source.values)
      relation = source.sql
    } else {
      found = try keys.condition(in: table, after: place)
    }
    let rows =
      keys.isNear ? try keys.condition(in: table, besideRelationAfter: place) : found.sql
    return PostgresStatement(
      sql: sql(from: relation, where: found.sql, among: rows, numbering: nil),
      values: parameters.values + found.values
    )
  }

  /// The statement that changes rows and returns a row for each: the number of its key, and the
  /// number of rows copied.
  func listingStatement(for keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let place = parameters.values.count
    let (relation, join) = try keys.relation(in: table, after: place)
    let rows = try keys.condition(in: table, besideRelationAfter: place)
    return PostgresStatement(
      sql: sql(from: relation.sql, where: join, among: rows, numbering: RowKeys.number),
      values: parameters.values + relation.values
    )
  }

  /// The statement for rows that `found` finds with the relation of keys, if there is one.
  ///
  /// `rows` is a condition without that relation for rows that include them, and `number` the number
  /// of a row's key, if it is returned for each row.
  private func sql(
    from relation: String?,
    where found: String,
    among rows: String,
    numbering number: String?
  ) -> String {
    var sources = relation.map { [$0] } ?? []
    var conditions = [found]
    if let undo, isUpdate {
      sources.append(undo.before(among: rows))
      conditions.append(undo.isBefore)
    }
    conditions += matching + (unchanged.map { ["NOT (\($0))"] } ?? [])
    let filter = conditions.joined(separator: " AND ")
    let list =
      sources.isEmpty ? "" : " \(isUpdate ? "FROM" : "USING") \(sources.joined(separator: ", "))"
    let change =
      isUpdate
      ? "UPDATE \(table.sql) SET \(assignments)\(list) WHERE \(filter)"
      : "DELETE FROM \(table.sql)\(list) WHERE \(filter)"
    if !copies.isEmpty { return RowCopy.sql(change, numbering: number, copies) }
    return number.map { "\(change) RETURNING \($0)" } ?? change
  }

  /// The statement that returns which rows exist, by the numbers of their keys, whether they
  /// already have the change's values, and whether they satisfy `where`.
  func presenceStatement(for keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let (relation, join) = try keys.relation(in: table, after: parameters.values.count)
    let isUnchanged =
      unchanged.map { "(\((matching + [$0]).joined(separator: " AND "))) IS TRUE" } ?? "false"
    let satisfied = matching.first ?? "true"
    return .init(
      sql:
        "SELECT \(RowKeys.number), \(isUnchanged), (\(satisfied)) IS TRUE"
        + " FROM \(table.sql), \(relation.sql) WHERE \(join)",
      values: parameters.values + relation.values
    )
  }
}
#endif
