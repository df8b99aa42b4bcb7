import BatchIdentifiers

extension Connection {
  /// Has Core Data give no key of a table again that is there: the greatest one is that of `Z_PRIMARYKEY`,
  /// where rows were inserted into a table of Core Data's.
  func keepMaximum(of table: Entity) throws(BatchError) {
    guard table.versionColumn != nil, try namesCoreDataEntities else { return }
    try execute(
      """
      UPDATE main.Z_PRIMARYKEY SET Z_MAX = max(ifnull(Z_MAX, 0), \
        (SELECT ifnull(max(Z_PK), 0) FROM main.\(SQLName.quoted(table.table)))) \
      WHERE Z_SUPER = 0 AND 'Z' || upper(Z_NAME) = upper(?)
      """,
      .text(table.table)
    )
  }
}
