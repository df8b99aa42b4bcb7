import BatchIdentifiers

extension BulkChange {
  /// The condition that a row already has exactly the values of an update.
  ///
  /// A value is compared as it would be stored: the column applies its affinity, since the sign
  /// removes that of an expression, and texts are compared by bytes. A column that stores any value
  /// unchanged, such as one without a type, has 1 and 1.0 as two values; one of type ANY is such a
  /// column in a STRICT table, and has NUMERIC affinity in others.
  ///
  /// - Parameters:
  ///   - assignments: The new values of the columns of `entity`.
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
        // Not every integer is a real; one written as a text counts as changed, and is written.
        return "\(name) IS iif(typeof(\(value)) = 'integer', CAST(\(value) AS REAL), \(value))"
      }
      return "\(name) COLLATE BINARY IS +\(value)"
    }
    return SQLExpression(terms.joined(separator: " AND "))
  }
}
