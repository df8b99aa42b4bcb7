import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Unsaved changes of related objects, as rows and pairs that replace those in the store.
struct UnsavedRelated {
  struct Rows {
    /// The keys of stored rows that do not count.
    var hidden: Set<PrimaryKey> = []
    /// The rows that count: the parts of the key, then a value per column of the entity.
    var rows: [[SQLValue]] = []
  }

  struct Pairs {
    /// The stored pairs that do not count.
    var hidden: Set<[SQLValue]> = []
    /// The pairs that count.
    var pairs: [[SQLValue]] = []
  }

  /// Nil if no object in the entity's table has unsaved changes.
  let rows: (ModelEntity) throws(BatchError) -> Rows?
  /// Nil if the table of pairs has no unsaved changes.
  let pairs: (JoinTable, _ store: Int) -> Pairs?
}

extension PredicateTranslator {
  /// The rows that a statement selects from: those of the table, or stored and unsaved ones
  /// together.
  ///
  /// SQLite does not push conditions into a union of stored and unsaved rows, so both parts are
  /// already restricted to the related rows.
  func table(of objects: ObjectsTerm, as alias: String) -> String {
    let entity = objects.entity
    let table = SQLName.quoted(entity.entity.table)
    guard let unsaved = objects.unsaved else { return table }
    let key = entity.entity.key?.columns ?? []
    let columns = key + entity.columns.filter { !key.contains($0) }
    // If a key column is also an attribute, the part of the key is used.
    let places = columns.map { column in
      key.firstIndex(of: column) ?? key.count + (entity.slot(ofColumn: column) ?? 0)
    }
    let isHidden = place { row throws(BatchError) in
      .integer(unsaved.hidden.contains(PrimaryKey(row)) ? 1 : 0)
    }
    let keys = key.map { "\(alias).\(SQLName.quoted($0))" }
    let rows = unsaved.rows
    let new = values(rows.count, columns) { row, column in rows[row][places[column]] }
    return """
      (SELECT \(SQLName.list(columns)) FROM \(table) AS \(alias) \
      WHERE \(isRelated(objects, as: alias)) \
      AND NOT \(SwiftFunction.sqlName)(\(([isHidden] + keys).joined(separator: ", "))) \
      UNION ALL SELECT \(SQLName.list(columns)) FROM \(new) AS \(alias) \
      WHERE \(isRelated(objects, as: alias)))
      """
  }

  func partners(of key: String, in table: JoinTable, ofStore store: Int) -> String {
    let (source, target) = (SQLName.quoted(table.source), SQLName.quoted(table.target))
    let stored = "SELECT \(target) FROM \(SQLName.quoted(table.table)) WHERE \(source) = \(key)"
    guard let unsaved = unsaved?.pairs(table, store) else { return stored }
    let isHidden = place { row throws(BatchError) in
      .integer(unsaved.hidden.contains(row) ? 1 : 0)
    }
    let pairs = unsaved.pairs
    let new = values(pairs.count, [table.source, table.target]) { row, column in
      pairs[row][column]
    }
    return """
      \(stored) AND NOT \(SwiftFunction.sqlName)(\(isHidden), \(source), \(target)) \
      UNION ALL SELECT \(target) FROM \(new) WHERE \(source) = \(key)
      """
  }

  /// A table whose values SQLite reads from Swift, each of them once.
  private func values(
    _ count: Int,
    _ columns: [String],
    _ value: @escaping (_ row: Int, _ column: Int) -> SQLValue
  ) -> String {
    let function = place { arguments throws(BatchError) in
      guard case .integer(let row) = arguments[0], case .integer(let column) = arguments[1] else {
        return .null
      }
      return value(Int(row), Int(column))
    }
    let calls = columns.indices.map { "\(SwiftFunction.sqlName)(\(function), _row, \($0))" }
    return """
      (WITH RECURSIVE _rows(_row) AS (\
      SELECT 0 WHERE \(count) > 0 UNION ALL SELECT _row + 1 FROM _rows WHERE _row + 1 < \(count)), \
      _values(\(SQLName.list(columns))) AS MATERIALIZED (\
      SELECT \(calls.joined(separator: ", ")) FROM _rows) SELECT * FROM _values)
      """
  }
}

extension PrimaryKey {
  fileprivate init(_ values: [SQLValue]) {
    if values.count == 1, case .integer(let key) = values[0] {
      self = .integer(key)
    } else {
      self = .encoded(EncodedKey(values.map(KeyComponent.init)))
    }
  }
}
