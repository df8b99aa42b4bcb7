package import BatchRuns
import BatchSQLite
import Foundation

/// Real SQLite databases for tests.
public enum TestDatabase {
  /// Makes a database from SQL statements, each of its own.
  ///
  /// - Returns: Its path.
  @discardableResult
  public static func make(
    _ name: String = "test.db",
    in directory: TemporaryDirectory,
    _ statements: String...
  ) throws -> String {
    let path = directory.file(name)
    // A file of no bytes is an empty database.
    if !FileManager.default.fileExists(atPath: path) {
      guard FileManager.default.createFile(atPath: path, contents: nil) else {
        throw CocoaError(.fileWriteUnknown)
      }
    }
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
    return path
  }

  /// A table of integers: `id` from 1 to `count`, `n` zero, and `label` text.
  @discardableResult
  public static func makeNumbers(
    _ count: Int,
    in directory: TemporaryDirectory,
    name: String = "test.db"
  ) throws -> String {
    try make(
      name,
      in: directory,
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0, label TEXT)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(count))
      INSERT INTO numbers (id, label) SELECT i, 'label ' || i FROM c
      """
    )
  }

  /// Puts another name into the definitions of a database, so that they need what SQLite does not have.
  public static func rename(_ from: String, _ to: String, inSchemaOf path: String) throws {
    let connection = try Connection(path: path)
    try connection.execute("PRAGMA writable_schema = ON")
    try connection.execute(
      "UPDATE sqlite_schema SET sql = replace(sql, ?, ?)",
      .text(from),
      .text(to)
    )
  }

  /// The first column of the first row of a query.
  package static func value(_ path: String, _ sql: String) throws -> SQLValue? {
    try Connection(path: path).value(sql)
  }

  /// The first column of a query, as text.
  public static func texts(_ path: String, _ sql: String) throws -> [String] {
    try Connection(path: path).texts(sql)
  }

  /// What SQLite says of the integrity of a database: `ok`.
  public static func integrity(_ path: String) throws -> [String] {
    try texts(path, "PRAGMA integrity_check")
  }
}
