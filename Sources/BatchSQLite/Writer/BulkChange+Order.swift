import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  /// Whether the order in which rows change affects the outcome.
  ///
  /// It does if a written column is part of a unique index, or if other rows of the table refer to
  /// deleted rows. If the job asks for an order, it also determines what triggers and subqueries
  /// see of other rows.
  package func dependsOnOrder(
    _ isAsked: Bool,
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    if isAsked {
      let accesses = try connection.accesses(of: changeSQL(for: .shape(of: key)))
      if !accesses.triggers.isEmpty || accesses.selects > 0 { return true }
    }
    if case .delete = action {
      guard enforcesForeignKeys else { return false }
      return try !ownReferences(in: connection).isEmpty
    }
    return try entity.hasUniqueIndex(over: writtenColumns, in: connection)
  }

  private struct OwnReference {
    let restricts: Bool
    var columns: [(from: String, to: String)] = []

    /// The condition for a row of `child` to refer to one of `parent`.
    func condition(_ child: String, _ parent: String) -> String {
      // SQLite compares with the affinity and collation of the parent's column.
      columns.map { "\(parent).\($0.to) = \(child).\($0.from)" }.joined(separator: " AND ")
    }
  }

  private func ownReferences(in connection: Connection) throws(BatchError) -> [OwnReference] {
    let keys = try connection.prepare(
      """
      SELECT f.id, f."from", ifnull(f."to",
        (SELECT name FROM pragma_table_info(?1) WHERE pk = f.seq + 1)), f.on_delete
      FROM pragma_foreign_key_list(?1) AS f WHERE lower(f."table") = lower(?1) ORDER BY f.id, f.seq
      """
    )
    try keys.bind(.text(entity.table), at: 1)
    var references: [Int64: OwnReference] = [:]
    while try keys.step() {
      guard !keys.isNull(at: 2) else { continue }
      let restricts = ["NO ACTION", "RESTRICT"].contains(keys.text(at: 3))
      references[keys.integer(at: 0), default: OwnReference(restricts: restricts)].columns.append(
        (SQLName.quoted(keys.text(at: 1)), SQLName.quoted(keys.text(at: 2)))
      )
    }
    return references.sorted { $0.key < $1.key }.map(\.value)
  }

  private func keyColumns(of table: String) -> String { list(key.columns, of: table) }

  private func list(_ columns: [String], of table: String) -> String {
    columns.map { "\(table).\(SQLName.quoted($0))" }.joined(separator: ", ")
  }

  /// The query in an order that allows deletion if enforced foreign keys of the table refer to the
  /// table itself: referring rows come before the rows that they refer to.
  ///
  /// Rows mostly refer to older ones, which have smaller rowids or keys. So the order is replaced
  /// only if some rows refer to rows with smaller keys and none refers to a row with a larger key.
  ///
  /// - Returns: Nil to keep the query's own order. A search that takes longer than `limit` counts as
  ///   having found no row.
  /// - Complexity: Reads the rows that satisfy the query's condition, and the keys they refer to.
  package func deletionOrder(
    of query: IdentifierQuery,
    within limit: Duration?,
    in connection: Connection
  ) throws(BatchError) -> IdentifierQuery? {
    let references = try ownReferences(in: connection)
    if references.isEmpty { return nil }
    let columns = query.key.rowIDName.map { [$0] } ?? key.columns
    func refers(_ comparison: String) throws(BatchError) -> Bool {
      let conditions = references.map {
        """
        EXISTS (SELECT 1 FROM \(table) AS _batch_other WHERE \($0.condition(table, "_batch_other")) \
        AND (\(list(columns, of: "_batch_other"))) \(comparison) (\(list(columns, of: table))))
        """
      }
      let condition = conditions.joined(separator: " OR ")
      return try query.hasRow(where: condition, within: limit, in: connection) ?? false
    }
    guard try refers("<"), try !refers(">") else { return nil }
    return query.ordered(by: columns.map { "\(SQLName.quoted($0)) DESC" })
  }

  /// For each foreign key of the table to itself that restricts deletions, the SQL that finds the
  /// keys of the rows that refer to a given row.
  func referring(in connection: Connection) throws(BatchError) -> [String] {
    let isParent = key.columns.map { "_batch_parent.\(SQLName.quoted($0)) IS ?" }
    return try ownReferences(in: connection).filter(\.restricts).map { reference in
      """
      SELECT \(keyColumns(of: "_batch_child")) FROM \(table) AS _batch_parent \
      JOIN \(table) AS _batch_child ON \(reference.condition("_batch_child", "_batch_parent")) \
      WHERE \(isParent.joined(separator: " AND "))
      """
    }
  }
}

extension IdentifierQuery {
  /// Whether some row satisfies both the request and another condition; nil if the answer takes
  /// longer than `limit`.
  fileprivate func hasRow(
    where other: String,
    within limit: Duration?,
    in connection: Connection
  ) throws(BatchError) -> Bool? {
    let filter = condition.isEmpty ? " WHERE " : "\(condition) AND "
    let statement = try connection.prepare(
      "SELECT 1 FROM \(entity.rowSource)\(filter)(\(other)) LIMIT 1"
    )
    try bind(to: statement)
    guard let limit else { return try statement.step() }
    return try connection.within(limit) { () throws(BatchError) in try statement.step() }
  }
}

extension Entity {
  /// Whether a unique index may depend on some of the columns, so that the order in which rows get
  /// other values affects the outcome.
  package func hasUniqueIndex(
    over columns: [String],
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let name = SQLValue.text(table)
    let unique = try connection.texts(
      """
      SELECT c.name FROM pragma_index_list(?1) AS i, pragma_index_info(i.name) AS c
      WHERE i."unique" AND c.name IS NOT NULL
      """,
      name
    )
    // Expressions, conditions and generated columns mention columns only in their SQL text.
    let texts = try connection.texts(
      """
      SELECT s.sql FROM pragma_index_list(?1) AS i JOIN sqlite_schema AS s ON s.name = i.name
      WHERE i."unique" AND s.sql IS NOT NULL
        AND (i.partial OR EXISTS (SELECT 1 FROM pragma_index_info(i.name) WHERE name IS NULL))
      UNION ALL
      SELECT s.sql FROM sqlite_schema AS s WHERE s.type = 'table' AND lower(s.name) = lower(?1)
        AND EXISTS (
          SELECT 1 FROM pragma_index_list(?1) AS i, pragma_index_info(i.name) AS c
          JOIN pragma_table_xinfo(?1) AS x ON x.name = c.name
          WHERE i."unique" AND x.hidden IN (2, 3))
      """,
      name
    ).map { $0.lowercased() }
    return columns.contains { column in
      unique.contains { SQLName.equal($0, column) }
        || texts.contains { $0.contains(column.lowercased()) }
    }
  }
}
