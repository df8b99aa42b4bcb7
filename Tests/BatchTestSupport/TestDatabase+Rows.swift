package import BatchRuns
package import BatchSQLite

extension TestDatabase {
  /// All rows of a query.
  package static func rows(_ path: String, _ sql: String) throws -> [[SQLValue]] {
    try rows(Connection(path: path), sql)
  }

  /// All rows of a query.
  package static func rows(_ connection: Connection, _ sql: String) throws -> [[SQLValue]] {
    let statement = try connection.prepare(sql)
    var rows: [[SQLValue]] = []
    while try statement.step() {
      rows.append((0..<statement.columnCount).map { statement.value(at: $0) })
    }
    return rows
  }

  /// Every row of every table but the given ones, byte for byte, and the schema.
  package static func dump(
    _ connection: Connection,
    except: Set<String> = []
  ) throws -> [String] {
    var lines = try connection.texts(
      "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name"
    )
    let tables = try connection.texts(
      "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    )
    for table in tables where !except.contains(table) {
      lines += try dump(connection, table: table)
    }
    return lines
  }

  /// The rows of a table that satisfy a condition, a line each, byte for byte.
  package static func dump(
    _ connection: Connection,
    table: String,
    where condition: String = "1"
  ) throws -> [String] {
    let name = "\"\(table.replacing("\"", with: "\"\""))\""
    let columns = try connection.texts("SELECT name FROM pragma_table_xinfo(?)", .text(table))
    let quoted = columns.map { "quote(\"\($0.replacing("\"", with: "\"\""))\")" }
    return try connection.texts(
      """
      SELECT \(quoted.joined(separator: " || ',' || ")) AS line FROM \(name)
      WHERE \(condition) ORDER BY line
      """
    )
  }
}
