package import BatchIdentifiers

extension ExpressionCompiler {
  /// Finds the terms of a condition, and what each reads.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` if it is not an expression.
  package func condition(_ expression: SQLExpression) throws(BatchError) -> Condition {
    try check(expression)
    let texts = (try? ExpressionScanner(expression.text))?.conjuncts ?? []
    var terms: [Condition.Term] = []
    for text in texts {
      let part = SQLExpression(text, at: expression.place)
      guard try isExpression(part) else {
        terms = []
        break
      }
      terms.append(try term(part))
    }
    if terms.isEmpty { terms = [try term(expression)] }
    return Condition(expression: expression, terms: terms)
  }

  /// The columns of each table that an expression reads besides its row; no columns if rows are
  /// only counted.
  ///
  /// The expression is compiled over a row with the same names that belongs to no table, so any
  /// table that it reads must be read by a subquery.
  package func readsElsewhere(
    _ expression: SQLExpression
  ) throws(BatchError) -> [String: Set<String>] {
    guard scanner(expression)?.holdsSubquery == true else { return [:] }
    let table = SQLName.quoted(entity.table)
    var names = entity.attributes.map(\.column)
    for name in ["rowid", "oid", "_rowid_"]
    where !names.contains(where: { SQLName.equal($0, name) }) {
      names.append(name)
    }
    let row = names.map { "NULL AS \(SQLName.quoted($0))" }.joined(separator: ", ")
    do {
      return try connection.accesses(
        of: "SELECT \(expression.sql) FROM (SELECT \(row)) AS \(table)"
      ).read
    } catch {
      guard error.sqlite != nil else { throw error }
      // If the expression qualifies names by the table, the row's own columns appear as reads of
      // it.
      return try connection.accesses(of: "SELECT \(expression.sql) FROM \(entity.rowSource)").read
    }
  }

  private func isExpression(_ text: SQLExpression) throws(BatchError) -> Bool {
    do {
      try check(text)
      return true
    } catch {
      guard error.code == .invalidSQL else { throw error }
      return false
    }
  }

  private func scanner(_ expression: SQLExpression) -> ExpressionScanner? {
    try? ExpressionScanner(expression.text)
  }

  private func term(_ expression: SQLExpression) throws(BatchError) -> Condition.Term {
    let accesses = try connection.accesses(
      of: "SELECT 1 FROM \(entity.rowSource) WHERE \(expression.sql)"
    )
    let calls = accesses.functions.intersection(Self.changingFunctions)
    guard scanner(expression)?.holdsSubquery == false else {
      let reads = try readsElsewhere(expression)
      return .init(
        expression: expression,
        reads: Set(reads.keys),
        calls: calls,
        isAboutRow: false
      )
    }
    // SQLite confirms what scanning the text found. A view or query reads its tables for every row.
    let isView = [.view, .query, .model].contains(entity.kind)
    let others = accesses.read.keys.filter { !SQLName.equal($0, entity.table) }
    let isOfTable = isView || others.isEmpty && accesses.selects == 1
    return .init(
      expression: expression,
      reads: isView ? [] : Set(others),
      calls: calls,
      isAboutRow: isOfTable && calls.isEmpty
    )
  }

  static let changingFunctions: Set<String> = [
    "random", "randomblob", "changes", "total_changes", "last_insert_rowid",
  ]
}
