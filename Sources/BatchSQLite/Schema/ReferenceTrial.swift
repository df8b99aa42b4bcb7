package import BatchRuns
package import BatchIdentifiers

/// Looks up whether the rows that new values refer to exist, for messages: SQLite does not say
/// which foreign key is violated.
package struct ReferenceTrial {
  private struct ParentQuery {
    let sql: String
    /// The indexes of the referring columns among the values.
    let places: [Int]
    let columns: [String]
    let table: String
  }

  private let references: [ParentQuery]

  /// Makes a trial of the foreign keys of a table whose columns are all among `columns`, and one of
  /// which is among `changed`.
  ///
  /// References to the same table are left out if `includesOwn` is false.
  package init(
    of entity: Entity,
    changing changed: [String],
    among columns: [String],
    includingOwn includesOwn: Bool = true,
    in connection: Connection
  ) throws(BatchError) {
    let keys = try connection.prepare(
      """
      SELECT f.id, f."from", f."table", ifnull(f."to",
        (SELECT name FROM pragma_table_info(f."table") WHERE pk = f.seq + 1))
      FROM pragma_foreign_key_list(?) AS f ORDER BY f.id, f.seq
      """
    )
    try keys.bind(.text(entity.table), at: 1)
    var parts: [(id: Int64, column: String, table: String, target: String?)] = []
    while try keys.step() {
      parts.append(
        (
          keys.integer(at: 0), keys.text(at: 1), keys.text(at: 2),
          keys.isNull(at: 3) ? nil : keys.text(at: 3)
        )
      )
    }
    references = Dictionary(grouping: parts, by: \.id).sorted { $0.key < $1.key }.compactMap {
      _,
      parts in
      let table = parts[0].table
      let targets = parts.compactMap(\.target)
      let places = parts.compactMap { part in
        columns.firstIndex { SQLName.equal($0, part.column) }
      }
      guard places.count == parts.count, targets.count == parts.count,
        parts.contains(where: { part in changed.contains { SQLName.equal($0, part.column) } }),
        includesOwn || !SQLName.equal(table, entity.table)
      else { return nil }
      let condition = targets.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: " AND ")
      return ParentQuery(
        sql: "SELECT 1 FROM \(SQLName.quoted(table)) WHERE \(condition)",
        places: places,
        columns: parts.map(\.column),
        table: table
      )
    }
  }

  /// The first reference to a row that does not exist, in words; nil if there is none, or if a
  /// table cannot be read.
  package func problem(with values: [SQLValue], in connection: Connection) -> String? {
    for reference in references {
      let key = reference.places.map { values[$0] }
      guard !key.contains(.null), let statement = try? connection.prepare(reference.sql),
        key.indices.allSatisfy({ (try? statement.bind(key[$0], at: $0 + 1)) != nil }),
        (try? statement.step()) == false
      else { continue }
      let shown = zip(reference.columns, key).map { "\($0) is \($1.debugDescription)" }
      return
        "\(shown.joined(separator: ", ")), and \(reference.table.quotedForMessage) has no such row"
    }
    return nil
  }
}

extension Connection {
  /// Writes rows in a savepoint, and again without those that refer to rows which do not exist, as
  /// deferred foreign keys allow until the end of the transaction.
  ///
  /// - Parameters:
  ///   - find: Adds the rows that refer to nothing, by number, with their errors.
  ///   - write: Writes all rows but these.
  /// - Returns: The result of `write`.
  /// - Throws: An error of `write`, or that of a reference of no known row.
  package func resolvingReferences<Result>(
    finding find: (inout [Int: BatchError]) throws(BatchError) -> Void,
    _ write: ([Int: BatchError]) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    var unresolved: [Int: BatchError] = [:]
    while true {
      var written: Result?
      let known = unresolved.count
      do throws(BatchError) {
        try savepoint { () throws(BatchError) in
          let result = try write(unresolved)
          if hasUnresolvedForeignKeys {
            try find(&unresolved)
            throw BatchError(.constraint, "FOREIGN KEY constraint failed", at: path)
          }
          written = result
        }
      } catch {
        guard unresolved.count > known, !isAutocommit else { throw error }
      }
      if let written { return written }
    }
  }
}
