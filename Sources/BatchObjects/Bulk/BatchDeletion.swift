import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Deletes sets of rows by SQL, and applies the delete rules.
///
/// It first collects the rows to delete, in a temporary table per table, with a round per step of
/// the rules. Then it checks for rows that deny the deletion. Only then does it change anything: it
/// nullifies columns, deletes pairs, and deletes referring rows before referenced ones. Memory does
/// not grow with the number of rows, since SQLite keeps temporary tables in files.
struct BatchDeletion {
  private let entity: ModelEntity
  private let report: BatchReport
  private let connection: Connection
  /// The first one is the table of the entity itself.
  private let tables: [BatchDeletionTable]
  private let rules: [BatchDeletionRule]
  /// The keys of deleted rows must not be reused.
  private let sequences: [KeySequence]
  /// The numbers of the tables, in the order in which their rows are deleted.
  private let order: [Int]

  /// Whether delete rules change columns of rows that the request may select.
  var nullifiesOwnTable: Bool {
    rules.contains { rule in
      if case .nullify = rule.effect { return SQLName.equal(rule.table, entity.entity.table) }
      return false
    }
  }

  /// Whether rows of the request's own table keep others from being deleted before them, so that a
  /// single transaction must delete all.
  var isWhole: Bool {
    let own = rules.filter { $0.target == 0 }
    let refersToItself = entity.entity.foreignKeys.contains {
      SQLName.equal($0.table, entity.entity.table)
    }
    return refersToItself && own.isEmpty
      || own.contains { rule in
        switch rule.effect {
        case .deny: true
        case .nullify(let nullification): nullification.isMandatory
        case .cascade, .part: false
        }
      }
  }

  init(
    of entity: ModelEntity,
    in container: ModelContainer,
    _ report: BatchReport,
    _ connection: Connection
  ) throws(BatchError) {
    self.entity = entity
    self.report = report
    self.connection = connection
    var finder = BatchDeletionFinder(container, report, connection)
    try finder.find(from: entity)
    (tables, rules) = (finder.tables, finder.rules)
    let depths = container.relationships[entity.store].depths
    let depth = tables.map { depths[$0.root.entity.name] ?? 0 }
    order = depth.indices.sorted { (depth[$1], $0) < (depth[$0], $1) }
    sequences = try KeySequence.reached(
      byDeletingFrom: tables.map(\.root.entity.table),
      in: connection
    )
  }

  // MARK: The work tables

  func makeWorkTables() throws(BatchError) {
    if rules.isEmpty { return }
    dropWorkTables()
    for table in tables {
      let columns = table.workColumns.joined(separator: ", ")
      try connection.execute(
        """
        CREATE TEMP TABLE \(table.workName) \
        (\(columns), round INTEGER NOT NULL, PRIMARY KEY (\(columns))) WITHOUT ROWID
        """
      )
      try connection.execute(
        "CREATE INDEX temp.\(table.workName)_round ON \(table.workName) (round)"
      )
    }
  }

  /// Drops the tables; after a failure, the next request or the end of the connection drops them.
  func dropWorkTables() {
    for table in tables { try? connection.execute("DROP TABLE IF EXISTS temp.\(table.workName)") }
  }

  // MARK: A chunk

  /// Deletes the remaining rows of a chunk, within the caller's transaction.
  func delete(_ keys: ChunkKeys, of selection: BatchSelection) throws(BatchError) {
    // Rows may refer to each other in any order, so references are checked after all are deleted.
    try connection.execute("PRAGMA defer_foreign_keys = ON")
    for sequence in sequences { try sequence.remember(in: connection) }
    let rows = selection.condition.rows(of: keys)
    if rules.isEmpty {
      let sql = "DELETE FROM \(rows)\(report.requested.returning)"
      try forEachBinding(of: sql, keys, selection) { statement throws(BatchError) in
        _ = try report.run(statement, of: report.requested, in: connection)
      }
      return try requireNothingRefers()
    }
    for table in tables { try connection.execute("DELETE FROM temp.\(table.workName)") }
    let collect =
      "INSERT INTO temp.\(tables[0].workName) SELECT \(tables[0].reference), 0 FROM \(rows)"
    try forEachBinding(of: collect, keys, selection) { statement throws(BatchError) in
      try statement.run()
    }
    let reached = try cascade()
    for rule in rules where reached.contains(rule.source) { try requireNothingKept(by: rule) }
    for rule in rules where reached.contains(rule.source) { try takeEffect(of: rule) }
    for number in order where reached.contains(number) { try deleteRows(of: tables[number]) }
    try requireNothingRefers()
  }

  /// Refuses the chunk if remaining rows refer to deleted ones: the commit would not say which.
  private func requireNothingRefers() throws(BatchError) {
    guard connection.hasUnresolvedForeignKeys else { return }
    let names = tables.map { SQLValue.text($0.root.entity.table).sql }.joined(separator: ", ")
    let references = try connection.prepare(
      """
      SELECT "table", parent, count(*) FROM pragma_foreign_key_check
      WHERE parent COLLATE NOCASE IN (\(names)) GROUP BY 1, 2 ORDER BY 1, 2
      """
    )
    var found: [String] = []
    while try references.step() {
      let count = Int(references.integer(at: 2))
      found.append(
        "\(count.grouped) \(count == 1 ? "row" : "rows") of"
          + " \(references.text(at: 0).quotedForMessage) would refer to deleted rows of"
          + " \(references.text(at: 1).quotedForMessage)"
      )
    }
    if found.isEmpty { return }
    throw BatchError(
      .constraint,
      found.joined(separator: "; "),
      at: entity.entity.name,
      remedy: "delete those first or relate them to something else, or declare a delete rule"
    )
  }

  private func forEachBinding(
    of sql: String,
    _ keys: ChunkKeys,
    _ selection: BatchSelection,
    _ body: (borrowing Statement) throws(BatchError) -> Void
  ) throws(BatchError) {
    let statement = try connection.prepare(sql)
    try selection.condition.bind(to: statement)
    try keys.forEachBinding(of: statement, key: selection.key) { _ throws(BatchError) in
      try body(statement)
    }
  }

  /// Collects the rows that are deleted with those of the chunk, until there are no more; returns
  /// the tables that lose rows.
  private func cascade() throws(BatchError) -> Set<Int> {
    var reached: Set = [0]
    var active: Set = [0]
    var round: Int64 = 0
    while !active.isEmpty {
      var next: Set<Int> = []
      for rule in rules where active.contains(rule.source) {
        guard case .cascade(let target) = rule.effect else { continue }
        let table = tables[target]
        let statement = try connection.prepare(
          """
          INSERT OR IGNORE INTO temp.\(table.workName) SELECT \(table.reference), ?2 \
          FROM \(SQLName.quoted(rule.table)) WHERE \(rule.related("?1"))
          """
        )
        try statement.bind(round, at: 1)
        try statement.bind(round + 1, at: 2)
        try statement.run()
        if connection.changes > 0 { next.insert(target) }
      }
      reached.formUnion(next)
      active = next
      round += 1
    }
    return reached
  }

  /// Refuses the chunk if a related row would remain that denies this, or cannot be nullified.
  private func requireNothingKept(by rule: BatchDeletionRule) throws(BatchError) {
    let isDenial: Bool
    switch rule.effect {
    case .deny: isDenial = true
    case .nullify(let nullification) where nullification.isMandatory: isDenial = false
    case .nullify, .cascade, .part: return
    }
    let key = rule.destination.entity.key?.columns ?? []
    let statement = try connection.prepare(
      """
      SELECT \(key.isEmpty ? "NULL" : SQLName.list(key)) FROM \(SQLName.quoted(rule.table)) \
      WHERE \(kept(by: rule)) LIMIT 1
      """
    )
    guard try statement.step() else { return }
    let row = rule.destination.entity.key.map {
      rule.destination.space.identifier(statement.key(of: $0)).description
    }
    let relationship = rule.relationship.name.quotedForMessage
    throw isDenial
      ? BatchError(
        .deleteDenied,
        "a row cannot be deleted: relationship \(relationship) denies it as long as there is"
          + " \(row ?? "a row of \(rule.table.quotedForMessage)")",
        at: tables[rule.source].root.entity.name,
        remedy: "delete those too, or relate them to something else"
      )
      : BatchError(
        .constraint,
        "relationship \(relationship) cannot be nullified: its inverse is mandatory, as in"
          + " \(row ?? "a row of \(rule.table.quotedForMessage)")",
        at: tables[rule.source].root.entity.name,
        remedy: "declare the delete rule cascade, or relate those rows to something else"
      )
  }

  private func kept(by rule: BatchDeletionRule) -> String {
    guard let target = rule.target else { return rule.related(nil) }
    let table = tables[target]
    return """
      \(rule.related(nil)) AND (\(table.reference)) \
      NOT IN (SELECT \(table.workColumns.joined(separator: ", ")) FROM temp.\(table.workName))
      """
  }

  private func takeEffect(of rule: BatchDeletionRule) throws(BatchError) {
    switch rule.effect {
    case .cascade, .deny: return
    case .part:
      try connection.execute("DELETE FROM \(SQLName.quoted(rule.table)) WHERE \(rule.related(nil))")
    case .nullify(let nullification):
      if nullification.isMandatory { return }
      let raise = rule.destination.versionAssignment.map { ", \($0)" } ?? ""
      let statement = try connection.prepare(
        """
        UPDATE \(SQLName.quoted(rule.table)) \
        SET \(SQLName.quoted(nullification.column)) = NULL\(raise) \
        WHERE \(kept(by: rule))\(nullification.rows.returning)
        """
      )
      try report.run(statement, of: nullification.rows, in: connection)
    }
  }

  private func deleteRows(of table: BatchDeletionTable) throws(BatchError) {
    let columns = table.workColumns.joined(separator: ", ")
    let delete =
      """
      DELETE FROM \(SQLName.quoted(table.root.entity.table)) \
      WHERE (\(table.reference)) IN (SELECT \(columns) FROM temp.\(table.workName))
      """
    if table.number == 0 {
      // Rows of other entities in the same table are reported separately.
      let own = entity.entity.condition.map { " AND \($0)" } ?? ""
      let statement = try connection.prepare("\(delete)\(own)\(report.requested.returning)")
      try report.run(statement, of: report.requested, in: connection)
    }
    guard let rows = table.rows else { return }
    try report.run(connection.prepare(delete + rows.returning), of: rows, in: connection)
  }
}

/// A table that loses rows, with the temporary table of these rows.
struct BatchDeletionTable {
  let number: Int
  /// The topmost entity of those that share the table.
  let root: ModelEntity
  /// The columns that identify a row: the rowid, or the key if there is none.
  let references: [String]
  var rows: BatchReport.Rows?

  var reference: String { references.joined(separator: ", ") }
  var workName: String { "_batch_deleted_\(number)" }
  var workColumns: [String] { references.indices.map { "part\($0)" } }

  func isRow(_ name: String, of work: String) -> String {
    zip(references, workColumns).map { "\(name).\($0) = \(work).\($1)" }
      .joined(separator: " AND ")
  }
}

struct BatchDeletionRule {
  struct Nullification {
    let column: String
    let isMandatory: Bool
    let rows: BatchReport.Rows
  }

  enum Effect {
    /// The related rows are deleted too; the number of their table.
    case cascade(Int)
    case nullify(Nullification)
    case deny
    /// The related rows are pairs, and are deleted.
    case part
  }

  let relationship: Relationship
  /// The number of the table whose rows are deleted.
  let source: Int
  let effect: Effect
  let table: String
  /// The number of that table, if it also loses rows.
  var target: Int?
  /// The SQL to find rows related to those of a round, or of all rounds.
  let related: (_ round: String?) -> String

  var destination: ModelEntity { relationship.destination }
}
