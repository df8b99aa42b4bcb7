#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// What a run requires of the schema, as it was when the run began: every table and view that its
/// statements read or write.
///
/// Others may change the schema at any time, so every transaction of a run verifies this, whether
/// it reads or writes, and so does a process that resumes the run.
package struct ExpectedTables: Codable, Hashable, Sendable {
  /// The identity of the database; in a copy restored elsewhere, the same tables have other OIDs.
  private let database: String
  /// The columns of the run's table; those added since are not part of the run.
  package private(set) var attributes: [String]
  /// The role whose rows were selected, if policies decide which rows it may see.
  package let reader: String?
  /// First the run's table unless its rows are those of a query, then its archive if there is one, then those that
  /// expressions read.
  private var tables: [ExpectedTable]

  /// `columns` are read or written in addition to the key, which is nil if no row is found; nil for all, if copies of rows are kept.
  ///
  /// `expressions` are the tables and columns, by OID and number, that expressions read for each
  /// chunk.
  ///
  /// - Throws: `BatchError` of code `busy` if the table is being changed at the moment.
  package init(
    of table: PostgresTable,
    key: PostgresKey?,
    using columns: [PostgresColumn]?,
    archive: (table: PostgresTable, columns: [String])? = nil,
    reading expressions: [[Int64: Set<Int64>]] = [],
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) {
    self.database = database.derivedIdentity
    attributes = table.ownColumns.map(\.name)
    reader = Self.reader(of: table, in: database)
    var reads = table.query?.reads ?? [:]
    for expression in expressions { reads.merge(expression) { $0.union($1) } }
    let own = reads.removeValue(forKey: table.oid) ?? []
    let others = reads.keys.sorted()
    let isQuery = table.query != nil
    let found = try TableFacts.all(
      ((isQuery ? [] : [table.oid]) + (archive.map { [$0.table.oid] } ?? []) + others).map {
        ("", $0)
      },
      in: session
    ).facts
    guard isQuery || found[0].columns.map(\.name) == attributes else {
      throw BatchError(
        .busy,
        "somebody is changing \(table.title.quotedForMessage)",
        advice: "\(.repetition)"
      )
    }
    let names = Set((columns ?? table.columns).map(\.name) + (key?.columns.map(\.name) ?? []))
    tables =
      isQuery
      ? []
      : [
        ExpectedTable(
          found[0],
          key: key.map { $0.origin == .declared ? [] : $0.columns.map(\.name).sorted() } ?? [],
          refusing: columns == nil
            ? "whose values would be deleted without a copy"
            : own.contains(0) ? ExpectedTable.wholeRow : nil,
          isOne: true
        ) { names.contains($0.name) || own.contains($0.number) || own.contains(0) }
      ]
    if let archive {
      tables.append(
        ExpectedTable(found[1], isOne: true) { archive.columns.contains($0.name) }
      )
    }
    for facts in found.dropFirst(tables.count) {
      let reads = reads[facts.oid ?? 0] ?? []
      tables.append(
        ExpectedTable(facts, refusing: reads.contains(0) ? ExpectedTable.wholeRow : nil) {
          reads.contains($0.number) || reads.contains(0)
        }
      )
    }
  }

  /// The session's role, if policies hide rows of the table from it; otherwise nil.
  package static func reader(of table: PostgresTable, in database: PostgresDatabase) -> String? {
    table.hasRowSecurity ? database.role : nil
  }

  /// Adds an archive that was just created, inside the caller's transaction.
  package mutating func add(archive name: String, in session: PostgresSession) throws(BatchError) {
    let facts = try TableFacts.all([(name, 0)], in: session).facts[0]
    tables.insert(ExpectedTable(facts, isOne: true) { _ in true }, at: 1)
  }

  /// - Throws: `BatchError` of code `otherRun` if the schema has changed in a way that concerns the
  ///   run.
  package func verify(in session: PostgresSession) throws(BatchError) {
    if tables.isEmpty { return }
    let (found, version) = try TableFacts.all(
      tables.map { ($0.sql, $0.oid) },
      version,
      in: session
    )
    for (table, facts) in zip(tables, found) {
      guard let change = table.change(to: facts) else { continue }
      throw BatchError(
        .otherRun,
        "since the run began, the schema has changed: \(table.title.quotedForMessage) \(change)",
        advice: "undo that and \(.repetition): it resumes; or \(.beginAnew)"
      ).about(.entity(table.name))
    }
    session.schemaVersion = version
  }

  /// A query for a text that changes whenever the schema does, and possibly when it does not.
  ///
  /// If the text equals that of the session's last verification, the costly ``verify(in:)`` is not
  /// needed.
  var version: String {
    let oids = tables.map { table in
      "pg_catalog.to_regclass(\(Array(table.sql.utf8).span.textInSQL))::pg_catalog.oid"
    }
    var rows = [
      ("pg_class", "oid = ANY (oids)"), ("pg_attribute", "attrelid = ANY (oids) AND attnum > 0"),
      ("pg_index", "indrelid = ANY (oids)"),
    ]
    if tables.contains(where: { $0.definition != nil }) {
      rows.append(("pg_rewrite", "ev_class = ANY (oids)"))
    }
    // A foreign key, which may matter to an archive, has triggers.
    if tables.first?.refusal != nil { rows.append(("pg_trigger", "tgrelid = ANY (oids)")) }
    let versions = rows.map { "SELECT xmin FROM pg_catalog.\($0) WHERE \($1)" }
    // New rows have greater numbers than those that they replace, so an equal number of rows has
    // another sum.
    return """
      (SELECT pg_catalog.concat_ws(' ', oids, (
        SELECT pg_catalog.concat_ws('/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8), pg_catalog.count(*))
        FROM (\(versions.joined(separator: " UNION ALL "))) AS v))
      FROM (SELECT ARRAY[\(oids.joined(separator: ", "))] AS oids OFFSET 0) AS t)
      """
  }

  /// The statement that precedes others in a transaction: ends them unless the session has verified
  /// the schema, and prevents changes of the schema until the end of the transaction.
  var check: String {
    if tables.isEmpty { return "" }
    let locks = tables.map { "(SELECT NULL FROM \($0.sql) WHERE false)" }.joined(separator: ", ")
    return
      "SELECT \(version) AS \(PostgresName.quoted(PostgresSession.schemaVersionName)), \(locks)"
  }

  /// Whether this describes the database; if not, the tables are known only by name.
  package func isOf(_ database: PostgresDatabase) -> Bool {
    self.database == database.derivedIdentity
  }

  /// The same tables by name, in any database.
  package var anywhere: ExpectedTables {
    var copy = self
    for index in tables.indices { copy.tables[index].oid = 0 }
    return copy
  }
}

extension ExpectedTables {
  package var recorded: [String] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    guard let bytes = try? encoder.encode(self) else {
      preconditionFailure("a schema of texts and numbers that cannot be encoded")
    }
    return [String(decoding: bytes, as: UTF8.self)]
  }

  /// The facts on which a plan depends; other columns are none unless a new one would concern the run.
  package var planned: [String] {
    var facts = self
    facts.attributes = []
    for index in facts.tables.indices where facts.tables[index].refusal == nil {
      facts.tables[index].all = []
    }
    return facts.recorded
  }

  /// Reads what a run recorded; nil for anything else.
  package init?(recorded words: [String]) {
    guard words.count == 1,
      let tables = try? JSONDecoder().decode(Self.self, from: Data(words[0].utf8))
    else { return nil }
    self = tables
  }
}

private struct ExpectedTable: Codable, Hashable {
  let schema: String
  let name: String
  /// Its OID; 0 if only its name is known.
  var oid: Int64
  let kind: String
  /// The query of a view.
  let definition: String?
  let columns: [TableFacts.Column]
  fileprivate var all: [String]
  /// The columns that find rows, in alphabetical order; empty if nothing in the schema makes them
  /// unique.
  let key: [String]
  /// Why a new column concerns the run; nil if it does not.
  let refusal: String?
  /// Whether another table of the same name is not acceptable.
  let isOne: Bool
  let hidesRows: Bool

  static let wholeRow = "which is part of the row that an expression reads as a whole"

  init(
    _ facts: TableFacts,
    key: [String] = [],
    refusing refusal: String? = nil,
    isOne: Bool = false,
    _ isUsed: (TableFacts.Column) -> Bool
  ) {
    schema = facts.schema ?? ""
    name = facts.name ?? ""
    oid = facts.oid ?? 0
    kind = facts.kind ?? ""
    definition = facts.definition
    columns = facts.columns.filter(isUsed)
    all = facts.columns.map(\.name)
    self.key = key
    self.refusal = refusal
    // A view is defined by its query, whenever it was created.
    self.isOne = isOne && facts.definition == nil
    hidesRows = facts.hidesRows
  }

  var sql: String { PostgresName.qualified(schema, name) }
  var title: String { schema == "public" ? name : "\(schema).\(name)" }

  /// What others have changed that concerns the run, as a clause about the table; nil if the run
  /// may continue.
  ///
  /// New columns do not concern the run, nor do columns that it does not use. `now` is what
  /// currently has the table's name.
  func change(to now: TableFacts) -> String? {
    guard let number = now.oid else {
      return now.former.map { "is named \($0) now" } ?? "is gone"
    }
    let isSame = number == oid
    if isOne, oid != 0, !isSame {
      return "is another table now: the one that the run began with "
        + (now.former.map { "is named \($0)" } ?? "is gone")
    }
    guard now.kind == kind else {
      return "is a \(PostgresTable.Kind(rawValue: now.kind ?? "")?.noun ?? "table") now"
    }
    if now.definition != definition { return "is defined in another way" }
    for column in columns {
      if let change = change(of: column, to: now, isSame) { return change }
    }
    if !key.isEmpty, !now.keys.contains(key) {
      return "has no key any more: nothing makes \(key.joined(separator: ", ")) unique"
    }
    if isOne, let rule = now.rules.first {
      return "has the rule \(rule), by which the server rewrites statements"
    }
    if now.hidesRows, !hidesRows {
      return "has row security now, which may hide rows from the role"
    }
    guard let refusal else { return nil }
    let new = now.columns.filter { $0.isStored && !all.contains($0.name) }.map(\.name)
    return new.isEmpty ? nil : "has got \(new.joined(separator: ", ")), \(refusal)"
  }

  private func change(
    of column: TableFacts.Column,
    to now: TableFacts,
    _ isSame: Bool
  ) -> String? {
    let named = now.columns.first { $0.name == column.name }
    if isSame, named?.number != column.number {
      let own = now.columns.first { $0.number == column.number }
      guard named == nil else {
        return "has another column \(column.name) now: the one that the run began with is "
          + (own.map { "named \($0.name)" } ?? "gone")
      }
      if let own { return "has no column \(column.name) any more: it is named \(own.name) now" }
    }
    guard let named else { return "has no column \(column.name) any more" }
    if named.type == column.type { return nil }
    return "has the type \(named.type) for column \(column.name) instead of \(column.type)"
  }
}

extension PostgresTable.Kind {
  fileprivate var noun: String {
    switch self {
    case .table: "table"
    case .partitionedTable: "partitioned table"
    case .view: "view"
    case .materializedView: "materialized view"
    case .foreignTable: "foreign table"
    }
  }
}

/// The parts of a table or view that its rows depend on, as currently in the catalog.
private struct TableFacts: Decodable {
  /// A column, and what determines its values: its number, which no other column of the table ever
  /// gets, and its type with its collation, written the same under any `search_path`.
  struct Column: Codable, Hashable {
    let number: Int64
    let name: String
    let type: String
    let isStored: Bool
  }

  /// Nil if nothing has the name.
  let oid: Int64?
  let schema: String?
  let name: String?
  let kind: String?
  /// The current name of the table with the OID, if that is another table.
  let former: String?
  let definition: String?
  let columns: [Column]
  /// The columns of each index that is unique at every moment, in alphabetical order.
  let keys: [[String]]
  let rules: [String]
  let hidesRows: Bool

  /// What the catalog contains about tables, by name, or by OID if the name is empty, and the
  /// answer to another query from the same moment.
  static func all(
    _ tables: [(name: String, oid: Int64)],
    _ other: String = "NULL",
    in session: PostgresSession
  ) throws(BatchError) -> (facts: [TableFacts], other: String?) {
    let rows = try session.execute(
      sql(other),
      .array(PostgresArray(tables.map(\.name))),
      .array(PostgresArray(tables.map(\.oid)))
    )
    let facts = (0..<rows.count).compactMap { row in
      try? JSONDecoder().decode(TableFacts.self, from: Data((rows.text(row, 0) ?? "").utf8))
    }
    guard facts.count == tables.count else {
      throw BatchError(
        .databaseAccess,
        "the server's description of tables cannot be read",
        at: session.address.description
      )
    }
    return (facts, rows.count > 0 ? rows.text(0, 1) : nil)
  }

  private static func sql(_ other: String) -> String {
    """
    SELECT pg_catalog.json_build_object(
        'oid', c.oid::pg_catalog.int8, 'schema', n.nspname, 'name', c.relname, 'kind', c.relkind,
        'hidesRows', c.oid IS NOT NULL AND pg_catalog.row_security_active(c.oid),
        'former', (SELECT w.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class AS w
          WHERE w.oid = t.oid AND w.oid IS DISTINCT FROM c.oid),
        -- Without what differs if the same view is made again, or what it reads is renamed.
        'definition', (SELECT pg_catalog.hashtextextended(pg_catalog.regexp_replace(r.ev_action::pg_catalog.text,
            ':[a-z_]*(location|stmt_len) -?[0-9]+|:colnames [(][^)]*[)]|:relid ' || c.oid || ' ', '', 'g'), 0)::pg_catalog.text
          FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = c.oid AND r.rulename = '_RETURN'),
        'rules', ARRAY (SELECT r.rulename FROM pg_catalog.pg_rewrite AS r
          WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN' ORDER BY r.rulename),
        'columns', ARRAY (
          SELECT pg_catalog.json_build_object('number', a.attnum, 'name', a.attname, 'isStored', a.attgenerated = '',
            'type', pg_catalog.concat(
              CASE WHEN y.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace AND pg_catalog.pg_type_is_visible(y.oid)
                THEN pg_catalog.quote_ident(m.nspname) || '.' END,
              pg_catalog.format_type(a.atttypid, a.atttypmod),
              CASE WHEN a.attcollation <> y.typcollation THEN ' COLLATE ' || pg_catalog.quote_ident(l.collname) END))
          FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
            JOIN pg_catalog.pg_namespace AS m ON m.oid = y.typnamespace
            LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
        'keys', ARRAY (
          SELECT pg_catalog.to_json(ARRAY (
            SELECT a.attname FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (number, place)
              JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
            WHERE k.place <= i.indnkeyatts ORDER BY a.attname::pg_catalog.text COLLATE "C"))
          FROM pg_catalog.pg_index AS i
          WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
            AND i.indexprs IS NULL)),
      \(other)
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.int8[]))
        WITH ORDINALITY AS t (name, oid, place)
      LEFT JOIN pg_catalog.pg_class AS c
        ON c.oid = CASE t.name WHEN '' THEN t.oid::pg_catalog.oid ELSE pg_catalog.to_regclass(t.name)::pg_catalog.oid END
      LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    ORDER BY t.place
    """
  }
}
#endif
