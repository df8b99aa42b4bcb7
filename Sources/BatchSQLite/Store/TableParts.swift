import BatchRuns
package import BatchIdentifiers

package struct TableParts: Sendable {
  /// An index, including those that SQLite creates for constraints.
  package struct Index: Sendable {
    package enum Origin: String, Sendable {
      case primaryKey
      case unique
      case created
    }

    package struct Column: Sendable {
      /// The column; nil for an expression.
      package let name: String?
      package let isDescending: Bool
    }

    package let name: String
    package let isUnique: Bool
    package let isPartial: Bool
    package let origin: Origin
    package let columns: [Column]
    /// The statement that created it; nil if SQLite did.
    package let sql: String?
  }

  package struct ForeignKey: Sendable {
    package let columns: [String]
    package let table: String
    /// The referenced columns; empty for the primary key.
    package let targets: [String]
    package let onDelete: String
    package let onUpdate: String
  }

  package struct Trigger: Sendable {
    package let name: String
    /// When it fires, for example `AFTER UPDATE OF price`.
    package let event: String
    package let sql: String
  }

  package let indexes: [Index]
  package let foreignKeys: [ForeignKey]
  package let triggers: [Trigger]

  init(of table: String, in connection: Connection) throws(BatchError) {
    indexes = try Index.read(of: table, in: connection)
    foreignKeys = try ForeignKey.read(of: table, in: connection)
    triggers = try Trigger.read(of: table, in: connection)
  }
}

extension TableParts.Index {
  fileprivate static func read(
    of table: String,
    in connection: Connection
  ) throws(BatchError) -> [Self] {
    let rows = try connection.prepare(
      """
      SELECT l.name, l."unique", l.partial, l.origin, s.sql
      FROM pragma_index_list(?1, 'main') l LEFT JOIN sqlite_schema s
        ON s.type = 'index' AND s.name = l.name
      ORDER BY l.seq DESC
      """
    )
    try rows.bind(.text(table), at: 1)
    var indexes: [Self] = []
    while try rows.step() {
      let columns = try connection.prepare(
        "SELECT name, desc FROM pragma_index_xinfo(?, 'main') WHERE key ORDER BY seqno"
      )
      try columns.bind(.text(rows.text(at: 0)), at: 1)
      var found: [Column] = []
      while try columns.step() {
        found.append(
          Column(
            name: columns.isNull(at: 0) ? nil : columns.text(at: 0),
            isDescending: columns.integer(at: 1) != 0
          )
        )
      }
      let origin: Origin =
        switch rows.text(at: 3) {
        case "pk": .primaryKey
        case "u": .unique
        default: .created
        }
      indexes.append(
        Self(
          name: rows.text(at: 0),
          isUnique: rows.integer(at: 1) != 0,
          isPartial: rows.integer(at: 2) != 0,
          origin: origin,
          columns: found,
          sql: rows.isNull(at: 4) ? nil : rows.text(at: 4)
        )
      )
    }
    return indexes
  }
}

extension TableParts.ForeignKey {
  fileprivate static func read(
    of table: String,
    in connection: Connection
  ) throws(BatchError) -> [Self] {
    let rows = try connection.prepare(
      """
      SELECT id, "table", "from", "to", on_delete, on_update
      FROM pragma_foreign_key_list(?1, 'main') ORDER BY id DESC, seq
      """
    )
    try rows.bind(.text(table), at: 1)
    var keys: [Self] = []
    var last: Int64?
    while try rows.step() {
      let columns = [rows.text(at: 2)]
      let targets = rows.isNull(at: 3) ? [] : [rows.text(at: 3)]
      // There is one result row for each column of a key.
      let earlier = rows.integer(at: 0) == last ? keys.popLast() : nil
      last = rows.integer(at: 0)
      keys.append(
        Self(
          columns: (earlier?.columns ?? []) + columns,
          table: rows.text(at: 1),
          targets: (earlier?.targets ?? []) + targets,
          onDelete: rows.text(at: 4),
          onUpdate: rows.text(at: 5)
        )
      )
    }
    return keys
  }
}

extension TableParts.Trigger {
  fileprivate static func read(
    of table: String,
    in connection: Connection
  ) throws(BatchError) -> [Self] {
    let rows = try connection.prepare(
      """
      SELECT name, sql FROM sqlite_schema
      WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE ORDER BY name
      """
    )
    try rows.bind(.text(table), at: 1)
    var triggers: [Self] = []
    while try rows.step() {
      let sql = rows.text(at: 1)
      triggers.append(Self(name: rows.text(at: 0), event: event(of: sql), sql: sql))
    }
    return triggers
  }

  /// When a trigger fires: the text between its name and the ON before its table.
  ///
  /// Without quotes, INSERT, UPDATE, DELETE and ON are never names.
  private static func event(of sql: String) -> String {
    // The semicolon after the trigger's first statement is not part of an expression.
    let head = sql.prefix { $0 != ";" }
    guard let scanner = try? ExpressionScanner(String(head)),
      let what = scanner.tokens.firstIndex(where: { token in
        ["INSERT", "UPDATE", "DELETE"].contains { scanner.isKeyword(token, $0) }
      }),
      let end = scanner.tokens[what...].firstIndex(where: { scanner.isKeyword($0, "ON") })
    else { return "" }
    let before = scanner.tokens[..<what].last
    let times: [(word: StaticString, text: String)] = [
      ("BEFORE", "BEFORE"), ("AFTER", "AFTER"), ("OF", "INSTEAD OF"),
    ]
    let time = times.first { time in
      before.map { scanner.isKeyword($0, time.word) } ?? false
    }
    // The default is BEFORE.
    return "\(time?.text ?? "BEFORE") \(scanner.text(of: scanner.tokens[what..<end]))"
  }
}

extension Store {
  package func parts(of entity: Entity) async throws(BatchError) -> TableParts {
    let table = coreData?.entity(named: entity.name)?.table ?? entity.table
    return try await connection(label: "batch.schema").perform { connection throws(BatchError) in
      try TableParts(of: table, in: connection)
    }
  }
}
