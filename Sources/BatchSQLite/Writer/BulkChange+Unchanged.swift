import BatchIdentifiers

extension BulkChange {
  /// The condition that a row already has exactly the values of an update.
  ///
  /// It is never NULL.
  ///
  /// A value is compared as it would be stored. The unary plus removes the affinity of an
  /// expression, so the column applies its own; text is compared by bytes. A column that stores
  /// every value unchanged, such as one without a type, distinguishes 1 from 1.0. A column of type
  /// ANY does so in a STRICT table, and has NUMERIC affinity in others.
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
        // Not every integer is exact as a real. A value given as text counts as changed, and is
        // written.
        return "\(name) IS iif(typeof(\(value)) = 'integer', CAST(\(value) AS REAL), \(value))"
      }
      return "\(name) COLLATE BINARY IS +\(value)"
    }
    return SQLExpression(terms.joined(separator: " AND "))
  }
}
