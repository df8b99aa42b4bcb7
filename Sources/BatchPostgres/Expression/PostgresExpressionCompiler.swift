#if PostgreSQL
package import BatchIdentifiers

/// Verifies that a text is a single expression over a table's row and the job's parameters, and
/// that it only reads.
///
/// Three checks protect the database. ``ExpressionLexer`` keeps the text inside its parentheses.
/// The server parses the statement around it in a read-only transaction, without running it: a
/// message of the extended protocol is one statement, and this one must return the column that was
/// put around the expression. Finally, ``ParseTreeCheck`` inspects the server's own parse tree. It
/// contains every function, operator, cast and table as the server resolved it, whatever the text
/// calls it. All must be among ``AllowedCalls``, and the types must not call anything else.
///
/// While it parses, the server turns a quoted text into a value, which calls functions of its type,
/// such as the checks of domains in it. So the server first gets the statement with NULL instead of
/// each text.
///
/// The tree comes from `debug_print_parse`, a setting that any role may change in a transaction.
/// The tree is also written to the server's log, once for each expression and run. Names are looked
/// up in `pg_catalog` first, and then in the schemas of ``SearchPath``, both when the expression is
/// checked and when it is used.
package struct PostgresExpressionCompiler {
  private let session: PostgresSession
  private let table: PostgresTable
  private let parameters: PostgresParameters
  private let path: SearchPath
  /// The source of rows to insert, as SQL, and the names in it; nil for expressions over the table.
  private let record: (sql: String, names: [String])?

  package init(
    session: PostgresSession,
    table: PostgresTable,
    parameters: PostgresParameters,
    path: SearchPath,
    record: (sql: String, names: [String])? = nil
  ) {
    self.session = session
    self.table = table
    self.parameters = parameters
    self.path = path
    self.record = record
  }

  /// - Throws: `BatchError` of code `invalidSQL` with the place of the expression.
  package func condition(_ expression: PostgresExpression) throws(BatchError) -> CheckedExpression {
    var checked = try read(expression)
    let rows = table.query?.standIn ?? table.sql
    try check(&checked) { sql, name in "SELECT 1 AS \(name) FROM \(rows) WHERE \(sql)" }
    return checked
  }

  /// Checks a SELECT whose rows are read like those of a view.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` with the place of the query.
  func query(_ expression: PostgresExpression) throws(BatchError) -> CheckedExpression {
    let words = try lexer(expression).outerWords
    guard ["select", "with", "values"].contains(words.first) else {
      throw expression.refusal("there is no SELECT", "write one SELECT statement")
    }
    if words.contains("order") {
      throw expression.refusal(
        "ORDER BY does not affect which rows there are",
        "give the columns as \(.order)"
      )
    }
    if !Set(words).isDisjoint(with: ["limit", "offset", "fetch"]) {
      throw expression.refusal(
        "with LIMIT, a later look-up might find other rows",
        "give the number as \(.limit)"
      )
    }
    var checked = try read(expression)
    try check(&checked) { sql, name in "SELECT 1 AS \(name) FROM \(sql) AS \"query\" WHERE false" }
    if checked.dependsOnTime || expression.namesPresent {
      throw expression.refusal(
        "the time changes whenever rows are looked up again",
        "give the time as a parameter with the default \"$runStartedAt\", or select by it in source.where"
      )
    }
    if checked.varies {
      throw expression.refusal(
        "a function changes from call to call, and rows are looked up again",
        "select by it in source.where, which is evaluated once"
      )
    }
    return checked
  }

  /// - Throws: `BatchError` of code `invalidSQL` with the place of the expression,
  ///   `unknownAttribute` if the column does not exist.
  package func assignment(
    of expression: PostgresExpression,
    to column: String
  ) throws(BatchError) -> CheckedExpression {
    var checked = try read(expression)
    let column = try table.requireColumn(named: column)
    let target = PostgresName.quoted(column.name)
    try check(&checked, for: column.name) { sql, name in
      if let record {
        return "INSERT INTO \(table.sql) (\(target)) SELECT \(sql) FROM \(record.sql) WHERE false"
          + " RETURNING 1 AS \(name)"
      }
      return
        "UPDATE \(table.sql) SET \(target) = \(sql) WHERE false RETURNING 1 AS \(name)"
    }
    return checked
  }

  // MARK: The text

  private func read(_ expression: PostgresExpression) throws(BatchError) -> CheckedExpression {
    let checked = CheckedExpression(expression: expression, pieces: try lexer(expression).pieces)
    for name in checked.parameters.sorted() where !parameters.knownNames.contains(name) {
      let meant = nearestName(to: name, among: parameters.knownNames).map {
        "did you mean \":\($0)\"?"
      }
      throw expression.refusal(
        "there is no parameter \":\(name)\"",
        Remedy(
          stringLiteral: meant
            ?? "declare it under parameters, or write a space after the colon of a slice"
        )
      )
    }
    return checked
  }

  private func lexer(_ expression: PostgresExpression) throws(BatchError) -> ExpressionLexer {
    do {
      return try ExpressionLexer(expression.text, escapes: !session.hasStandardStrings)
    } catch {
      throw expression.refusal(error.reason, error.remedy.map { Remedy(stringLiteral: $0) })
    }
  }

  // MARK: The statement

  /// Notes what the expression depends on, and the columns that it reads.
  private func check(
    _ checked: inout CheckedExpression,
    for target: String? = nil,
    in statement: (_ sql: String, _ guardName: String) -> String
  ) throws(BatchError) {
    let expression = checked.expression
    let blank = try tree(of: checked.sqlWithoutLiterals(parameters), in: statement, expression)
    try check(blank, for: target, expression, &checked)
    let tree = try tree(of: checked.sql(parameters, .place), in: statement, expression)
    if tree != blank { try check(tree, for: target, expression, &checked) }
    checked.reads = tree.reads
  }

  private func check(
    _ tree: ParseTree,
    for target: String?,
    _ expression: PostgresExpression,
    _ checked: inout CheckedExpression
  ) throws(BatchError) {
    // In a separate transaction, in which the server prints no parse trees.
    (checked.varies, checked.isAboutRow, checked.dependsOnTime) = try session.transaction(
      TransactionOptions(isReadOnly: true, searchPath: path)
    ) { () throws(BatchError) in
      let check = ParseTreeCheck(session: session, table: table, tree: tree, target: target)
      try check.check(expression)
      let varies = try check.varies()
      let isAboutRow = try check.isAboutRow()
      return (varies, isAboutRow && !varies, try check.dependsOnTime())
    }
  }

  private func tree(
    of operand: String,
    in statement: (_ sql: String, _ guardName: String) -> String,
    _ expression: PostgresExpression
  ) throws(BatchError) -> ParseTree {
    // No text can end the statement early and still be followed by this column.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    let sql = statement(operand, PostgresName.quoted(guardName))
    return try session.transaction(.parsing(path)) { () throws(BatchError) in
      try tree(of: sql, guardedBy: guardName, expression)
    }
  }

  private func tree(
    of sql: String,
    guardedBy guardName: String,
    _ expression: PostgresExpression
  ) throws(BatchError) -> ParseTree {
    var trees: [String] = []
    let columns: PostgresResult
    do {
      columns = try session.listening { notice in
        if notice.message == "parse tree:" { trees.append(notice.detail ?? "") }
      } during: { () throws(BatchError) in
        try session.describe(sql, parameters.values)
      }
    } catch {
      guard let server = error.postgres, !server.isConnectionLoss,
        Self.refusals.contains(server.state?.errorClass)
      else { throw error }
      throw expression.refusal(server.message, remedy(server))
    }
    guard columns.columnCount == 1, columns.name(ofColumn: 0) == guardName else {
      throw expression.refusal("this is not one \(expression.noun)")
    }
    guard trees.count < 2 else {
      throw expression.refusal(
        "a quoted text makes the server call a user-defined function"
      )
    }
    guard let tree = trees.first else {
      throw BatchError(
        .databaseAccess,
        "the expression cannot be checked: the server's LOG messages do not arrive",
        at: session.address.description,
        remedy:
          "connect to the server itself, not through a pooler or proxy that drops its messages"
      )
    }
    return ParseTree(tree)
  }

  /// The classes of errors caused by the expression: syntax and names, values, limits.
  ///
  /// Reading a composite value written as text also calls functions that a user wrote for a domain
  /// in it, so a refused write and a violated check are included.
  private static let refusals: [String?] = ["42", "22", "0A", "54", "25", "23", "P0"]

  private func remedy(_ error: PostgresError) -> Remedy? {
    if error.state == .undefinedColumn,
      let name = error.message.firstMatch(of: /"([^"]+)"/)?.1
    {
      let unknown = remedyForUnknownName(
        String(name),
        among: record?.names ?? table.columns.map(\.name),
        kind: record == nil ? "attributes" : "values"
      )
      return Remedy(stringLiteral: unknown)
    }
    return error.hint.map { Remedy(stringLiteral: $0.onOneLine) }
  }
}
#endif
