import BatchRuns
import BatchIdentifiers

package struct ForeignKey: Sendable, Hashable {
  package let column: String
  package let table: String
  /// The referenced column; nil for the primary key.
  package let target: String?
  /// What SQLite does when the referenced row is deleted: `CASCADE`, `SET NULL`, ….
  package let onDelete: String

  static func read(
    of table: String,
    in connection: Connection
  ) throws(BatchError) -> [ForeignKey] {
    let rows = try connection.prepare(
      """
      SELECT "from", "table", "to", on_delete FROM pragma_foreign_key_list(?1, 'main')
      GROUP BY id HAVING count(*) = 1 ORDER BY id DESC
      """
    )
    try rows.bind(.text(table), at: 1)
    var keys: [ForeignKey] = []
    while try rows.step() {
      keys.append(
        ForeignKey(
          column: rows.text(at: 0),
          table: rows.text(at: 1),
          target: rows.isNull(at: 2) ? nil : rows.text(at: 2),
          onDelete: rows.text(at: 3)
        )
      )
    }
    return keys
  }
}
