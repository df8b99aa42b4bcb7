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
  package let action: Action
  package let condition: Condition
  /// Whether an update skips rows that already have its values.
  package let leavesUnchanged: Bool
  package let parameters: PostgresParameters
  /// The search path under which names in the expressions were checked.
  package let path: SearchPath
  /// Whether each row has its own statement, in the order of the list.
  package let isOneByOne: Bool
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
    var columns: [PostgresColumn]? = keepsCopies ? nil : []
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

  private var assignments: String {
    guard case .update(let assignments) = action else { return "" }
    return assignments.map {
      "\(PostgresName.quoted($0.column.name)) = \($0.value.sql(parameters, .place))"
    }.joined(separator: ", ")
  }

  /// The statement that changes rows and returns how many; with an archive, it returns one row: how
  /// many rows were deleted, and how many archived.
  package func statement(for keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let place = parameters.values.count
    var found: PostgresStatement
    var relation = ""
    if keys.isNear {
      // A join compares each row of the pages with all keys at once, and is planned faster than a
      // list of keys.
      let (source, join) = try keys.relation(in: table, after: place)
      found = PostgresStatement(sql: join, values: source.values)
      relation = " \(isUpdate ? "FROM" : "USING") \(source.sql)"
    } else {
      found = try keys.condition(in: table, after: place)
    }
    let conditions = [found.sql] + matching + (unchanged.map { ["NOT (\($0))"] } ?? [])
    let filter = conditions.joined(separator: " AND ")
    let values = parameters.values + found.values
    switch action {
    case .update:
      return .init(
        sql: "UPDATE \(table.sql) SET \(assignments)\(relation) WHERE \(filter)",
        values: values
      )
    case .delete(nil):
      return .init(sql: "DELETE FROM \(table.sql)\(relation) WHERE \(filter)", values: values)
    case .delete(let archive?):
      let columns = PostgresName.list(archive.columns)
      let sql = archive.sql(
        deleting: "DELETE FROM \(table.sql)\(relation) WHERE \(filter) RETURNING \(columns)",
        selecting: "SELECT count(*), (SELECT count(*) FROM kept) FROM gone"
      )
      return .init(sql: sql, values: values)
    }
  }

  /// The statement that changes rows and returns a row for each: the number of its key, and with an
  /// archive the number of rows archived.
  func listingStatement(for keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let (relation, join) = try keys.relation(in: table, after: parameters.values.count)
    let conditions = [join] + matching + (unchanged.map { ["NOT (\($0))"] } ?? [])
    let filter = conditions.joined(separator: " AND ")
    let values = parameters.values + relation.values
    switch action {
    case .update:
      let sql = """
        UPDATE \(table.sql) SET \(assignments) FROM \(relation.sql) WHERE \(filter) RETURNING \(RowKeys.number)
        """
      return .init(sql: sql, values: values)
    case .delete(let archive):
      let deletion = """
        DELETE FROM \(table.sql) USING \(relation.sql) WHERE \(filter) RETURNING \(RowKeys.number)
        """
      guard let archive else { return .init(sql: deletion, values: values) }
      let columns = archive.columns.map { PostgresName.qualified(table.name, $0) }
      let sql = archive.sql(
        deleting: "\(deletion), \(columns.joined(separator: ", "))",
        selecting: "SELECT \"_batch_number\", (SELECT count(*) FROM kept) FROM gone"
      )
      return .init(sql: sql, values: values)
    }
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
