import BatchRuns
import BatchIdentifiers

/// Columns whose values are different in any two rows of a table, except NULL.
package struct UniqueKey: Sendable, Hashable {
  package struct Column: Sendable, Hashable {
    package let name: String
    package let collation: String
  }

  package let columns: [Column]

  /// The unique indexes of all tables or of one, by table, except partial and expression indexes.
  static func read(
    of table: String? = nil,
    in connection: Connection
  ) throws(BatchError) -> [String: [UniqueKey]] {
    let rows = try connection.prepare(
      """
      SELECT t.name, i.name, c.name, c.coll FROM pragma_table_list AS t,
        pragma_index_list(t.name, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS c
      WHERE t.schema = 'main' AND t.type = 'table' AND i."unique" AND NOT i.partial AND c.key
        AND (?1 IS NULL OR t.name = ?1 COLLATE NOCASE)
      ORDER BY t.name, i.seq DESC, c.seqno
      """
    )
    try rows.bind(table.map(SQLValue.text) ?? .null, at: 1)
    var indexes: [(table: String, name: String, columns: [Column?])] = []
    while try rows.step() {
      let (table, name) = (rows.text(at: 0), rows.text(at: 1))
      if indexes.last?.table != table || indexes.last?.name != name {
        indexes.append((table, name, []))
      }
      let column =
        rows.isNull(at: 2) ? nil : Column(name: rows.text(at: 2), collation: rows.text(at: 3))
      indexes[indexes.count - 1].columns.append(column)
    }
    var keys: [String: [UniqueKey]] = [:]
    for index in indexes {
      let columns = index.columns.compactMap(\.self)
      guard columns.count == index.columns.count else { continue }
      keys[index.table, default: []].append(UniqueKey(columns: columns))
    }
    return keys
  }
}
