package import BatchRuns
package import BatchIdentifiers

extension Recheck {
  /// Stops at rows that no longer satisfy `where`, if the job demands it.
  func check(_ outcomes: Outcomes) throws(BatchError) {
    guard self == .fail, outcomes.noLongerMatching > 0 else { return }
    throw BatchError(
      .noLongerMatching,
      "\(outcomes.noLongerMatching.grouped) selected rows no longer satisfy where",
      advice: "remove \(.recheck) to skip such rows"
    )
  }
}

/// A change that SQL alone can make: the chunk's identifiers go directly to the writer lane,
/// without reading rows.
package struct BulkChange: Sendable {
  /// The change to each row.
  package enum Action: Sendable {
    /// Sets columns to expressions over the old row.
    case update([(column: String, value: SQLExpression)])
    /// Deletes the row, after copying it to an archive if there is one.
    case delete(archive: Archive?)
    /// Sets columns to values computed for each row; see ``RowTransform``.
    case assign([Assignment])
  }

  /// A column set to computed values.
  package struct Assignment: Sendable {
    let column: String
    /// The index of its value in a row.
    let number: Int
    /// Whether some rows keep their value.
    var isPartial = false
    /// Converts a value; nil to set it unchanged.
    var conversion: WrittenEntity.Conversion?
  }

  package let entity: Entity
  package let key: EntityKey
  package internal(set) var action: Action
  /// What must still be true of a row: the part of `where` that is checked again.
  package let predicate: SQLExpression?
  package let recheck: Recheck
  package let parameters: [String: SQLValue]
  /// Whether a row already has the new values; nil to write such rows anyway.
  package var isUnchanged: SQLExpression?
  /// Whether a conflict fails the row, whatever conflict clause the table has; see ``failingOnConflict(in:)``.
  package var abortsOnConflict = false
  /// The run whose undo records save the old rows; nil to save nothing.
  var undoRun: String?
  /// What the schema must be like; nil for anything.
  var expected: ExpectedSchema?
  /// Whether a worker's rows stay current until their turn unless another connection commits:
  /// changing one affects no other.
  package var isIndependent = false
  /// Whether the outcome of rows depends on the order in which they change; see
  /// ``dependsOnOrder(_:enforcesForeignKeys:in:)``.
  package var orderMatters = false

  /// Makes a change of an entity's rows; the expressions must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    action: Action,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue]
  ) {
    self.entity = entity
    self.key = key
    self.action = action
    self.predicate = predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  /// The columns that it sets; none for a deletion.
  package var writtenColumns: [String] {
    switch action {
    case .update(let assignments): assignments.map(\.column)
    case .assign(let assignments): assignments.map(\.column)
    case .delete: []
    }
  }

  /// The same change, which fails if the schema is not as expected.
  package func expecting(_ schema: ExpectedSchema) -> BulkChange {
    var change = self
    change.expected = schema
    return change
  }

  // MARK: The statements

  var table: String { SQLName.quoted(entity.table) }

  func condition(for keys: ChunkKeys) -> String {
    var conditions = [keys.condition(key: key)] + matchConditions
    // Last, since it computes the new values.
    if let isUnchanged { conditions.append("NOT \(isUnchanged.sql)") }
    return conditions.joined(separator: " AND ")
  }

  /// What must be true of a row found by its key.
  var matchConditions: [String] {
    var conditions: [String] = []
    // An identifier names a row of the entity, not of another one in the same table.
    if let own = entity.condition { conditions.append(own) }
    if let predicate, recheck != .off { conditions.append(predicate.sql) }
    return conditions
  }

  /// The statement that changes rows by keys of this form.
  package func changeSQL(for keys: ChunkKeys) -> String {
    switch action {
    case .update(let assignments):
      let set =
        assignments.map { "\(SQLName.quoted($0.column)) = \($0.value.sql)" }
        + version(beside: assignments.map(\.column))
      return """
        UPDATE \(orAbort)\(table) SET \(set.joined(separator: ", ")) WHERE \(condition(for: keys))
        """
    case .delete:
      return "DELETE FROM \(table) WHERE \(condition(for: keys))"
    case .assign(let assignments):
      // A conversion may read another table whose columns have the same names.
      let rowID = keys.isRange ? keys.rowID(of: key, in: table) : "NULL"
      let values = assignments.map { assignment in
        let kept = SQLName.quoted(assignment.conversion?.source ?? assignment.column)
        let current = assignment.isPartial ? ", \(table).\(kept)" : ""
        let value = "\(ValueFunction.name)(\(assignment.number), \(rowID)\(current))"
        let written = assignment.conversion.map { "(\($0.sql(value)))" } ?? value
        return "\(SQLName.quoted(assignment.column)) = \(written)"
      }
      let set = values + version(beside: assignments.map(\.column))
      // Rows change in key order, as they would one by one.
      let order = keys.scan(of: key)
      return """
        UPDATE \(orAbort)\(table)\(order) SET \(set.joined(separator: ", ")) \
        WHERE \(condition(for: keys))
        """
    }
  }

  private var orAbort: String { abortsOnConflict ? "OR ABORT " : "" }

  /// Increments the version number by which others notice changes.
  private func version(beside columns: [String]) -> [String] {
    guard let column = entity.versionColumn,
      !columns.contains(where: { SQLName.equal($0, column) })
    else { return [] }
    let name = SQLName.quoted(column)
    return ["\(name) = ifnull(\(name), 0) + 1"]
  }

  /// The statement that copies rows to the archive, or nil without one.
  package func archiveSQL(for keys: ChunkKeys) -> String? {
    guard case .delete(let archive?) = action else { return nil }
    let columns = SQLName.list(archive.columns)
    return """
      INSERT \(archive.abortsOnConflict ? "OR ABORT " : "")INTO \(SQLName.quoted(archive.entity.table)) (\(columns)) \
      SELECT \(columns) FROM \(table) WHERE \(condition(for: keys))
      """
  }

  /// Compiles the statements and the triggers they fire; runs nothing.
  package func compile(in connection: Connection) throws(BatchError) {
    if let creation = archiveCreation { _ = try connection.prepare(creation) }
    for sql in statements { _ = try connection.prepare(sql) }
  }

  /// The statements of a chunk that can be compiled now: not those that name an archive that does
  /// not exist yet, which has no triggers either.
  package var statements: [String] {
    let keys = ChunkKeys.shape(of: key)
    let archiving = archiveCreation == nil ? archiveSQL(for: keys) : nil
    return [archiving, changeSQL(for: keys)].compactMap(\.self)
  }
}

extension Statement {
  /// Binds the job's parameters that the statement uses.
  func bind(_ parameters: [String: SQLValue]) throws(BatchError) {
    for (name, value) in parameters {
      if let index = parameterIndex(":" + name) { try bind(value, at: index) }
    }
  }
}
