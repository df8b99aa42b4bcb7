package import BatchRuns
package import BatchIdentifiers

/// Rows of one table that are changed together, many per statement, if they are still as they were
/// read.
package struct RowSet: Sendable {
  private var change: BulkChange

  /// Makes a set of rows to update, in an entity whose key is the rowid.
  ///
  /// Values come in the order of `columns`; the `compared` columns show whether a row has changed.
  ///
  /// - Throws: `BatchError` of code `unstableKey` for an entity without a key.
  package init(
    updating columns: [(name: String, isPartial: Bool)],
    of entity: Entity,
    comparing compared: [String]
  ) throws(BatchError) {
    try self.init(
      .assign(
        columns.enumerated().map {
          .init(column: $1.name, number: $0, isPartial: $1.isPartial)
        }
      ),
      entity,
      compared
    )
  }

  package init(deletingFrom entity: Entity, comparing compared: [String]) throws(BatchError) {
    try self.init(.delete(archive: nil), entity, compared)
  }

  private init(
    _ action: BulkChange.Action,
    _ entity: Entity,
    _ compared: [String]
  ) throws(BatchError) {
    let key = try entity.requireKey()
    let isSame =
      compared.isEmpty
      ? nil
      : SQLExpression(
        ValueFunction.sameCondition(compared, rowID: SQLName.quoted(key.columns[0]))
      )
    change = BulkChange(
      entity: entity,
      key: key,
      action: action,
      predicate: isSame,
      recheck: .skip,
      parameters: [:]
    )
  }

  /// Whether one statement for many rows has the same effect as one statement for each row.
  ///
  /// That is so if no trigger, and no enforced foreign key, affects what the statement reads. For a
  /// deletion, foreign keys need not be considered: the row count reveals whether they reached
  /// other rows of the set.
  package func isIndependent(
    enforcingForeignKeys enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let schema = try connection.value("PRAGMA schema_version")
    if connection.independence.schema != schema { connection.independence = (schema, [:]) }
    let sql = change.changeSQL(for: .shape(of: change.key))
    if let known = connection.independence.ofStatements[sql] { return known }
    let isIndependent =
      try change.reach(enforcesForeignKeys: enforcesForeignKeys, in: connection) == .nothing
    connection.independence.ofStatements[sql] = isIndependent
    return isIndependent
  }

  /// Changes all rows or none, inside the caller's transaction; false if nothing was done, because
  /// a row has changed or something refused the change.
  ///
  /// `keys` are ascending rowids. `values` has a row for each of them; empty for deletions. `rows`
  /// has the compared columns as they were read; empty to compare none.
  ///
  /// - Throws: Errors that concern more than rows.
  package func writeAllOrNone(
    to keys: [Int64],
    _ values: ValueBlock,
    ifStill rows: [[SQLValue]],
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let keys = ChunkKeys.rowIDs(keys)
    connection.values.block = values
    connection.values.expected = rows
    defer {
      connection.values.block = ValueBlock(columns: 0, capacity: 0)
      connection.values.expected = []
    }
    do throws(BatchError) {
      try connection.savepoint { () throws(BatchError) in
        let written = try change.writeAll(to: keys, in: connection)
        guard written.succeeded == keys.identifierCount else {
          throw BatchError(.rowsChanged, "rows are not what they were")
        }
      }
      return true
    } catch {
      guard !connection.isAutocommit, error.code == .rowsChanged || error.isAboutRows else {
        throw error
      }
      return false
    }
  }
}
