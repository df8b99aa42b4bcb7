package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in the order of the list.
package struct RowExport: Sendable {
  private let entity: Entity
  private let key: EntityKey
  private let columns: [String]
  private let format: RowFormat
  private let predicate: SQLExpression?
  private let recheck: Recheck
  private let parameters: [String: SQLValue]

  /// An export of some attributes of the rows of `entity`; the predicate must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    attributes: [Attribute],
    format: RowFormat,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue]
  ) {
    self.entity = entity
    self.key = key
    self.columns = attributes.map(\.column)
    self.format = format
    self.predicate = recheck == .off ? nil : predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  /// What a file begins with, before any row.
  package var header: [UInt8] { RowEncoder(format: format, columns: columns).header }

  /// The statement that reads rows found by keys of this shape.
  package func sql(for keys: ChunkKeys) -> String {
    // The predicate is a column rather than a condition, which tells rows that no longer satisfy
    // it from rows that are gone. IS TRUE is the truth of a WHERE, where 0.5 is true.
    let check = predicate.map { ", \($0.sql) IS TRUE" } ?? ""
    let order = if keys.isRange { " ORDER BY \(SQLName.quoted(key.columns[0]))" } else { "" }
    return """
      SELECT \(SQLName.list(columns))\(check) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(keys.condition(key: key))\(order)
      """
  }

  /// The lines of one chunk, read in one transaction, and what became of its identifiers.
  package func lines(
    for keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> (lines: [UInt8], outcomes: Outcomes) {
    try connection.transaction(.deferred) { () throws(BatchError) in
      let encoder = RowEncoder(format: format, columns: columns)
      let statement = try connection.prepare(sql(for: keys))
      try statement.bind(parameters)
      var lines: [UInt8] = []
      var outcomes = Outcomes()
      let selected = keys.identifierCount
      try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
        while try statement.step() {
          if predicate == nil || statement.integer(at: columns.count) != 0 {
            encoder.append(statement, to: &lines)
            outcomes.succeeded += 1
          } else {
            outcomes.noLongerMatching += 1
          }
        }
      }
      guard outcomes.total <= selected else { throw BatchError.ambiguousKey(of: entity, key) }
      outcomes.vanished = selected - outcomes.succeeded - outcomes.noLongerMatching
      try recheck.check(outcomes)
      return (lines, outcomes)
    }
  }
}
