#if PostgreSQL
package import BatchIdentifiers

/// Shows that an expression is one expression over a table's row and the job's parameters, and that it only reads.
///
/// Three things stand between the text and the database. ``ExpressionLexer`` keeps it inside its parentheses. The server
/// parses the statement around it, in a transaction that is for reading only, and runs nothing: a message of the
/// extended protocol is one statement, and this one must have the columns that were put around the expression.
/// Then the server's own parse tree is looked at, which has every function, operator, cast and table as the server has
/// found them, whatever they are called in the text: all must be among ``AllowedCalls``.
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
    let sql = checked.sql(parameters, .place)
    checked.isAboutRow = try check(expression) { name in
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
    let sql = checked.sql(parameters, .place)
    let target = PostgresName.quoted(try table.requireColumn(named: column).name)
    checked.isAboutRow = try check(expression) { name in
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
    _ expression: PostgresExpression,
    in statement: (_ guardName: String) -> String
  ) throws(BatchError) -> Bool {
    // Nobody can write text that ends the statement early and still has this column behind it.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    let sql = statement(PostgresName.quoted(guardName))
    let tree = try session.transaction(.parsing(path)) { () throws(BatchError) in
      try self.tree(of: sql, guardedBy: guardName, expression)
    }
    // In a transaction of its own, of which the server does not print what it reads.
    return try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      let check = ParseTreeCheck(session: session, table: table, tree: tree)
      try check.check(expression)
      return try check.isAboutRow()
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
    guard trees.count == 1 else {
      throw BatchError(
        .databaseAccess,
        "the server does not tell how it has read the expression",
        at: session.address.description,
        remedy: "it must send what debug_print_parse prints"
      )
    }
    return ParseTree(trees[0])
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

/// Looks up what a parse tree speaks of.
private struct ParseTreeCheck {
  let session: PostgresSession
  let table: PostgresTable
  let tree: ParseTree

  func check(_ expression: PostgresExpression) throws(BatchError) {
    if let node = tree.nodes.subtracting(AllowedCalls.nodes).sorted().first {
      throw expression.refusal("\(node) has no place")
    }
    // The statement around it is the first; all others only read.
    guard tree.commands.dropFirst().allSatisfy({ $0 == 1 }) else {
      throw expression.refusal("a statement that writes has no place")
    }
    if let name = try refusedFunction() {
      throw expression.refusal(
        "the function \(name) is not allowed",
        "use functions of PostgreSQL that only compute, or have the database compute it: a view, a generated column"
      )
    }
    if let name = try refusedRelation() { throw expression.refusal("\(name) may not be read") }
    if let name = try refusedType() {
      throw expression.refusal("the type \(name) is not allowed", "cast to a type of PostgreSQL")
    }
  }

  /// Whether the expression reads nothing but the row, and calls nothing volatile.
  func isAboutRow() throws(BatchError) -> Bool {
    if tree.nodes.contains("SUBLINK") { return false }
    let volatile = try session.text(
      """
      SELECT 1 FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND (oid = ANY ($1::oid[])
        OR oid IN (SELECT oprcode FROM pg_catalog.pg_operator WHERE oid = ANY ($2::oid[]))) LIMIT 1
      """,
      .literal(Self.array(tree.functions)),
      .literal(Self.array(tree.operators))
    )
    return volatile == nil
  }

  /// The first function, called or behind an operator, that may not be.
  private func refusedFunction() throws(BatchError) -> String? {
    let rows = try session.execute(
      """
      SELECT p.proname, n.nspname, p.provolatile = 'v', (
          SELECT e.extname FROM pg_catalog.pg_depend AS d
            JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
          WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            AND d.refclassid = 'pg_catalog.pg_extension'::regclass),
        -- What is made after the cluster has greater numbers, in whatever schema.
        p.oid < 16384 AND n.nspname = 'pg_catalog'
      FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
      WHERE p.oid = ANY ($1::oid[]) OR p.oid IN (
        SELECT oprcode FROM pg_catalog.pg_operator WHERE oid = ANY ($2::oid[]))
      ORDER BY 1
      """,
      .literal(Self.array(tree.functions)),
      .literal(Self.array(tree.operators))
    )
    for row in 0..<rows.count {
      let (name, schema) = (rows.text(row, 0) ?? "", rows.text(row, 1) ?? "")
      let isAllowed = AllowedCalls.admits(
        function: name,
        of: rows.text(row, 3),
        isBuiltIn: rows.isTrue(row, 4),
        isVolatile: rows.isTrue(row, 2)
      )
      if !isAllowed { return schema == "pg_catalog" ? name : "\(schema).\(name)" }
    }
    return nil
  }

  /// The first table that may not be read, the job's own apart.
  private func refusedRelation() throws(BatchError) -> String? {
    try session.text(
      """
      SELECT c.oid::regclass FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE c.oid = ANY ($1::oid[]) AND c.oid <> $2::oid AND (c.relkind NOT IN ('r', 'p', 'v', 'm')
        OR n.nspname LIKE 'pg\\_%' OR n.nspname = 'information_schema')
      ORDER BY 1::text LIMIT 1
      """,
      .literal(Self.array(tree.relations)),
      .literal(String(table.oid))
    )
  }

  /// The first type that may not be computed with.
  private func refusedType() throws(BatchError) -> String? {
    try session.text(
      """
      SELECT format_type(t.oid, NULL) FROM pg_catalog.pg_type AS t
        JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
        LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'
      WHERE t.oid = ANY ($1::oid[]) AND n.nspname <> 'pg_catalog' AND coalesce(e.typtype, t.typtype) <> 'e'
        AND t.typrelid <> ALL ($2::oid[])
        AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = 'pg_catalog.pg_type'::regclass
            AND d.objid = coalesce(e.oid, t.oid) AND d.deptype = 'e')
        AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_attribute AS a
          WHERE a.attrelid = ANY ($2::oid[]) AND a.atttypid = t.oid)
      ORDER BY 1 LIMIT 1
      """,
      .literal(Self.array(tree.types)),
      .literal(Self.array(tree.relations))
    )
  }

  private static func array(_ numbers: Set<Int64>) -> String {
    "{\(numbers.sorted().map(String.init).joined(separator: ","))}"
  }
}
#endif
