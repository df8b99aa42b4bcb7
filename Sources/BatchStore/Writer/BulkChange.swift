import BatchEngine
public import BatchIdentifiers

extension Recheck {
  /// Stops at rows that no longer satisfy `where`, if that is what the job wants.
  func check(_ outcomes: Outcomes) throws(BatchError) {
    guard self == .fail, outcomes.noLongerMatching > 0 else { return }
    throw BatchError(
      .noLongerMatching,
      "\(outcomes.noLongerMatching) selected rows no longer satisfy where",
      advice: "leave \(.recheck) out to pass over such rows"
    )
  }
}

extension BatchError.Code {
  /// A selected row no longer satisfies `where`, and the job said to stop then.
  public static let noLongerMatching = Self(rawValue: "noLongerMatching")
}

/// A change to rows that SQL alone can make: the chunk's identifiers go straight to the writer
/// lane, no row is materialized.
package struct BulkChange: Sendable {
  /// What is done to each row.
  package enum Action: Sendable {
    /// Columns set to expressions over the row as it was.
    case update([(column: String, value: SQLExpression)])
    /// The row is removed, after it was copied to another entity if one is given.
    case delete(archive: Archive?)
    /// Columns set to values that were computed for each row; see ``RowTransform``.
    case assign([Assignment])
  }

  /// A column that is set to computed values.
  package struct Assignment: Sendable {
    let column: String
    /// Which of the values of a row it is set to.
    let number: Int
    /// Whether some rows keep the value that they have.
    var isPartial = false
    /// What is made of a value; nil to set it as it is.
    var conversion: WrittenEntity.Conversion?
  }

  package let entity: Entity
  package let key: EntityKey
  package internal(set) var action: Action
  /// What must still hold of a row: the part of `where` that is applied again.
  package let predicate: SQLExpression?
  package let recheck: Recheck
  package let parameters: [String: SQLValue]
  /// What holds of a row that has what the change would give it; nil to write such rows like others.
  package var isUnchanged: SQLExpression?
  /// Whether a conflict fails the row, whatever the table says is to be done then.
  package var abortsOnConflict = false
  /// The run whose undo records keep what the change does away with; nil to keep nothing.
  var undoRun: String?
  /// Whether rows stay as a worker has read them until their turn comes, unless another connection
  /// commits: changing one reaches no other.
  package var isIndependent = false

  /// A change of the rows of `entity`; the expressions must have been checked before.
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

  // MARK: The statements

  var table: String { SQLName.quoted(entity.table) }

  func condition(for keys: ChunkKeys) -> String {
    var conditions = [keys.condition(key: key)] + matchConditions
    // Last, since it computes what would be written.
    if let isUnchanged { conditions.append("NOT \(isUnchanged.sql)") }
    return conditions.joined(separator: " AND ")
  }

  /// What must hold of a row that is found by its key.
  var matchConditions: [String] {
    var conditions: [String] = []
    // An identifier names a row of the entity, and none of another one in the same table.
    if let own = entity.condition { conditions.append(own) }
    if let predicate, recheck != .off { conditions.append(predicate.sql) }
    return conditions
  }

  /// The statement that changes rows found by keys of this shape.
  package func changeSQL(for keys: ChunkKeys) -> String {
    switch action {
    case .update(let assignments):
      let set =
        assignments.map { "\(SQLName.quoted($0.column)) = \($0.value.sql)" }
        + version(beside: assignments.map(\.column))
      return "UPDATE \(table) SET \(set.joined(separator: ", ")) WHERE \(condition(for: keys))"
    case .delete:
      return "DELETE FROM \(table) WHERE \(condition(for: keys))"
    case .assign(let assignments):
      // A conversion may read another table, whose columns have the same names.
      let rowID = keys.isRange ? "\(table).\(SQLName.quoted(key.columns[0]))" : "NULL"
      let values = assignments.map { assignment in
        let kept = SQLName.quoted(assignment.conversion?.source ?? assignment.column)
        let current = assignment.isPartial ? ", \(table).\(kept)" : ""
        let value = "\(ValueFunction.name)(\(assignment.number), \(rowID)\(current))"
        let written = assignment.conversion.map { "(\($0.sql(value)))" } ?? value
        return "\(SQLName.quoted(assignment.column)) = \(written)"
      }
      let set = values + version(beside: assignments.map(\.column))
      // Rows change in the order of their keys, as they would one by one.
      let order = keys.isRange ? " NOT INDEXED" : ""
      return """
        UPDATE \(abortsOnConflict ? "OR ABORT " : "")\(table)\(order) SET \(set.joined(separator: ", ")) \
        WHERE \(condition(for: keys))
        """
    }
  }

  /// What raises the number by which others notice that a row has changed.
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
      INSERT INTO \(SQLName.quoted(archive.entity.table)) (\(columns)) \
      SELECT \(columns) FROM \(table) WHERE \(condition(for: keys))
      """
  }

  /// Compiles the statements, and so whatever triggers they set off; runs nothing.
  package func compile(in connection: Connection) throws(BatchError) {
    if let creation = archiveCreation { _ = try connection.prepare(creation) }
    for sql in statements { _ = try connection.prepare(sql) }
  }

  /// The statements of a chunk that can be compiled now: nothing can that names an archive which is not
  /// there yet, and has no triggers.
  package var statements: [String] {
    let keys = ChunkKeys.shape(of: key)
    let archiving = archiveCreation == nil ? archiveSQL(for: keys) : nil
    return [archiving, changeSQL(for: keys)].compactMap(\.self)
  }
}

extension Statement {
  /// Binds the parameters of a job that the statement uses.
  func bind(_ parameters: [String: SQLValue]) throws(BatchError) {
    for (name, value) in parameters {
      if let index = parameterIndex(":" + name) { try bind(value, at: index) }
    }
  }
}
