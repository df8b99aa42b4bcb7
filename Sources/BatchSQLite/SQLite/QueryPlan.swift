package import BatchIdentifiers

package struct QueryPlan: Sendable {
  private struct Step {
    let text: String
    /// Whether it belongs to a subquery in an expression rather than to the statement itself.
    let isInSubquery: Bool
    /// Whether it is repeated for each row outside the subquery.
    let isRepeated: Bool
  }

  private var steps: [Step] = []

  package var lines: [String] { steps.map(\.text) }

  /// Whether the statement itself scans a table.
  package var scans: Bool {
    steps.contains { !$0.isInSubquery && $0.text.hasPrefix("SCAN") }
  }

  package func scans(_ table: String) -> Bool {
    steps.contains { step in
      !step.isInSubquery
        && (step.text == "SCAN \(table)" || step.text.hasPrefix("SCAN \(table) "))
    }
  }

  /// Whether SQLite computes all rows of this view or query before it uses any.
  package func materializes(_ name: String) -> Bool {
    steps.contains { $0.text == "CO-ROUTINE \(name)" || $0.text == "MATERIALIZE \(name)" }
  }

  /// The tables, by their names in the plan, that a subquery scans for each row of the statement.
  package var scannedForEachRow: [String] {
    steps.compactMap { step in
      guard step.isRepeated, step.text.hasPrefix("SCAN ") else { return nil }
      let name = step.text.dropFirst("SCAN ".count)
      // Skip functions such as json_each, VALUES, and results of other subqueries.
      let isNone =
        name.contains(" VIRTUAL TABLE ") || name.contains("CONSTANT ROW") || name.hasPrefix("(")
      return isNone ? nil : String(name.split(separator: " USING ")[0])
    }
  }

  /// The plan for the first statement of a text; parameters need no values.
  package init(of sql: String, in connection: Connection) throws(BatchError) {
    let statement = try connection.prepare("EXPLAIN QUERY PLAN \(sql)")
    // The subqueries so far, with the steps below them, and whether each is repeated.
    var subqueries: [Int64: Bool] = [:]
    while try statement.step() {
      let text = statement.text(at: 3)
      let outer = subqueries[statement.integer(at: 1)]
      // For example `CORRELATED SCALAR SUBQUERY 1`, `LIST SUBQUERY 2`.
      let isSubquery = text.contains(" SUBQUERY ") && !text.hasPrefix("SCAN")
      if isSubquery || outer != nil {
        let isRepeated = isSubquery && text.hasPrefix("CORRELATED") || outer == true
        subqueries[statement.integer(at: 0)] = isRepeated
      }
      steps.append(Step(text: text, isInSubquery: outer != nil, isRepeated: outer == true))
    }
  }
}

extension Connection {
  /// SQLite's plan for the first statement of a text, one line per step; parameters need no values.
  package func explain(_ sql: String) throws(BatchError) -> [String] {
    try QueryPlan(of: sql, in: self).lines
  }
}
