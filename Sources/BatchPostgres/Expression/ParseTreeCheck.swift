#if PostgreSQL
import BatchIdentifiers

/// Checks the functions, tables and types in a parse tree, and the functions that the server calls
/// implicitly for its types.
struct ParseTreeCheck {
  let session: PostgresSession
  let table: PostgresTable
  let tree: ParseTree
  /// The column that an expression is for, to whose type the server casts its value; nil for a
  /// condition.
  var target: String?

  func check(_ expression: PostgresExpression) throws(BatchError) {
    if let node = tree.nodes.subtracting(AllowedCalls.nodes).sorted().first {
      throw expression.refusal("\(node) is not allowed")
    }
    // The first one is the statement around the expression; all others must only read.
    guard tree.commands.dropFirst().allSatisfy({ $0 == 1 }) else {
      throw expression.refusal("a statement that writes is not allowed")
    }
    if let name = try refusedFunction() {
      throw expression.refusal(
        "the function \(name) is not allowed",
        "use PostgreSQL functions that only compute, or let a view or a generated column compute the value"
      )
    }
    if let name = try refusedRelation() { throw expression.refusal("\(name) may not be read") }
    if let name = try refusedType() {
      throw expression.refusal("the type \(name) is not allowed", "cast to a PostgreSQL type")
    }
    if let (name, use) = try typeWithFunctions() {
      throw expression.refusal(
        "\(use) of the type \(name) calls user-defined functions",
        "cast to a PostgreSQL type, or name the columns instead of the row"
      )
    }
  }

  /// Whether the expression reads only its row, of a view one that depends on one row alone.
  func isAboutRow() throws(BatchError) -> Bool {
    if tree.nodes.contains("SUBLINK") { return false }
    if table.kind != .view || table.query != nil { return true }
    return try !table.readsOtherRows(in: session)
  }

  /// Whether the expression calls a volatile function.
  func varies() throws(BatchError) -> Bool {
    try session.text(
      """
      SELECT 1 FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND (oid = ANY ($1::oid[])
        OR oid IN (SELECT oprcode FROM pg_catalog.pg_operator WHERE oid = ANY ($2::oid[]))) LIMIT 1
      """,
      .literal(Self.array(tree.functions)),
      .literal(Self.array(tree.operators))
    ) != nil
  }

  /// Whether the expression asks for the present time.
  func dependsOnTime() throws(BatchError) -> Bool {
    if tree.nodes.contains("SQLVALUEFUNCTION") { return true }
    let found = try session.text(
      """
      SELECT 1 FROM pg_catalog.pg_proc WHERE oid = ANY ($1::oid[]) AND pronamespace = 'pg_catalog'::regnamespace
        AND (proname IN ('now', 'transaction_timestamp', 'statement_timestamp') OR proname = 'age' AND pronargs = 1)
      LIMIT 1
      """,
      .literal(Self.array(tree.functions))
    )
    return found != nil
  }

  /// The first function, called directly or by an operator, that is not allowed.
  private func refusedFunction() throws(BatchError) -> String? {
    let rows = try session.execute(
      """
      SELECT p.proname, n.nspname, p.provolatile = 'v', (
          SELECT e.extname FROM pg_catalog.pg_depend AS d
            JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
          WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            AND d.refclassid = 'pg_catalog.pg_extension'::regclass),
        -- Objects created after the cluster have higher OIDs, in whatever schema.
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

  /// The first table that may not be read, other than the job's own.
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

  /// The first type whose values make the server call functions that the tree does not show and
  /// that any user may have written: checks of domains and functions of ranges within constructed
  /// values; casts to JSON; comparison and hash functions of values that are sorted or part of
  /// others.
  private func typeWithFunctions() throws(BatchError) -> (name: String, use: String)? {
    let compares = !tree.nodes.isDisjoint(with: Self.comparingNodes)
    let found = try session.execute(
      """
      WITH RECURSIVE own AS MATERIALIZED (
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE NOT (p.oid < 16384 AND p.pronamespace = 'pg_catalog'::regnamespace) AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
          WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND e.extname = ANY ($5))),
      -- The types, and the types of the values inside theirs.
      part (root, type, is_within) AS (
        SELECT t, t, false FROM unnest($1::oid[]) AS t
        UNION
        SELECT p.root, w.type, p.is_within OR t.typtype <> 'd'
        FROM part AS p JOIN pg_catalog.pg_type AS t ON t.oid = p.type CROSS JOIN LATERAL (
          SELECT t.typelem AS type WHERE t.typelem <> 0
          UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd'
          UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
            WHERE t.typrelid <> 0 AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
          UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range AS r WHERE r.rngtypid = t.oid
          -- Versions before 14 do not have this column.
          UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range AS r
            WHERE t.typtype = 'm' AND (to_jsonb(r) ->> 'rngmultitypid')::oid = t.oid) AS w),
      comparing AS (
        SELECT c.oid, c.opcintype, c.opcdefault FROM pg_catalog.pg_opclass AS c
        WHERE c.opcmethod IN (403, 405) AND (
          EXISTS (
            SELECT FROM pg_catalog.pg_amproc AS a
            WHERE a.amprocfamily = c.opcfamily AND a.amproclefttype = c.opcintype
              AND a.amproc::oid IN (SELECT oid FROM own))
          OR EXISTS (
            SELECT FROM pg_catalog.pg_amop AS a JOIN pg_catalog.pg_operator AS o ON o.oid = a.amopopr
            WHERE a.amopfamily = c.opcfamily AND a.amoplefttype = c.opcintype
              AND o.oprcode::oid IN (SELECT oid FROM own)))),
      checking AS (
        SELECT c.contypid AS type FROM pg_catalog.pg_constraint AS c
          JOIN pg_catalog.pg_depend AS d
            ON d.classid = 'pg_catalog.pg_constraint'::regclass AND d.objid = c.oid
          LEFT JOIN pg_catalog.pg_operator AS o
            ON d.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = d.refobjid
        WHERE c.contypid <> 0 AND (d.refclassid = 'pg_catalog.pg_proc'::regclass
          AND d.refobjid IN (SELECT oid FROM own) OR o.oprcode::oid IN (SELECT oid FROM own))
        UNION ALL
        SELECT r.rngtypid FROM pg_catalog.pg_range AS r
        WHERE r.rngcanonical::oid IN (SELECT oid FROM own) OR r.rngsubdiff::oid IN (SELECT oid FROM own))
      SELECT format_type(type, NULL), 'a value' FROM part
      WHERE root = ANY ($2::oid[]) AND type IN (SELECT type FROM checking)
        AND (is_within OR EXISTS (SELECT FROM pg_catalog.pg_range AS r WHERE r.rngtypid = type) OR $7 AND root NOT IN (
          SELECT a.atttypid FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = $8::oid AND a.attname = $9))
      UNION ALL
      SELECT format_type(type, NULL), 'the JSON' FROM part
      WHERE EXISTS (
          SELECT FROM pg_catalog.pg_cast AS c WHERE c.castsource = type AND c.casttarget IN (114, 3802)
            AND c.castfunc IN (SELECT oid FROM own))
        AND ($6 OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = ANY ($3::oid[]) AND proname LIKE '%json%'))
      UNION ALL
      SELECT format_type(type, NULL), 'a comparison' FROM part
      WHERE (is_within OR root = ANY ($4::oid[]))
          AND EXISTS (SELECT FROM comparing AS c WHERE c.opcintype = type AND c.opcdefault)
        OR EXISTS (
          SELECT FROM pg_catalog.pg_range AS r WHERE r.rngtypid = type
            AND r.rngsubopc IN (SELECT oid FROM comparing))
      LIMIT 1
      """,
      .literal(Self.array(tree.types)),
      .literal(Self.array(tree.madeTypes)),
      .literal(Self.array(tree.functions)),
      .literal(Self.array(compares ? tree.types : tree.rankedTypes)),
      .array(PostgresArray(AllowedCalls.extensions.sorted())),
      .boolean(tree.nodes.contains { $0.hasPrefix("JSON") }),
      .boolean(tree.nodes.contains("COERCETODOMAIN")),
      .literal(String(table.oid)),
      .text(target ?? "")
    )
    guard found.count == 1 else { return nil }
    return (found.text(0, 0) ?? "", found.text(0, 1) ?? "")
  }

  /// The nodes that sort or compare values by the rules of their types.
  private static let comparingNodes: Set<String> = [
    "SORTGROUPCLAUSE", "GROUPINGSET", "WINDOWCLAUSE", "SETOPERATIONSTMT", "ROW", "ROWEXPR",
    "ROWCOMPARE",
    "ROWCOMPAREEXPR",
  ]

  static func array(_ numbers: Set<Int64>) -> String {
    "{\(numbers.sorted().map(String.init).joined(separator: ","))}"
  }
}
#endif
