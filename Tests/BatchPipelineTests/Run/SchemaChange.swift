import BatchRuns
import BatchSQLite
import BatchTestSupport

/// All tables, views, indexes and triggers of a database but those of `batch`, with their rows.
struct DatabaseSnapshot: Equatable {
  private let schema: [String]
  /// The statements that insert the rows of each table.
  private(set) var rows: [String: [String]] = [:]

  private static let own = "name NOT GLOB '_batch*' AND name NOT GLOB 'sqlite_*'"

  init(_ connection: Connection) throws {
    schema = try connection.texts(
      """
      SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND \(Self.own)
      ORDER BY type = 'table' DESC, rowid
      """
    )
    let tables = try connection.texts(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND \(Self.own)"
    )
    for table in tables {
      let columns = try connection.texts(
        "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0",
        .text(table)
      )
      let values = columns.map { "quote(`\($0)`)" }.joined(separator: " || ',' || ")
      let names = columns.map { "`\($0)`" }.joined(separator: ", ")
      rows[table] = try connection.texts(
        "SELECT \(values) AS line FROM `\(table)` ORDER BY line"
      ).map { "INSERT INTO `\(table)` (\(names)) VALUES (\($0))" }
    }
  }

  /// Makes a database what it was.
  func restore(in connection: Connection) throws {
    let old = try connection.texts(
      """
      SELECT 'DROP ' || type || ' `' || name || '`' FROM sqlite_schema
      WHERE type IN ('table', 'view', 'trigger') AND \(Self.own) ORDER BY type = 'table'
      """
    )
    for sql in old { try connection.execute(sql) }
    let (tables, others) = (schema.filter(Self.isTable), schema.filter { !Self.isTable($0) })
    for sql in tables { try connection.execute(sql) }
    for sql in rows.values.joined() { try connection.execute(sql) }
    for sql in others { try connection.execute(sql) }
  }

  private static func isTable(_ sql: String) -> Bool { sql.hasPrefix("CREATE TABLE") }
}

/// A table `t` with a key and three columns, beside others that depend on it, or do not.
struct ChangingTable {
  struct Column {
    var name: String
    var type: String

    var sql: String { "`\(name)` \(type)" }
  }

  let key: [String]
  let keyTypes: [String]
  let columns: [Column]
  let tail: String
  static let count = 40

  init(using random: inout SeededGenerator) {
    let integer = "INTEGER NOT NULL"
    let shapes: [(keys: [Column], tail: String)] = [
      ([.init(name: "k", type: "INTEGER PRIMARY KEY")], ")"),
      ([.init(name: "k", type: "TEXT PRIMARY KEY NOT NULL")], ")"),
      ([.init(name: "k", type: "TEXT PRIMARY KEY")], ") WITHOUT ROWID"),
      (["k", "l"].map { .init(name: $0, type: integer) }, ", PRIMARY KEY (k, l))"),
      ([.init(name: "k", type: "TEXT NOT NULL UNIQUE")], ")"),
    ]
    let shape = shapes.randomElement(using: &random) ?? shapes[0]
    key = shape.keys.map(\.name)
    keyTypes = shape.keys.map(\.type)
    tail = shape.tail
    let others = [
      Column(name: "a", type: "INTEGER"), Column(name: "b", type: "TEXT"),
      Column(name: "c", type: "INTEGER"),
    ]
    columns = (shape.keys + others).shuffled(using: &random)
  }

  static func create(_ name: String, _ columns: [Column], _ tail: String) -> String {
    "CREATE TABLE `\(name)` (\(columns.map(\.sql).joined(separator: ", "))\(tail)"
  }

  /// Makes the tables, whose rows are in no order.
  func make(in connection: Connection, using random: inout SeededGenerator) throws {
    let keys = key.joined(separator: ", ")
    let isText = keyTypes[0].hasPrefix("TEXT")
    for sql in [
      Self.create("t", columns, tail),
      "CREATE TABLE d (id INTEGER PRIMARY KEY, t_k, x INTEGER)",
      "CREATE TABLE u (k INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT)",
      "CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)",
      "INSERT INTO u VALUES (1, 'u', 'u', 'u'), (2, 'u', 'u', 'u')",
      "CREATE VIEW v AS SELECT \(keys), a, b FROM t", "CREATE INDEX t_b ON t (b)",
    ] { try connection.execute(sql) }
    for id in (1...Self.count).shuffled(using: &random) {
      let k = isText ? "'k\(id)'" : key.count > 1 ? "\(id % 5)" : "\(id)"
      let l = key.count > 1 ? ", l" : ""
      try connection.execute(
        """
        INSERT INTO t (k\(l), a, b, c)
        VALUES (\(k)\(l.isEmpty ? "" : ", \(id)"), \(id % 11), 'b\(id % 7)', \(1000 + id))
        """
      )
      if Bool.random(using: &random) {
        try connection.execute("INSERT INTO d VALUES (\(1000 + id), \(k), \(id % 3))")
      } else {
        try connection.execute("INSERT INTO d VALUES (\(1000 + id), NULL, 0)")
      }
    }
  }
}

/// What somebody does to the schema of a ``ChangingTable``.
struct SchemaChange: CustomStringConvertible {
  let description: String
  let statements: [String]
  /// Whether no run may stop for it: it takes and moves nothing that a statement names.
  var isUnrelated = false
  /// Whether it adds a column, which concerns a run that keeps copies of deleted rows.
  var addsColumn = false
  /// What `t` is called afterwards; nil if it is gone.
  var table: String? = "t"
  /// What its columns are called afterwards; nil for those that are gone.
  var renamed: [String: String?] = [:]

  init(_ description: String, _ statements: String...) {
    self.init(description, statements)
  }

  private init(_ description: String, _ statements: [String]) {
    self.description = description
    self.statements = statements
  }

  private func with(_ edit: (inout SchemaChange) -> Void) -> SchemaChange {
    var change = self
    edit(&change)
    return change
  }

  /// The dance of `sqlite-utils transform` and of Django: a new table, a copy, another name.
  private static func rebuild(
    _ description: String,
    _ table: ChangingTable,
    _ edit: (inout [ChangingTable.Column], inout String) -> Void
  ) -> SchemaChange {
    var (columns, tail) = (table.columns, table.tail)
    edit(&columns, &tail)
    let same = columns.filter { column in
      table.columns.contains { $0.name == column.name } && !column.type.contains("AS (")
    }
    let names = same.map { "`\($0.name)`" }.joined(separator: ", ")
    var change = SchemaChange(
      description,
      "PRAGMA legacy_alter_table = ON",
      ChangingTable.create("t_new", columns, tail),
      "INSERT INTO t_new (\(names)) SELECT \(names) FROM t ORDER BY k DESC",
      "DROP TABLE t",
      "ALTER TABLE t_new RENAME TO t",
      "PRAGMA legacy_alter_table = OFF"
    )
    for column in table.columns where !same.contains(where: { $0.name == column.name }) {
      change.renamed[column.name] = .some(nil)
    }
    return change
  }

  static func random(_ table: ChangingTable, using random: inout SeededGenerator) -> SchemaChange {
    let names = ["a", "b", "c"].shuffled(using: &random)
    let (x, y) = (names[0], names[1])
    let key = table.key[0]
    let keys = table.key.joined(separator: ", ")
    func rename(_ from: String, _ to: String) -> String {
      "ALTER TABLE t RENAME COLUMN `\(from)` TO `\(to)`"
    }
    let types = ["TEXT", "", "NUMERIC", "TEXT COLLATE NOCASE", "BLOB"]
    let type = types.randomElement(using: &random) ?? ""
    let changes: [SchemaChange] = [
      rebuild("drop \(x)", table) { columns, _ in columns.removeAll { $0.name == x } },
      SchemaChange("rename \(x)", rename(x, "x_2")).with { $0.renamed[x] = "x_2" },
      SchemaChange("swap \(x), \(y)", rename(x, "z"), rename(y, x), rename("z", y)).with {
        ($0.renamed[x], $0.renamed[y]) = (y, x)
      },
      SchemaChange("rename \(x) and back", rename(x, "z"), rename("z", x)).with {
        $0.isUnrelated = true
      },
      rebuild("retype \(x) as \(type)", table) { columns, _ in
        for index in columns.indices where columns[index].name == x { columns[index].type = type }
      },
      SchemaChange("add", "ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 7").with {
        ($0.isUnrelated, $0.addsColumn) = (true, true)
      },
      rebuild("add a generated column", table) { columns, _ in
        columns.append(.init(name: "z", type: "INTEGER AS (a * 2)"))
      }.with { ($0.isUnrelated, $0.addsColumn) = (true, true) },
      rebuild("generate \(x)", table) { columns, _ in
        for index in columns.indices where columns[index].name == x {
          columns[index].type = "AS (k || 'g')"
        }
      },
      SchemaChange("rename t", "ALTER TABLE t RENAME TO t_2").with { $0.table = "t_2" },
      SchemaChange("drop t", "DROP TABLE t").with { $0.table = nil },
      rebuild("recreate t", table) { _, _ in }.with { $0.isUnrelated = true },
      rebuild("take the key", table) { columns, tail in
        for index in columns.indices where table.key.contains(columns[index].name) {
          columns[index].type = String(columns[index].type.prefix { $0 != " " })
        }
        tail = ")"
      },
      rebuild("another key", table) { columns, tail in
        for index in columns.indices where table.key.contains(columns[index].name) {
          columns[index].type = String(columns[index].type.prefix { $0 != " " })
        }
        tail = ", PRIMARY KEY (c))"
      },
      SchemaChange("rename key", rename(key, "k_2")).with { $0.renamed[key] = "k_2" },
      SchemaChange("swap key, c", rename(key, "z"), rename("c", key), rename("z", "c")).with {
        ($0.renamed[key], $0.renamed["c"]) = ("c", key)
      },
      rebuild("reverse", table) { columns, _ in columns.reverse() },
      SchemaChange(
        "swap t, u",
        "PRAGMA legacy_alter_table = ON",
        "ALTER TABLE t RENAME TO z",
        "ALTER TABLE u RENAME TO t",
        "ALTER TABLE z RENAME TO u",
        "PRAGMA legacy_alter_table = OFF"
      ).with { $0.table = "u" },
      SchemaChange(
        "redefine v",
        "DROP VIEW v",
        "CREATE VIEW v AS SELECT \(keys), a + 1 AS a, b FROM t WHERE a > 3"
      ),
      SchemaChange("drop v", "DROP VIEW v"),
      SchemaChange("view for t", "ALTER TABLE t RENAME TO z", "CREATE VIEW t AS SELECT * FROM z")
        .with { $0.table = "z" },
      SchemaChange("index a", "CREATE INDEX t_a ON t (a)").with { $0.isUnrelated = true },
      SchemaChange("unique c", "CREATE UNIQUE INDEX t_c ON t (c)").with { $0.isUnrelated = true },
      SchemaChange("drop t_b", "DROP INDEX t_b").with { $0.isUnrelated = true },
      SchemaChange(
        "trigger",
        "CREATE TRIGGER t_u AFTER UPDATE ON t BEGIN INSERT INTO log (what) VALUES (OLD.k); END"
      ).with { $0.isUnrelated = true },
      rebuild("foreign key", table) { columns, _ in
        for index in columns.indices where columns[index].name == "c" {
          columns[index].type += " REFERENCES d (id)"
        }
      }.with { $0.isUnrelated = true },
      SchemaChange("rename u", "ALTER TABLE u RENAME TO u_2").with { $0.isUnrelated = true },
      SchemaChange("drop u", "DROP TABLE u").with { $0.isUnrelated = true },
      SchemaChange("rename d", "ALTER TABLE d RENAME TO d_2"),
      SchemaChange("drop d", "DROP TABLE d"),
      SchemaChange("rename d.x", "ALTER TABLE d RENAME COLUMN x TO y"),
      SchemaChange("rename old", "ALTER TABLE old RENAME TO old_2"),
      SchemaChange("rename old.a", "ALTER TABLE old RENAME COLUMN a TO z"),
    ]
    return changes.randomElement(using: &random) ?? changes[0]
  }

  /// Makes the change in one transaction.
  ///
  /// - Returns: The database before and after it.
  func make(
    in connection: Connection
  ) throws -> (before: DatabaseSnapshot, after: DatabaseSnapshot) {
    try connection.execute("BEGIN IMMEDIATE")
    let before = try DatabaseSnapshot(connection)
    for sql in statements { try connection.execute(sql) }
    let after = try DatabaseSnapshot(connection)
    try connection.execute("COMMIT")
    return (before, after)
  }
}
