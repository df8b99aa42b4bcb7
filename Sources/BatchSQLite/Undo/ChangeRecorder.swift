import BatchRuns
public import BatchIdentifiers

/// Records, for undo, what a connection's statements do to rows of any table: their own changes,
/// those of triggers, and those of foreign-key actions.
///
/// Temporary triggers, invisible to other connections, copy each row into a temporary table before
/// it changes. At the end of the chunk, its new state is read, so that only differences are kept.
/// SQLite does not report rows that `REPLACE` deletes, so these are looked up first.
///
/// See <https://www.sqlite.org/lang_createtrigger.html#temp_triggers_on_non_temp_tables>. The
/// session extension does much the same, but not for tables without a primary key or with generated
/// columns, and not every system's library has it.
package final class ChangeRecorder {
  private let connection: Connection
  private var tables: [RecordedTable] = []
  /// SQLite's schema version for which the triggers were created.
  private var version: SQLValue?

  private static let prefix = "_batch_old_"
  /// The table with the names of written tables that cannot be recorded.
  private static let others = "\(prefix)others"
  private static let slice = 2_000
  private static let compound = 100

  package init(_ connection: Connection) {
    self.connection = connection
  }

  // MARK: Watching

  /// Begins to record, in a chunk's transaction.
  package func begin() throws(BatchError) {
    let version = try connection.value("PRAGMA main.schema_version")
    let isThere = try connection.value(
      "SELECT 1 FROM sqlite_temp_schema WHERE name = ?",
      .text(Self.others)
    )
    if isThere != nil, version == self.version {
      // Remove what a failed chunk left behind.
      for number in try touched() { try connection.execute("DELETE FROM \(log(number))") }
      return try connection.execute("DELETE FROM \(Self.others)")
    }
    try removeTriggers()
    try makeTriggers()
    self.version = version
  }

  private func log(_ number: Int) -> String { "temp.\(Self.prefix)\(number)" }

  private func removeTriggers() throws(BatchError) {
    let old = "FROM sqlite_temp_schema WHERE name GLOB '\(Self.prefix)*'"
    guard try connection.value("SELECT 1 \(old) LIMIT 1") != nil else { return }
    // If another connection has renamed or dropped a table, its triggers cannot be dropped: SQLite
    // has forgotten them, and would remember them with the table's name.
    try connection.execute("PRAGMA writable_schema = ON")
    do throws(BatchError) {
      try connection.execute("DELETE \(old) AND type = 'trigger'")
    } catch {
      try? connection.execute("PRAGMA writable_schema = OFF")
      throw error
    }
    try connection.execute("PRAGMA writable_schema = RESET")
    let tables = try connection.texts("SELECT 'DROP TABLE temp.' || name \(old) AND type = 'table'")
    for sql in tables { try connection.execute(sql) }
  }

  private func makeTriggers() throws(BatchError) {
    try connection.execute("CREATE TEMP TABLE \(Self.others) (name TEXT PRIMARY KEY)")
    tables = []
    for name in try RecordedTable.names(in: connection) {
      if let table = try RecordedTable(name, in: connection) {
        try makeTriggers(of: table, number: tables.count)
        tables.append(table)
      } else {
        try makeTriggers(ofOther: name)
      }
    }
  }

  private func makeTriggers(of table: RecordedTable, number: Int) throws(BatchError) {
    let names = (table.key + table.columns).map(SQLName.quoted)
    let log = "\(Self.prefix)\(number)"
    let slots = names.indices.map { "c\($0)" }
    try connection.execute(
      "CREATE TEMP TABLE \(log) (number INTEGER PRIMARY KEY, was, \(slots.joined(separator: ", ")))"
    )
    func trigger(_ name: String, _ event: String, _ statements: [String]) throws(BatchError) {
      try connection.execute(
        """
        CREATE TEMP TRIGGER \(log)_\(name) \(event) ON \(table.quoted) BEGIN
        \(statements.joined(separator: ";\n")); END
        """
      )
    }
    func row(_ prefix: String) -> String {
      names.map { "\(prefix).\($0)" }.joined(separator: ", ")
    }
    let old = "INSERT INTO \(log) VALUES (NULL, 1, \(row("OLD")))"
    try trigger("update", "BEFORE UPDATE", [old])
    try trigger("delete", "BEFORE DELETE", [old])
    let keySlots = table.key.indices.map { "c\($0)" }.joined(separator: ", ")
    let newKey = table.key.map { "NEW.\(SQLName.quoted($0))" }.joined(separator: ", ")
    let new = "INSERT INTO \(log) (was, \(keySlots)) SELECT 0, \(newKey)"
    // SQLite fires temporary triggers before those of the table, which may change the new row.
    try trigger("insert", "AFTER INSERT", [new])

    // The rows that a new row, or one with a changed key, may replace.
    let isSingle = table.key.count == 1
    let keys = isSingle ? [table.key.map { (name: $0, collation: "") }] : []
    let replaced = (keys + table.uniqueIndexes.map(\.columns)).map { columns in
      let terms = columns.map { name, collation in
        let name = SQLName.quoted(name)
        let collate = collation.isEmpty ? "" : " COLLATE \(SQLName.quoted(collation))"
        return "t.\(name) = NEW.\(name)\(collate)"
      }
      return """
        INSERT INTO \(log) SELECT NULL, 1, \(row("t")) FROM \(table.quoted) AS t
        WHERE \(terms.joined(separator: " AND "))
        """
    }
    try trigger("replace", "BEFORE INSERT", replaced)
    let moved = zip(table.key, table.key.map(SQLName.quoted)).map { "NEW.\($1) IS NOT OLD.\($1)" }
    let own =
      table.key + table.uniqueIndexes.flatMap { $0.columns.map(\.name) }
      // A rowid column can also be set by its other names.
      + (isSingle ? ["rowid", "_rowid_", "oid"] : [])
    try trigger(
      "move",
      "BEFORE UPDATE OF \(SQLName.list(own))",
      replaced + ["\(new) WHERE \(moved.joined(separator: " OR "))"]
    )
  }

  private func makeTriggers(ofOther name: String) throws(BatchError) {
    let literal = SQLValue.text(name).sql
    for event in ["INSERT", "UPDATE", "DELETE"] {
      let trigger = SQLName.quoted("\(Self.prefix)\(event)_\(name)")
      try connection.execute(
        """
        CREATE TEMP TRIGGER \(trigger) BEFORE \(event) ON main.\(SQLName.quoted(name)) BEGIN
        INSERT INTO \(Self.others) SELECT \(literal)
        WHERE NOT EXISTS (SELECT 1 FROM \(Self.others) WHERE name = \(literal)); END
        """
      )
    }
  }

  private func touched() throws(BatchError) -> [Int] {
    var numbers: [Int] = []
    for start in stride(from: 0, to: tables.count, by: Self.compound) {
      let terms = (start..<min(start + Self.compound, tables.count)).map {
        "SELECT \($0) WHERE EXISTS (SELECT 1 FROM \(log($0)))"
      }
      let rows = try connection.prepare(terms.joined(separator: " UNION ALL "))
      while try rows.step() { numbers.append(Int(rows.integer(at: 0))) }
    }
    return numbers
  }

  // MARK: Recording

  /// Saves the changes of rows since ``begin()``, in the same transaction.
  ///
  /// - Throws: `BatchError` of code `unrecordable` if a table was written that cannot be recorded.
  package func record(ofRun run: String) throws(BatchError) {
    let others = try connection.texts("SELECT name FROM \(Self.others) ORDER BY name")
    guard others.isEmpty else { throw Self.unrecordable(others, connection.path) }
    var record = ChangeRecord()
    for number in try touched() {
      try read(number) { changes throws(BatchError) in
        record.tables.append(changes)
        if record.byteCount >= ChunkBytes.chunkLimit {
          try record.enter(run, in: connection)
          record = ChangeRecord()
        }
      }
      try connection.execute("DELETE FROM \(log(number))")
    }
    try record.enter(run, in: connection)
  }

  private func read(
    _ number: Int,
    _ body: (ChangeRecord.Table) throws(BatchError) -> Void
  ) throws(BatchError) {
    let table = tables[number]
    let (keyCount, columnCount) = (table.key.count, table.columns.count)
    let width = keyCount + columnCount
    let keys = table.key.map { "t.\(SQLName.quoted($0))" }
    let values =
      ["b.number", "b.was", "\(keys[0]) IS NOT NULL"] + (0..<width).map { "b.c\($0)" }
      + table.columns.map { "t.\(SQLName.quoted($0))" }
    let join = keys.indices.map { "\(keys[$0]) = b.c\($0)" }.joined(separator: " AND ")
    let statement = try connection.prepare(
      """
      SELECT \(RowCollector.columns(values)) FROM \(log(number)) AS b
      LEFT JOIN \(table.quoted) AS t ON \(join) WHERE b.number > ?1 AND b.number <= ?2
      """
    )
    guard
      case .integer(let last)? = try connection.value("SELECT max(number) FROM \(log(number))")
    else { return }
    var seen: Set<PrimaryKey> = []
    var next: Int64 = 0
    while next < last {
      let end = min(next + Int64(Self.slice), last)
      var rows = ValueBlock(columns: values.count, capacity: Int(end - next))
      try statement.bind(next, at: 1)
      try statement.bind(end, at: 2)
      _ = try connection.collector.collect(
        from: statement,
        into: &rows,
        upTo: ChunkBytes.chunkLimit
      )
      statement.reset()
      guard rows.count > 0 else { break }
      next = rows.word(rows.count - 1, 0)
      let changes = ChangeRecord.Table(
        table,
        was: { rows.word($0, 1) != 0 },
        is: { rows.word($0, 2) != 0 },
        keys: rows.columns(3..<3 + keyCount),
        before: rows.columns(3 + keyCount..<3 + width),
        after: rows.columns(3 + width..<values.count),
        butOf: &seen
      )
      if changes.count > 0 { try body(changes) }
    }
  }

  private static func unrecordable(_ tables: [String], _ path: String) -> BatchError {
    BatchError(
      .unrecordable,
      "the run has written \(tables.map(\.quotedForMessage).joined(separator: ", ")), which belongs to a virtual table or hides its rowids: it"
        + " could not be undone",
      at: path,
      remedy: "run without undo, or leave that table alone and fill it again afterwards"
    )
  }
}

extension BatchError.Code {
  /// The changes of a run cannot be recorded, so it could not be undone.
  public static let unrecordable = Self(rawValue: "unrecordable")
}
