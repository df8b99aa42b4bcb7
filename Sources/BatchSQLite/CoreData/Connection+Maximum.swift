import BatchRuns
import BatchIdentifiers

extension Connection {
  /// Records the greatest key in `Z_PRIMARYKEY` after rows were inserted into a Core Data table, so
  /// that Core Data does not reuse keys.
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
