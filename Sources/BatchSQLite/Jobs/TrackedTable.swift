package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

/// What logs the changes of a table: the log, a number in the register, and triggers.
///
/// `REPLACE` removes rows without setting off triggers, so the triggers before an insertion or an update log every row
/// with an equal unique value. Logging a row that stays as it is does no harm: rows are exported as they are.
package struct TrackedTable {
  private let entity: Entity
  private let key: [Attribute]
  /// The table, the log and the table's name as a text, in SQL.
  private let (table, log, name): (String, String, String)

  /// - Throws: `BatchError` of code `notTracked` for a view, `unstableKey` for a table without a key.
  package init(_ entity: Entity) throws(BatchError) {
    guard entity.kind == .table else {
      throw ChangeLog.refusal(entity.name, "is a \(entity.kind.words)")
    }
    guard entity.attribute(named: ChangeLog.column) == nil else {
      throw ChangeLog.refusal(entity.name, "has a column \(ChangeLog.column)")
    }
    self.entity = entity
    var key: [Attribute] = []
    for column in try entity.requireKey().columns {
      key.append(try entity.requireAttribute(named: column))
    }
    self.key = key
    table = SQLName.standard(entity.table)
    log = SQLName.standard(ChangeLog.name(of: entity.table))
    name = "'\(entity.table.replacing("'", with: "''"))'"
  }

  // MARK: Definitions

  private var own: String { "entity = \(name) AND job = ''" }
  private var columns: [String] { key.map { SQLName.standard($0.column) } }

  private static func trigger(_ part: String, of table: String) -> String {
    SQLName.standard("\(ChangeLog.name(of: table))_\(part)")
  }

  private static let parts = ["insert", "update", "delete", "replace", "replacing"]

  /// The objects in the order in which they are made.
  private var definitions: [(name: String, sql: String)] {
    let list = columns.joined(separator: ", ")
    let (number, inserted) = ("\"\(ChangeLog.number)\"", "\"\(ChangeLog.inserted)\"")
    let types = zip(columns, key).map { column, attribute in
      // Only in a STRICT table, ANY keeps values as they are.
      let type =
        attribute.isStrict && attribute.type.uppercased() == "ANY" ? "" : " \(attribute.type)"
      return "\(column)\(type) COLLATE BINARY NOT NULL"
    }
    /// Logs keys, which come from a row or a SELECT.
    func entry(_ row: String, _ values: String, _ source: String, isNew: Bool = false) -> String {
      let there = key.filter(\.isOptional).map {
        " AND \(row).\(SQLName.standard($0.column)) IS NOT NULL"
      }
      let keys = columns.map { "\(row).\($0)" }.joined(separator: ", ")
      return """
        INSERT INTO \(log) (\(list), \(number), \(inserted)) SELECT \(keys), \(values) \
        FROM \(ChangeLog.register) AS r\(source)\(there.joined()) \
        ON CONFLICT (\(list), \(number)) DO \(isNew ? "UPDATE SET \(inserted) = 1" : "NOTHING");
        """
    }
    let isOwn = " WHERE r.entity = \(name) AND r.job = ''"
    let count = "UPDATE \(ChangeLog.register) SET number = number + 1 WHERE \(own);"
    func logged(_ row: String, if condition: String = "", isNew: Bool = false) -> String {
      entry(row, "r.number, \(isNew ? 1 : 0)", isOwn + condition, isNew: isNew)
    }
    let differs = columns.map { "OLD.\($0) IS NOT NEW.\($0) COLLATE BINARY" }
    var triggers = [
      ("insert", "AFTER INSERT", [count, logged("NEW", isNew: true)]),
      (
        "update", "AFTER UPDATE",
        [
          count, logged("OLD"),
          logged("NEW", if: " AND (\(differs.joined(separator: " OR ")))", isNew: true),
        ]
      ),
      ("delete", "AFTER DELETE", [count, logged("OLD")]),
    ]
    // A row that is replaced by one with its own key has the key of the new one.
    let others = entity.uniqueKeys.filter { unique in
      !columns.allSatisfy { column in
        unique.columns.contains { SQLName.standard($0.name) == column && $0.collation == "BINARY" }
      }
    }
    if !others.isEmpty {
      let equal = others.map { unique in
        unique.columns.map { column in
          let name = SQLName.standard(column.name)
          return "t.\(name) COLLATE \(SQLName.standard(column.collation)) = NEW.\(name)"
        }.joined(separator: " AND ")
      }
      // The next number: the event of the trigger has not counted yet.
      let replaced = entry(
        "t",
        "r.number + 1, 0",
        ", \(table) AS t\(isOwn) AND (\(equal.joined(separator: " OR ")))"
      )
      let unique = Set(others.flatMap(\.columns).map { SQLName.standard($0.name) }).sorted()
      triggers += [
        ("replace", "BEFORE INSERT", [replaced]),
        ("replacing", "BEFORE UPDATE OF \(unique.joined(separator: ", "))", [replaced]),
      ]
    }
    func made(_ part: String, _ event: String, on table: String, _ body: [String]) -> (
      String, String
    ) {
      let trigger = Self.trigger(part, of: entity.table)
      return (
        trigger,
        "CREATE TRIGGER \(trigger) \(event) ON \(table) BEGIN \(body.joined(separator: " ")) END"
      )
    }
    let index = Self.trigger("number", of: entity.table)
    return [
      (
        log,
        """
        CREATE TABLE \(log) (\(types.joined(separator: ", ")), \(number) INTEGER NOT NULL, \
        \(inserted) INTEGER NOT NULL, PRIMARY KEY (\(list), \(number))) WITHOUT ROWID
        """
      ),
      (index, "CREATE INDEX \(index) ON \(log) (\(number))"),
      // Whoever removes changes: no job that needs them goes on without them.
      made(
        "trim",
        "AFTER DELETE",
        on: log,
        [
          "UPDATE \(ChangeLog.register) SET position = OLD.\(number) + 1"
            + " WHERE \(own) AND position <= OLD.\(number);"
        ]
      ),
    ] + triggers.map { made($0.0, $0.1, on: table, $0.2) }
  }

  // MARK: State

  /// The log; inside one transaction.
  ///
  /// - Throws: `BatchError` of code `notTracked` if the changes are not logged, or not all.
  package func log(in connection: Connection) throws(BatchError) -> ChangeLog {
    func missing(_ reason: String) -> BatchError {
      ChangeLog.isMissing(reason, entity.table, in: connection.path)
    }
    let title = entity.name.quotedForMessage
    for (name, sql) in definitions {
      let bare = String(name.dropFirst().dropLast()).replacing("\"\"", with: "\"")
      let stored = try connection.value("SELECT sql FROM sqlite_schema WHERE name = ?", .text(bare))
      if stored == .text(sql) { continue }
      guard name == log else {
        throw missing(
          "a trigger or an index that logs the changes of \(title) is gone, or another one now"
        )
      }
      throw missing(
        stored == nil
          ? "the changes of \(title) are not logged"
          : "the key of \(title) is not that of its logged changes"
      )
    }
    // A change that was ignored may have the next number.
    let rows = try connection.prepare(
      """
      SELECT r.job, r.position, t.number + 1, (SELECT count(*) FROM \(log)
        WHERE "\(ChangeLog.number)" BETWEEN iif(r.job = '', 0, r.position) AND t.number)
      FROM \(ChangeLog.register) AS r JOIN \(ChangeLog.register) AS t ON t.entity = r.entity AND t.job = ''
      WHERE r.entity = \(name) ORDER BY r.job
      """
    )
    guard try rows.step() else { throw missing("the changes of \(title) are not logged") }
    let (start, end, count) = (rows.integer(at: 1), rows.integer(at: 2), rows.integer(at: 3))
    var readers: [ChangeLog.Reader] = []
    while try rows.step() {
      readers.append(
        .init(rows.text(at: 0), from: rows.integer(at: 1), changes: Int(rows.integer(at: 3)))
      )
    }
    return ChangeLog(
      of: entity.name,
      key: key.map(\.column),
      start: start,
      end: end,
      count: Int(count),
      readers: readers
    )
  }

  /// The SELECT of the rows of an increment.
  func rows(of increment: Increment) -> String {
    ChangeLog.rows(
      of: increment,
      from: SQLName.quoted(entity.table),
      SQLName.quoted(ChangeLog.name(of: entity.table)),
      entity.attributes.map(\.column),
      key: key.map(\.column),
      quoted: SQLName.quoted,
      // The index of the key finds the row, and a key is another one if its bytes are.
      equality: { "\($0) = \($1) AND \($0) COLLATE BINARY = \($1)" }
    )
  }

  // MARK: Changes

  /// Makes what is missing; inside one writing transaction.
  ///
  /// What changed meanwhile is not known, so if anything is missing, there is a new log.
  package func start(in connection: Connection) throws(BatchError) -> ChangeLog {
    var made: [String] = []
    do throws(BatchError) {
      _ = try log(in: connection)
    } catch {
      guard error.code == .notTracked else { throw error }
      try Self.remove(entity.table, in: connection)
      for (name, sql) in definitions {
        try connection.execute(sql)
        made.append(name)
      }
      // Jobs that have read another log start over; the numbers are greater than those of that one.
      try connection.execute(
        "DELETE FROM \(ChangeLog.register) WHERE entity = \(name) AND job <> ''"
      )
      try connection.execute(
        """
        INSERT INTO \(ChangeLog.register) (entity, job, position, number)
        SELECT \(name), '', n + 1, n FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 AS n) WHERE true
        ON CONFLICT (entity, job) DO UPDATE
        SET number = max(number + 1, excluded.number), position = max(number + 1, excluded.number) + 1
        """
      )
    }
    var log = try log(in: connection)
    log.made = made
    log.warnings = try connection.texts(
      """
      SELECT name FROM pragma_index_list(?1, 'main') AS i WHERE "unique" AND (partial
        OR EXISTS (SELECT 1 FROM pragma_index_xinfo(i.name, 'main') WHERE key AND cid = -2))
      """,
      .text(entity.table)
    ).map { index in
      "what REPLACE removes by the unique index \(index) is not logged, since that is partial or of an expression, but"
        + " on connections with PRAGMA recursive_triggers = 1"
    }
    return log
  }

  /// Removes the log and the triggers of a table, which may be gone, but not its line in the register.
  private static func remove(_ table: String, in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS \(ChangeLog.register) (entity TEXT NOT NULL, job TEXT NOT NULL,
        position INTEGER NOT NULL, number INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (entity, job)) WITHOUT ROWID
      """
    )
    for part in parts {
      try connection.execute("DROP TRIGGER IF EXISTS \(trigger(part, of: table))")
    }
    try connection.execute("DROP TABLE IF EXISTS \(SQLName.standard(ChangeLog.name(of: table)))")
  }

  /// Removes all that tracking a table has made; inside one writing transaction.
  package static func stop(_ table: String, in connection: Connection) throws(BatchError) {
    try remove(table, in: connection)
    try connection.execute("DELETE FROM \(ChangeLog.register) WHERE entity = ?", .text(table))
    if try connection.value("SELECT 1 FROM \(ChangeLog.register)") == nil {
      try connection.execute("DROP TABLE \(ChangeLog.register)")
    }
  }

  /// Forgets a job that read the log.
  package func forget(_ job: String, in connection: Connection) throws(BatchError) -> ChangeLog {
    try connection.execute(
      "DELETE FROM \(ChangeLog.register) WHERE entity = \(name) AND job = ? AND job <> ''",
      .text(job)
    )
    return try log(in: connection)
  }

  /// Notes from where on a job needs the log, before its run has its rows, and removes what no job needs.
  ///
  /// All before the beginning of an increment is in files of completed runs.
  package func enter(
    _ job: String,
    _ increment: Increment,
    in connection: Connection
  ) throws(BatchError) {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try log(in: connection).require(increment, of: job)
      guard let position = (increment.from ?? increment.to)?.number else { return }
      try connection.execute(
        """
        INSERT INTO \(ChangeLog.register) (entity, job, position) VALUES (\(name), ?1, ?2) ON CONFLICT (entity, job)
        DO \(increment.from == nil ? "NOTHING" : "UPDATE SET position = excluded.position")
        """,
        .text(job),
        .integer(position)
      )
    }
    let number = "\"\(ChangeLog.number)\""
    var isTrimmed = false
    while !isTrimmed {
      isTrimmed = try connection.transaction(.immediate) { () throws(BatchError) in
        let before =
          "(SELECT min(position) FROM \(ChangeLog.register) WHERE entity = \(name) AND job <> '')"
        let last = try connection.value(
          """
          SELECT max(n) FROM (SELECT \(number) AS n FROM \(log) WHERE \(number) < \(before) ORDER BY \(number) LIMIT 1000)
          """
        )
        guard let last, last != .null else { return true }
        try connection.execute("DELETE FROM \(log) WHERE \(number) <= ?", last)
        return false
      }
    }
  }
}
