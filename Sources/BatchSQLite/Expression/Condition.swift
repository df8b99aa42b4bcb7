package import BatchRuns

/// A condition that selects rows, with the tables that its terms read.
///
/// When a selected row is written, the condition is checked again, but only its terms about the row
/// itself: if a term reads other rows, a change may as well result from the run's own work.
package struct Condition: Sendable {
  /// The whole condition.
  package let expression: SQLExpression
  /// The terms that `AND` joins.
  package let terms: [Term]

  /// One of the terms.
  package struct Term: Sendable {
    /// The term.
    package let expression: SQLExpression
    /// The tables that it reads besides the row.
    package let reads: Set<String>
    /// The functions it calls whose value changes from call to call.
    package let calls: Set<String>
    /// Whether it depends only on the row, the parameters and the time.
    package let isAboutRow: Bool
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
