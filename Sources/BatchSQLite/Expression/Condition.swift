package import BatchRuns

/// A condition that selects rows, with the tables that its terms read.
///
/// When a selected row is written, the condition is checked again, but only its terms about the row
/// itself. If a term reads other rows, its result may have changed because of the run's own work.
package struct Condition: Sendable {
  package let expression: SQLExpression
  package let terms: [Term]

  package struct Term: Sendable {
    package let expression: SQLExpression
    package let reads: Set<String>
    /// The functions it calls whose value changes from call to call.
    package let calls: Set<String>
    /// Whether it depends only on the row, the parameters and the time.
    package let isAboutRow: Bool
  }

  /// A row satisfies both conditions.
  package func and(_ other: Condition) -> Condition {
    Condition(
      expression: SQLExpression(
        "\(expression.sql) AND \(other.expression.sql)",
        at: expression.place
      ),
      terms: terms + other.terms
    )
  }

  /// The part of the condition to check again when a row is written; nil for none.
  package func applied(by recheck: Recheck) -> SQLExpression? {
    switch recheck {
    case .off: return nil
    case .skip, .fail: return expression
    case .row:
      let kept = terms.filter(\.isAboutRow)
      if kept.count == terms.count { return expression }
      guard !kept.isEmpty else { return nil }
      return SQLExpression(
        kept.map(\.expression.sql).joined(separator: " AND "),
        at: expression.place
      )
    }
  }
}
