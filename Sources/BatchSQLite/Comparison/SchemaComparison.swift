import BatchIdentifiers
import BatchJobs
import BatchRuns

struct SchemaComparison: Sendable {
  private(set) var differences: [StoreDifference] = []
  private(set) var tables: [ComparedTable] = []
  private(set) var uncompared: [UncomparedTable] = []

  /// Compares the schemas, except `_batch_…` tables of runs and SQLite's `sqlite_stat…`;
  /// `isCreated` is whether the other file may lack a table.
  init(
    in connection: Connection,
    creating isCreated: (_ table: String) -> Bool
  ) throws(BatchError) {
    let descriptions = try Self.tables(of: .database, in: connection)
    let otherDescriptions = try Self.tables(of: .file, in: connection)
    let objects = try Self.objects(of: .database, in: connection)
    let others = try Self.objects(of: .file, in: connection)
    for (name, object) in objects.sorted(by: { $0.key < $1.key }) {
      let detail: String
      if let other = others[name] {
        if object.sql == other.sql { continue }
        let columns = descriptions[object.table].flatMap { description in
          otherDescriptions[object.table].flatMap(description.otherColumns(than:))
        }
        let other = object.isTable ? columns.map { "has other columns: \($0)" } : nil
        detail = "\(name) \(other ?? "was made in another way")"
      } else if object.isTable, isCreated(object.table) {
        continue
      } else {
        detail = "\(name) is in the database only"
      }
      differences.append(StoreDifference(.schema, object.table, detail: detail))
    }
    for (name, object) in others.sorted(by: { $0.key < $1.key }) where objects[name] == nil {
      let detail = "\(name) is in the other file only"
      differences.append(StoreDifference(.schema, object.table, detail: detail))
    }
    // Each worker registers the functions again for its own rows.
    try RowComparison().register(in: connection)
    for (name, description) in descriptions.sorted(by: { $0.key < $1.key }) {
      let other = otherDescriptions[name]
      guard other != nil || isCreated(name) else { continue }
      if description.hidesRowID || other?.hidesRowID == true {
        let reason = "columns use all names of its rowid: rowid, _rowid_ and oid"
        uncompared.append(UncomparedTable(table: name, reason: reason))
        continue
      }
      guard var table = description.common(with: other ?? description) else {
        let detail = "table \(name) has another key, so its rows cannot be compared"
        differences.append(StoreDifference(.schema, name, detail: detail))
        continue
      }
      table.isNew = other == nil
      if let obstacle = try table.obstacle(in: connection) {
        uncompared.append(obstacle)
      } else {
        tables.append(table)
      }
    }
  }

  /// Compares only the table of a run, with another table that has its rows as they were.
  init(
    of run: ExpectedChanges,
    with copy: String,
    in connection: Connection
  ) throws(BatchError) {
    let tables = try Self.tables(of: .database, in: connection)
    guard let table = tables[run.table], let other = tables[copy],
      let compared = table.matched(with: other, by: run.key)
    else {
      throw BatchError(
        .otherStore,
        "the table \(copy.quotedForMessage) does not have \(run.key.joined(separator: ", "))",
        at: connection.path,
        remedy: "name one that has the rows of \(run.table.quotedForMessage) as they were"
      )
    }
    try RowComparison().register(in: connection)
    if let obstacle = try compared.obstacle(in: connection) {
      uncompared = [obstacle]
    } else {
      self.tables = [compared]
    }
  }

  private static let isCompared = """
    (name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR name = 'sqlite_sequence')
      AND name NOT LIKE '\\_batch\\_%' ESCAPE '\\'
    """

  private static func objects(
    of schema: DatabaseName,
    in connection: Connection
  ) throws(BatchError) -> [String: (isTable: Bool, table: String, sql: String)] {
    let rows = try connection.prepare(
      """
      SELECT type, name, tbl_name, sql FROM \(SQLName.quoted(schema.rawValue)).sqlite_schema
      WHERE \(isCompared) AND tbl_name NOT LIKE '\\_batch\\_%' ESCAPE '\\'
      """
    )
    var objects: [String: (isTable: Bool, table: String, sql: String)] = [:]
    while try rows.step() {
      let kind = rows.text(at: 0)
      objects["\(kind) \(rows.text(at: 1))"] = (
        kind == "table", rows.text(at: 2), rows.text(at: 3)
      )
    }
    return objects
  }

  /// The tables that store rows, including those behind virtual tables, by name.
  private static func tables(
    of schema: DatabaseName,
    in connection: Connection
  ) throws(BatchError) -> [String: ComparedTable.Description] {
    let rows = try connection.prepare(
      """
      SELECT name, wr FROM pragma_table_list
      WHERE schema = ? AND type IN ('table', 'shadow') AND \(isCompared)
      """
    )
    try rows.bind(.text(schema.rawValue), at: 1)
    var names: [(name: String, hasRowID: Bool)] = []
    while try rows.step() { names.append((rows.text(at: 0), rows.integer(at: 1) == 0)) }
    var tables: [String: ComparedTable.Description] = [:]
    for (name, hasRowID) in names {
      tables[name] = try ComparedTable.Description(
        of: name,
        hasRowID: hasRowID,
        schema: schema,
        in: connection
      )
    }
    return tables
  }
}
