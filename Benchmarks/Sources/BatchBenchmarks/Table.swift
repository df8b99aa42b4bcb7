import Foundation

/// A table of a kind that people have: `t`, with a number `n` from 0 to 999 in each row.
struct Table {
  let name: String
  /// The kind, for readers of the table.
  let title: String
  /// The definitions of the key's columns.
  let key: String
  /// The key of row `i`.
  let keyOfRow: String
  var constraint = ""
  var options = ""
  /// Further columns, and their values in row `i`.
  var columns = "label TEXT, price REAL, created TEXT"
  var values = "'label ' || i, i * 0.25, datetime(1700000000 + i, 'unixepoch')"
  var indexes: [String] = []
  /// How many rows of others it has one for.
  var scarcity = 1

  static let all: [Table] = [
    Table(name: "dense", title: "dense integers", key: "id INTEGER PRIMARY KEY", keyOfRow: "i"),
    Table(
      name: "random",
      title: "random integers",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "random() >> 1"
    ),
    Table(
      name: "uuid-text",
      title: "UUIDs as text",
      key: "id TEXT NOT NULL PRIMARY KEY",
      keyOfRow: uuid
    ),
    Table(
      name: "uuid-blob",
      title: "UUIDs as blobs",
      key: "id BLOB NOT NULL PRIMARY KEY",
      keyOfRow: "randomblob(16)"
    ),
    Table(
      name: "uuid-without-rowid",
      title: "UUIDs as text, WITHOUT ROWID",
      key: "id TEXT NOT NULL PRIMARY KEY",
      keyOfRow: uuid,
      options: "WITHOUT ROWID"
    ),
    Table(
      name: "text",
      title: "ascending text",
      key: "id TEXT NOT NULL PRIMARY KEY",
      keyOfRow: "printf('ORD-%08d', i)"
    ),
    Table(
      name: "two-integers",
      title: "two integer columns",
      key: "a INTEGER, b INTEGER",
      keyOfRow: "i / 100, i % 100",
      constraint: ", PRIMARY KEY (a, b)"
    ),
    Table(
      name: "two-random",
      title: "two random columns",
      key: "a TEXT, b INTEGER",
      keyOfRow: "hex(randomblob(3)), random() >> 24",
      constraint: ", PRIMARY KEY (a, b)"
    ),
    Table(
      name: "five-indexes",
      title: "five indexes, one of the set column",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "i",
      indexes: ["n", "label", "price", "created", "label, price"]
    ),
    Table(
      name: "wide",
      title: "rows of 1 kB",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "i",
      columns: "body TEXT",
      values: "hex(randomblob(500))",
      scarcity: 3
    ),
    Table(
      name: "wider",
      title: "rows of 100 kB",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "i",
      columns: "body TEXT",
      values: "hex(randomblob(50000))",
      scarcity: 100
    ),
    Table(
      name: "columns",
      title: "80 columns",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "i",
      columns: (1...78).map { "c\($0)" }.joined(separator: ", "),
      values: (1...78).map { $0 % 3 == 0 ? "'text ' || i" : "i + \($0)" }.joined(separator: ", "),
      scarcity: 6
    ),
    Table(
      name: "strict",
      title: "STRICT",
      key: "id INTEGER PRIMARY KEY",
      keyOfRow: "i",
      options: "STRICT"
    ),
  ]

  private static let uuid = """
    printf('%s-%s-4%s-a%s-%s', lower(hex(randomblob(4))), lower(hex(randomblob(2))), \
    substr(lower(hex(randomblob(2))), 2), substr(lower(hex(randomblob(2))), 2), \
    lower(hex(randomblob(6))))
    """

  /// Its database, created on first use.
  func database(of rows: Int, in folder: URL, _ tools: Tools) throws -> URL {
    let database = folder.appendingPathComponent("\(name)-\(rows).db")
    if FileManager.default.fileExists(atPath: database.path) { return database }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let unfinished = folder.appendingPathComponent("unfinished.db")
    try? FileManager.default.removeItem(at: unfinished)
    let statements =
      [
        "CREATE TABLE t (\(key), n INTEGER, \(columns)\(constraint)) \(options)",
        """
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows / scarcity))
        INSERT INTO t SELECT \(keyOfRow), i * 7919 % 1000, \(values) FROM c
        """,
      ] + indexes.enumerated().map { "CREATE INDEX t\($0) ON t (\($1))" }
    try tools.run([
      "sqlite3", "-bail", unfinished.path, "PRAGMA journal_mode = OFF",
      statements.joined(separator: "; "),
    ])
    try FileManager.default.moveItem(at: unfinished, to: database)
    return database
  }
}
