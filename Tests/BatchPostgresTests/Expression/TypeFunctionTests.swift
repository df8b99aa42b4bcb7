#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Functions that do not appear in an expression but are called for its types: checks of domains, casts to JSON,
/// operator classes.
@Suite struct TypeFunctionTests {
  private let session: PostgresSession
  private let compiler: PostgresExpressionCompiler

  /// No test changes it.
  private static let shared = Result { try TestPostgres(script) }

  /// A session lock shows that a function was called; a read-only transaction does not prevent it.
  private static let script = """
    CREATE FUNCTION call() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_lock(77)';
    CREATE FUNCTION checks(int) RETURNS boolean LANGUAGE plpgsql AS
      'BEGIN PERFORM call(); RETURN true; END';
    CREATE DOMAIN checked AS int CHECK (checks(value));
    CREATE DOMAIN positive AS int CHECK (value > 0);
    CREATE TYPE pair AS (a checked, b int);
    CREATE TYPE rank AS ENUM ('low', 'high');
    CREATE FUNCTION rank_compare(rank, rank) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
      'BEGIN PERFORM call(); RETURN 0; END';
    CREATE OPERATOR CLASS rank_order DEFAULT FOR TYPE rank USING btree AS
      FUNCTION 1 rank_compare(rank, rank);
    CREATE FUNCTION rank_json(rank) RETURNS json LANGUAGE plpgsql AS
      'BEGIN PERFORM call(); RETURN ''1''; END';
    CREATE CAST (rank AS json) WITH FUNCTION rank_json(rank);
    CREATE FUNCTION span_distance(int, int) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS
      'BEGIN PERFORM call(); RETURN 0; END';
    CREATE TYPE span AS RANGE (subtype = int, subtype_diff = span_distance);
    CREATE FUNCTION odd_compare(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
      'BEGIN PERFORM call(); RETURN $1 - $2; END';
    CREATE OPERATOR CLASS odd_order FOR TYPE int USING btree AS
      OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 odd_compare(int, int);
    CREATE TYPE odd AS RANGE (subtype = int, subtype_opclass = odd_order);
    CREATE TABLE t (
      id int PRIMARY KEY, n int, c checked, cs checked[], p pair, k rank, x positive, xs positive[], s span, o odd);
    INSERT INTO t (id, n, k) VALUES (1, 1, 'low'), (2, 2, 'high');
    SELECT pg_advisory_unlock_all()
    """

  init() throws {
    let session = try Self.shared.get().session()
    self.session = session
    let table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: "t", in: session)
    }
    compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: PostgresParameters(["p": .integer(1)]),
      path: try SearchPath(of: session)
    )
  }

  private func calls() throws -> String? {
    try session.text(
      "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND pid = pg_backend_pid()"
    )
  }

  static let hostile = [
    // Quoted texts that the server turns into values while it parses.
    "'{1}'::checked[] IS NULL", "cs = '{1}'", "cs IS DISTINCT FROM '{1}'", "cs = E'{1}'",
    "cs && '{1}'",
    "cs IN ('{1}')", "CASE WHEN true THEN '{1}' ELSE cs END IS NULL", "coalesce(cs, '{2}') IS NULL",
    "cs = '{'\n'1}'", "_checked '{1}' IS NULL", "'(1,2)'::pair IS NULL", "p = '(1,2)'",
    "pair '(1,2)' IS NULL",
    "p IS DISTINCT FROM '(1,2)'", "ARRAY[p, '(1,2)'] IS NULL", "t = '(1,1,1)'", "s = '[1,2]'",
    "s @> '[1,2]'",
    "(SELECT cs FROM t UNION SELECT '{1}') IS NULL", "nullif(cs, '{1}') IS NULL",
    // Values returned by functions.
    "jsonb_populate_record(t, '{\"c\": 1}') IS NULL",
    "jsonb_populate_record(p, '{\"a\": 1}') IS NULL",
    "ARRAY[n]::checked[] IS NULL", "(:p::text)::checked[] IS NULL",
    // Casts to a domain, also of a column.
    "n::checked > 0", "checked '1' > 0", "CAST(x AS checked) IS NULL",
    // Casts to JSON.
    "to_json(k) IS NULL", "to_jsonb(k) IS NULL", "row_to_json(t) IS NULL",
    "to_jsonb(ARRAY[k]) IS NULL",
    "jsonb_build_object('a', k) IS NULL", "(SELECT json_agg(k) FROM t) IS NULL",
    // Comparisons.
    "greatest(k, 'low') = 'low'", "least(k, k) IS NULL", "t = t", "ARRAY[k] = ARRAY[k]",
    "ARRAY[k] < ARRAY[k]",
    "EXISTS (SELECT FROM t AS o ORDER BY k)", "EXISTS (SELECT DISTINCT k FROM t)",
    "(SELECT count(*) FROM t AS o GROUP BY k LIMIT 1) > 0",
    "EXISTS (SELECT k FROM t UNION SELECT 'low')",
    "(SELECT count(*) OVER (PARTITION BY k) FROM t LIMIT 1) > 0", "ROW(k, 1) < ROW('low', 1)",
    "o = o", "o @> 1", "o = '[1,2]'", "isempty(o)",
    "(SELECT max(o) IS NULL FROM (SELECT ARRAY[k] AS o FROM t) AS q)",
  ]

  @Test(arguments: hostile)
  func `an expression that calls user functions through its types is refused uncalled`(
    text: String
  ) throws {
    let error = #expect(throws: BatchError.self) {
      try compiler.condition(PostgresExpression(text))
    }
    #expect(error?.code == .invalidSQL, "\(String(describing: error))")
    #expect(try calls() == "0")
  }

  @Test(arguments: [
    "n = 1", "k IS NULL AND n > 3", "k = 'low'", "k::text = 'low'", "k = 'low' OR k = 'high'",
    "c > 3",
    "c = '3'",
    "cs IS NULL", "cardinality(cs) > 0", "(p).b = 1", "x = '3'", "xs = '{3}'",
    "to_json(n) IS NULL", "to_jsonb(xs) IS NULL", "greatest(n, 3) = 3", "s IS NULL", "cs[1] = 2",
    "EXISTS (SELECT FROM t AS o ORDER BY n)",
  ])
  func `an expression that calls no user function is allowed`(text: String) throws {
    _ = try compiler.condition(PostgresExpression(text))
    #expect(try calls() == "0")
  }

  @Test func `a value of a column's own domain may be assigned, but no other's be made`() throws {
    for (text, column, isAllowed) in [
      ("n", "c", true), ("n::checked", "c", true), ("'3'", "c", true), ("c + 1", "c", true),
      ("n::checked", "n", false), ("CASE WHEN n::checked > 0 THEN 1 END", "x", false),
      ("n::positive", "n", true), ("n", "x", true), ("c", "n", true),
    ] {
      let result = Result { () throws(BatchError) in
        try compiler.assignment(of: PostgresExpression(text), to: column)
      }
      let isTaken = if case .success = result { true } else { false }
      #expect(isTaken == isAllowed, "\(text) to \(column): \(result)")
      #expect(try calls() == "0")
    }
  }

  @Test func `the error of a refused type names the type and what is called for it`() throws {
    func refusal(_ text: String) -> String? {
      #expect(throws: BatchError.self) { try compiler.condition(PostgresExpression(text)) }?.message
    }
    #expect(refusal("cs = '{1}'")?.hasPrefix("a value of the type checked calls") == true)
    #expect(refusal("to_json(k) IS NULL")?.hasPrefix("the JSON of the type rank calls") == true)
    #expect(
      refusal("least(k, k) IS NULL")?.hasPrefix("a comparison of the type rank calls") == true
    )
  }
}
#endif
