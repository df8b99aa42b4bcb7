package import BatchRuns
package import BatchIdentifiers

/// Tests one row after another against the table's constraints, in a copy of the table in memory:
/// NOT NULL, CHECK, the types of STRICT tables, and uniqueness among the rows that have passed.
///
/// Uniqueness among the table's other rows is looked up in the original database. Rows that have
/// passed do not count there, since they would no longer have these values.
package struct ConstraintTrial {
  private let connection: Connection
  private let insertion: String
  /// The indices of the key's columns; empty for new rows.
  private let key: [Int]
  private var passed: Set<[SQLValue]> = []
  /// The queries that find the key of another row with the same unique values, with the values to
  /// bind and the names of the columns.
  private let lookups: [(sql: String, bound: [Int], name: String)]
  private let references: ReferenceTrial?

  /// Makes a trial for changed rows of a table, whose values are those of all settable columns.
  ///
  /// Nil if the table cannot be copied because its checks call functions of an application, or if
  /// its rows have no key among their columns.
  package init?(
    of entity: Entity,
    changing changed: [String],
    enforcingForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) {
    let columns = entity.attributes.filter { !$0.isGenerated }.map(\.column)
    let key = entity.key?.columns.compactMap { columns.firstIndex(of: $0) } ?? []
    guard key.count == entity.key?.columns.count else { return nil }
    try self.init(
      of: entity,
      columns,
      changing: changed,
      identifiedBy: key,
      enforcingForeignKeys: enforcingForeignKeys,
      in: connection
    )
  }

  /// Makes a trial for new rows with values for `columns`; the other columns have their defaults.
  ///
  /// Nil if the table cannot be copied.
  package init?(
    insertingInto entity: Entity,
    _ columns: [String],
    enforcingForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) {
    try self.init(
      of: entity,
      columns,
      changing: columns,
      identifiedBy: nil,
      enforcingForeignKeys: enforcingForeignKeys,
      in: connection
    )
  }

  // Existing rows have a key in these columns; new rows have none.
  private init?(
    of entity: Entity,
    _ columns: [String],
    changing changed: [String],
    identifiedBy key: [Int]?,
    enforcingForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) {
    let sql = try connection.texts(
      """
      SELECT sql FROM sqlite_schema WHERE tbl_name = ?1 AND sql IS NOT NULL AND (type = 'table'
        OR type = 'index' AND name IN (SELECT name FROM pragma_index_list(?1) WHERE "unique"))
      ORDER BY type = 'index'
      """,
      .text(entity.table)
    )
    guard !sql.isEmpty else { return nil }
    do throws(BatchError) {
      let memory = try Connection(
        path: "file::memory:",
        options: .init(cacheSizeKiB: 1_024, isURI: true, extensions: connection.extensions)
      )
      for statement in sql { try memory.execute(statement) }
      self.connection = memory
    } catch {
      return nil
    }
    insertion = """
      INSERT INTO \(SQLName.quoted(entity.table)) (\(SQLName.list(columns))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
      """
    var uniques = try connection.texts(
      "SELECT name FROM pragma_index_list(?) WHERE \"unique\" AND NOT partial",
      .text(entity.table)
    )
    .map { index throws(BatchError) in
      try connection.texts(
        "SELECT ifnull(name, '') FROM pragma_index_info(?)",
        .text(index)
      )
    }
    self.key = key ?? []
    // A rowid has no index.
    if key == nil, let key = entity.key, key.isRowID { uniques.append(key.columns) }
    let table = SQLName.quoted(entity.table)
    lookups = uniques.compactMap { names in
      let places = names.compactMap { name in
        columns.firstIndex { SQLName.equal($0, name) }
      }
      guard places.count == names.count,
        names.contains(where: { name in changed.contains { SQLName.equal($0, name) } })
      else { return nil }
      func condition(_ places: [Int]) -> String {
        places.map { "\(SQLName.quoted(columns[$0])) = ?" }.joined(separator: " AND ")
      }
      let others = key.map { " AND NOT (\(condition($0)))" } ?? ""
      let found = key.map { SQLName.list($0.map { columns[$0] }) } ?? "1"
      return (
        "SELECT \(found) FROM \(table) WHERE \(condition(places))\(others)",
        places + (key ?? []),
        names.map { "\(entity.table).\($0)" }.joined(separator: ", ")
      )
    }
    // The row that a new one refers to may be a later one.
    references =
      enforcingForeignKeys
      ? try ReferenceTrial(
        of: entity,
        changing: changed,
        among: columns,
        includingOwn: key != nil,
        in: connection
      ) : nil
  }

  /// The constraint that a row would violate after the rows that have passed, in SQLite's words;
  /// nil if there is none.
  package mutating func problem(with values: [SQLValue], in origin: Connection) -> String? {
    do throws(BatchError) {
      try connection.savepoint { () throws(BatchError) in
        let statement = try connection.prepare(insertion)
        for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
        try statement.run()
        if let conflict = conflict(of: values, in: origin) {
          throw BatchError(.constraint, conflict)
        }
      }
      passed.insert(key.map { values[$0] })
      return nil
    } catch {
      return error.code == .constraint ? error.sqlite?.message ?? error.message : nil
    }
  }

  private func conflict(of values: [SQLValue], in origin: Connection) -> String? {
    for lookup in lookups {
      let bound = lookup.bound.map { values[$0] }
      guard let statement = try? origin.prepare(lookup.sql),
        bound.indices.allSatisfy({
          (try? statement.bind(bound[$0], at: $0 + 1)) != nil
        }), (try? statement.step()) == true
      else { continue }
      let other = key.indices.map { statement.value(at: $0) }
      if !key.isEmpty, passed.contains(other) { continue }
      return "another row has the same \(lookup.name) now"
    }
    return references?.problem(with: values, in: origin)
  }
}
