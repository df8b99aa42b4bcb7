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
    /// Whether some rows keep the value that they have.
    let isPartial: Bool
  }

  package let entity: Entity
  package let key: EntityKey
  package internal(set) var action: Action
  /// What must still hold of a row: the part of `where` that is applied again.
  package let predicate: SQLExpression?
  package let recheck: Recheck
  package let parameters: [String: SQLValue]
  /// Whether a conflict fails the row, whatever the table says is to be done then.
  package var abortsOnConflict = false
  /// The run whose undo records keep what the change does away with; nil to keep nothing.
  var undoRun: String?

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

  private var table: String { SQLName.quoted(entity.table) }

  func condition(for keys: ChunkKeys) -> String {
    var conditions = [keys.condition(key: key)]
    // An identifier names a row of the entity, and none of another one in the same table.
    if let own = entity.condition { conditions.append(own) }
    if let predicate, recheck != .off { conditions.append(predicate.sql) }
    return conditions.joined(separator: " AND ")
  }

  /// The statement that changes rows found by keys of this shape.
  package func changeSQL(for keys: ChunkKeys) -> String {
    switch action {
    case .update(let assignments):
      let set = assignments.map { "\(SQLName.quoted($0.column)) = \($0.value.sql)" }
      return "UPDATE \(table) SET \(set.joined(separator: ", ")) WHERE \(condition(for: keys))"
    case .delete:
      return "DELETE FROM \(table) WHERE \(condition(for: keys))"
    case .assign(let assignments):
      let rowID = keys.isRange ? SQLName.quoted(key.columns[0]) : "NULL"
      let set = assignments.enumerated().map { index, assignment in
        let column = SQLName.quoted(assignment.column)
        let current = assignment.isPartial ? ", \(column)" : ""
        return "\(column) = \(ValueFunction.name)(\(index), \(rowID)\(current))"
      }
      // Rows change in the order of their keys, as they would one by one.
      let order = keys.isRange ? " NOT INDEXED" : ""
      return """
        UPDATE \(abortsOnConflict ? "OR ABORT " : "")\(table)\(order) SET \(set.joined(separator: ", ")) \
        WHERE \(condition(for: keys))
        """
    }
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

  private func countSQL(for keys: ChunkKeys) -> String {
    "SELECT count(*) FROM \(table) WHERE \(keys.condition(key: key))"
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

  // MARK: Carrying it out

  /// Changes all rows of one chunk, inside a transaction of the caller: the first failure is that of all.
  ///
  /// The computed values of the first key, if there are any, are in row `firstValue`.
  func writeAll(
    to keys: ChunkKeys,
    firstValue: Int = 0,
    in connection: Connection
  ) throws(BatchError) -> Outcomes {
    guard let undoRun else { return try change(keys, firstValue, in: connection) }
    guard let before = try rowsBefore(keys, in: connection) else {
      // More than is held at once: as two chunks.
      let middle = keys.identifierCount / 2
      var outcomes = try writeAll(
        to: keys.part(0..<middle),
        firstValue: firstValue,
        in: connection
      )
      outcomes += try writeAll(
        to: keys.part(middle..<keys.identifierCount),
        firstValue: firstValue + middle,
        in: connection
      )
      return outcomes
    }
    let outcomes = try change(keys, firstValue, in: connection)
    try record(before, of: keys, ofRun: undoRun, in: connection)
    return outcomes
  }

  private func change(
    _ keys: ChunkKeys,
    _ firstValue: Int,
    in connection: Connection
  ) throws(BatchError) -> Outcomes {
    let selected = keys.identifierCount
    var outcomes = Outcomes()
    if case .delete = action {
      try KeySequence.rememberIfUsed(beforeDeletingFrom: entity.table, in: connection)
    }
    if let sql = archiveSQL(for: keys) {
      let archived = try run(sql, for: keys, in: connection)
      outcomes.succeeded = try run(changeSQL(for: keys), for: keys, in: connection)
      guard archived == outcomes.succeeded else {
        throw BatchError(
          .constraint,
          "\(archived) rows were archived but \(outcomes.succeeded) would be deleted",
          remedy:
            "a trigger or a conflict clause keeps rows out of the archive; nothing was changed"
        )
      }
    } else {
      let sql = changeSQL(for: keys)
      outcomes.succeeded = try run(sql, for: keys, firstValue: firstValue, in: connection)
    }
    guard outcomes.succeeded <= selected else { throw BatchError.ambiguousKey(of: entity, key) }
    let passedOver = selected - outcomes.succeeded
    if passedOver == 0 { return outcomes }

    // Rows that are still there although the statement passed over them did not satisfy `where`;
    // the rest are gone. A deleted row is not still there. A trigger may have removed a row or put
    // it back, which must not make a count negative.
    let present = try count(keys, in: connection)
    switch action {
    case .update, .assign:
      outcomes.noLongerMatching = min(max(0, present - outcomes.succeeded), passedOver)
    case .delete: outcomes.noLongerMatching = min(present, passedOver)
    }
    outcomes.vanished = passedOver - outcomes.noLongerMatching
    try recheck.check(outcomes)
    return outcomes
  }

  /// Runs a statement for every run of keys or key.
  ///
  /// - Returns: The number of rows it changed, triggers not counted.
  private func run(
    _ sql: String,
    for keys: ChunkKeys,
    firstValue: Int = 0,
    in connection: Connection
  ) throws(BatchError) -> Int {
    let statement = try connection.prepare(sql)
    try statement.bind(parameters)
    var changed = 0
    try keys.forEachBinding(of: statement, key: key, firstValue: firstValue) {
      _ throws(BatchError) in
      connection.watch?.beginStatement()
      try statement.run()
      changed += connection.changes
    }
    return changed
  }

  private func count(_ keys: ChunkKeys, in connection: Connection) throws(BatchError) -> Int {
    let statement = try connection.prepare(countSQL(for: keys))
    var count = 0
    try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
      if try statement.step() { count += Int(statement.integer(at: 0)) }
    }
    return count
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
