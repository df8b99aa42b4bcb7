import BatchIdentifiers

extension BulkChange {
  /// The condition that a row has what an update would set it to, to the last bit.
  ///
  /// A value is compared as it would be stored: the column gives it its affinity, which the sign takes away
  /// from an expression that has one of its own, and texts are compared by their bytes. A column that keeps
  /// whatever it is given, such as one of no type, has 1 and 1.0 as two values; one of type ANY is such a
  /// column in a STRICT table, and of NUMERIC affinity in others.
  ///
  /// - Parameters:
  ///   - assignments: What the columns of `entity` are set to.
  ///   - entity: The entity.
  /// - Returns: A condition that is never NULL.
  package static func unchanged(
    _ assignments: [(column: String, value: SQLExpression)],
    of entity: Entity
  ) -> SQLExpression {
    let terms = assignments.map { column, value in
      let (name, value) = (SQLName.quoted(column), value.sql)
      let attribute = entity.attributes.first { $0.column == column }
      let kept = attribute?.keptClasses ?? [.integer, .real]
      if kept.contains([.integer, .real]) {
        return
          "\(name) COLLATE BINARY IS +\(value) AND typeof(\(name)) = typeof(\(value))"
      }
      if kept.contains(.real) {
        // Not every integer is a real; one that is written as a text counts as changed, and is written.
        return "\(name) IS iif(typeof(\(value)) = 'integer', CAST(\(value) AS REAL), \(value))"
      }
      return "\(name) COLLATE BINARY IS +\(value)"
    }
    return SQLExpression(terms.joined(separator: " AND "))
  }
}
