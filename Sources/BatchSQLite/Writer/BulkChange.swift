package import BatchRuns
package import BatchIdentifiers

extension Recheck {
  /// Stops if rows no longer satisfy `where` and the job demands that they do.
  func check(_ outcomes: Outcomes) throws(BatchError) {
    guard self == .fail, outcomes.noLongerMatching > 0 else { return }
    throw BatchError(
      .noLongerMatching,
      "\(outcomes.noLongerMatching.grouped) selected rows no longer satisfy where",
      advice: "remove \(.recheck) to skip such rows"
    )
  }
}

/// A change that SQL alone can make; the identifiers of a chunk go directly to the writer lane, and
/// no rows are read.
package struct BulkChange: Sendable {
  package enum Action: Sendable {
    case update([(column: String, value: SQLExpression)])
    case delete(archive: Archive?)
    /// Sets columns to values computed for each row; see ``RowTransform``.
    case assign([Assignment])
  }

  package struct Assignment: Sendable {
    let column: String
    let number: Int
    /// Whether some rows keep their value.
    var isPartial = false
    /// Converts a value; nil to set it unchanged.
    var conversion: WrittenEntity.Conversion?
  }

  package let entity: Entity
  package let key: EntityKey
  package internal(set) var action: Action
  /// The part of `where` that is checked again when a row changes.
  package let predicate: SQLExpression?
  package let recheck: Recheck
  package let parameters: [String: SQLValue]
  /// The condition that a row already has the new values; nil to write such rows anyway.
  package var isUnchanged: SQLExpression?
  /// Whether a conflict fails the row despite the table's own conflict clauses; see
  /// ``failingOnConflict(in:)``.
  package var abortsOnConflict = false
  /// The run whose undo records save the old rows; nil to save nothing.
  var undoRun: String?
  /// The schema that each chunk requires; nil to accept any.
  var expected: ExpectedSchema?
  /// Whether rows read by a worker stay current until their turn unless another connection commits;
  /// this holds if changing one row affects no other.
  package var isIndependent = false
  /// Whether the outcome of rows depends on the order in which they change; see
  /// ``dependsOnOrder(_:enforcesForeignKeys:in:)``.
  package var orderMatters = false

  /// - Precondition: The expressions have been checked.
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

  package var writtenColumns: [String] {
    switch action {
    case .update(let assignments): assignments.map(\.column)
    case .assign(let assignments): assignments.map(\.column)
    case .delete: []
    }
  }

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

  /// The conditions for a row found by its key to be changed.
  var matchConditions: [String] {
    var conditions: [String] = []
    // An identifier names a row of this entity, not of another entity in the same table.
    if let own = entity.condition { conditions.append(own) }
    if let predicate, recheck != .off { conditions.append(predicate.sql) }
    return conditions
  }

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
      // Rows change in key order, as they would if changed one by one.
      let order = keys.scan(of: key)
      return """
        UPDATE \(orAbort)\(table)\(order) SET \(set.joined(separator: ", ")) \
        WHERE \(condition(for: keys))
        """
    }
  }

  private var orAbort: String { abortsOnConflict ? "OR ABORT " : "" }

  /// Increments the version number that tells other programs about the change.
  private func version(beside columns: [String]) -> [String] {
    guard let column = entity.versionColumn,
      !columns.contains(where: { SQLName.equal($0, column) })
    else { return [] }
    let name = SQLName.quoted(column)
    return ["\(name) = ifnull(\(name), 0) + 1"]
  }

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

  /// The statements of a chunk that can be compiled now; excludes those that name an archive that
  /// does not exist yet, since a new archive has no triggers.
  package var statements: [String] {
    let keys = ChunkKeys.shape(of: key)
    let archiving = archiveCreation == nil ? archiveSQL(for: keys) : nil
    return [archiving, changeSQL(for: keys)].compactMap(\.self)
  }
}

extension Statement {
  func bind(_ parameters: [String: SQLValue]) throws(BatchError) {
    for (name, value) in parameters {
      if let index = parameterIndex(":" + name) { try bind(value, at: index) }
    }
  }
}
