/// A condition that selects rows, with what its terms are about.
///
/// A row that was selected is looked at again when it is written. What then must still hold are the
/// terms about the row alone: of one that looks at other rows nobody can say whether it is the row
/// that has changed, or what the run itself has done since.
package struct Condition: Sendable {
  /// The whole condition.
  package let expression: SQLExpression
  /// The terms whose conjunction it is.
  package let terms: [Term]

  /// One of the terms.
  package struct Term: Sendable {
    /// The term.
    package let expression: SQLExpression
    /// The tables that it reads beside the row.
    package let reads: Set<String>
    /// The functions it calls that give another value each time.
    package let calls: Set<String>
    /// Whether nothing but the row, the parameters and the time decides it.
    package let isAboutRow: Bool
  }

  /// The part of the condition that is applied again when a row is written; nil if none is.
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
