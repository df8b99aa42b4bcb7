#if PostgreSQL
import BatchIdentifiers

extension PostgresTable {
  /// Whether a row of the view may depend on several rows: it has a subquery, a join, a group, a
  /// limit, or a function that may read others; so may a view behind it.
  ///
  /// The server keeps the parse tree of a view, as text. A name in it that looks like such a node
  /// only makes the answer more cautious.
  func readsOtherRows(in session: PostgresSession) throws(BatchError) -> Bool {
    let views = try session.execute(
      #"""
      WITH RECURSIVE views AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT d.refobjid FROM views AS v JOIN pg_catalog.pg_rewrite AS r
            ON r.ev_class = v.oid AND r.rulename = '_RETURN'
          JOIN pg_catalog.pg_depend AS d
            ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
              AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass)
      SELECT r.ev_action::text, r.ev_action::text ~ '[{](SUBLINK|AGGREF|WINDOWFUNC|JOINEXPR|SETOPERATIONSTMT)'
          OR r.ev_action::text ~ ':(distinctClause|groupClause|groupingSets|cteList) [(]'
          OR r.ev_action::text ~ ':(limitCount|limitOffset|havingQual) [{]'
          OR (SELECT count(*) FROM pg_catalog.regexp_matches(r.ev_action::text, '[{]RANGETBLREF', 'g')) <> 1
      FROM views AS v JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = v.oid AND r.rulename = '_RETURN'
      """#,
      .literal(String(oid))
    )
    var calls: Set<Int64> = []
    var operators: Set<Int64> = []
    for row in 0..<views.count {
      if views.isTrue(row, 1) { return true }
      let tree = ParseTree(views.text(row, 0) ?? "")
      calls.formUnion(tree.functions)
      operators.formUnion(tree.operators)
    }
    // A function of the server that is stable depends on settings; one that a user wrote may read.
    let reading = try session.text(
      """
      SELECT 1 FROM pg_catalog.pg_proc WHERE (provolatile = 'v' OR provolatile = 's' AND oid >= 16384)
        AND (oid = ANY ($1::oid[]) OR oid IN (
          SELECT oprcode FROM pg_catalog.pg_operator WHERE oid = ANY ($2::oid[]))) LIMIT 1
      """,
      .literal(ParseTreeCheck.array(calls)),
      .literal(ParseTreeCheck.array(operators))
    )
    return reading != nil
  }
}
#endif
