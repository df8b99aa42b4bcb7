#if PostgreSQL
package import BatchIdentifiers

/// Shows that an expression is one expression over a table's row and the job's parameters, and that it only reads.
///
/// Three things stand between the text and the database. ``ExpressionLexer`` keeps it inside its parentheses. The server
/// parses the statement around it, in a transaction that is for reading only, and runs nothing: a message of the
/// extended protocol is one statement, and this one must have the columns that were put around the expression.
/// Then the server's own parse tree is looked at, which has every function, operator, cast and table as the server has
/// found them, whatever they are called in the text: all must be among ``AllowedCalls``, and the types must
/// call nothing else either: ``ParseTreeCheck``.
///
/// A text in quotes becomes a value when the server parses it, and what belongs to its type is called for that, such as the conditions
/// of domains within it. So the server is first given the statement with NULL in place of each text.
///
/// The tree comes by `debug_print_parse`, a setting that everybody may change for a transaction. It also
/// goes to the server's log, once for each expression and run. Names are looked up in `pg_catalog` first, and then
/// in the schemas of ``SearchPath``, the same when the expression is checked and when it is used.
package struct PostgresExpressionCompiler {
  private let session: PostgresSession
  private let table: PostgresTable
  private let parameters: PostgresParameters
  private let path: SearchPath

  /// A compiler of expressions over the rows of a table, in which the parameters may be used as `:name`.
  package init(
    session: PostgresSession,
    table: PostgresTable,
    parameters: PostgresParameters,
    path: SearchPath
  ) {
    self.session = session
    self.table = table
    self.parameters = parameters
    self.path = path
  }

  /// Checks a condition.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` with the place of the expression.
  package func condition(_ expression: PostgresExpression) throws(BatchError) -> CheckedExpression {
    var checked = try read(expression)
    checked.isAboutRow = try check(checked) { sql, name in
      "SELECT 1 AS \(name) FROM \(table.sql) WHERE \(sql)"
    }
    return checked
  }

  /// Checks the value that a column is to get.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` with the place of the expression, `unknownAttribute` if there
  ///   is no such column.
  package func assignment(
    of expression: PostgresExpression,
    to column: String
  ) throws(BatchError) -> CheckedExpression {
    var checked = try read(expression)
    let target = PostgresName.quoted(try table.requireColumn(named: column).name)
    checked.isAboutRow = try check(checked) { sql, name in
      "UPDATE \(table.sql) SET \(target) = \(sql) WHERE false RETURNING 1 AS \(name)"
    }
    return checked
  }

  // MARK: The text

  private func read(_ expression: PostgresExpression) throws(BatchError) -> CheckedExpression {
    let lexer: ExpressionLexer
    do {
      lexer = try ExpressionLexer(expression.text)
    } catch {
      throw expression.refusal(error.reason, error.remedy.map { Remedy(stringLiteral: $0) })
    }
    let checked = CheckedExpression(expression: expression, pieces: lexer.pieces)
    for name in checked.parameters.sorted() where !parameters.knownNames.contains(name) {
      let meant = nearestName(to: name, among: parameters.knownNames).map {
        "did you mean \":\($0)\"?"
      }
      throw expression.refusal(
        "there is no parameter \":\(name)\"",
        Remedy(
          stringLiteral: meant
            ?? "declare it under parameters, or write a space behind the colon of a slice"
        )
      )
    }
    return checked
  }

  // MARK: The statement

  /// - Returns: Whether the expression is about the row alone.
  private func check(
    _ checked: CheckedExpression,
    in statement: (_ sql: String, _ guardName: String) -> String
  ) throws(BatchError) -> Bool {
    let expression = checked.expression
    let blank = try tree(of: checked.sqlWithoutLiterals(parameters), in: statement, expression)
    let isAboutRow = try check(blank, expression)
    let tree = try tree(of: checked.sql(parameters, .place), in: statement, expression)
    return try tree == blank ? isAboutRow : check(tree, expression)
  }

  /// - Returns: Whether the expression is about the row alone.
  private func check(
    _ tree: ParseTree,
    _ expression: PostgresExpression
  ) throws(BatchError) -> Bool {
    // In a transaction of its own, of which the server does not print what it reads.
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      let check = ParseTreeCheck(session: session, table: table, tree: tree)
      try check.check(expression)
      return try check.isAboutRow()
    }
  }

  private func tree(
    of operand: String,
    in statement: (_ sql: String, _ guardName: String) -> String,
    _ expression: PostgresExpression
  ) throws(BatchError) -> ParseTree {
    // Nobody can write text that ends the statement early and still has this column behind it.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    let sql = statement(operand, PostgresName.quoted(guardName))
    return try session.transaction(.parsing(path)) { () throws(BatchError) in
      try tree(of: sql, guardedBy: guardName, expression)
    }
  }

  /// What the server makes of a statement.
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
      guard let server = error.postgres,
        Self.refusals.contains(server.state?.errorClass)
      else { throw error }
      throw expression.refusal(server.message, remedy(server))
    }
    guard columns.columnCount == 1, columns.name(ofColumn: 0) == guardName else {
      throw expression.refusal("this is not one expression")
    }
    guard trees.count < 2 else {
      throw expression.refusal(
        "a function of somebody's own is called when the server reads a text"
      )
    }
    guard let tree = trees.first else {
      throw BatchError(
        .databaseAccess,
        "the expression cannot be checked: the server's messages of level LOG do not arrive",
        at: session.address.description,
        remedy: "name the server itself, and not a pooler or proxy that keeps its messages back"
      )
    }
    return ParseTree(tree)
  }

  /// The classes of errors that are about the expression: syntax and names, values, limits, and what comes of types
  /// whose values are written as text, which the server reads at once, by functions of somebody's own for a
  /// domain within a composite type: a refusal to write, a condition.
  private static let refusals: [String?] = ["42", "22", "0A", "54", "25", "23", "P0"]

  private func remedy(_ error: PostgresError) -> Remedy? {
    if error.state == .undefinedColumn,
      let name = error.message.firstMatch(of: /"([^"]+)"/)?.1
    {
      let unknown = remedyForUnknownName(
        String(name),
        among: table.columns.map(\.name),
        kind: "attributes"
      )
      return Remedy(stringLiteral: unknown)
    }
    return error.hint.map { Remedy(stringLiteral: $0.onOneLine) }
  }
}
#endif
