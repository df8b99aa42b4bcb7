#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Expressions that try to do more than compute.
@Suite struct HostileExpressionTests {
  private let database: TestPostgres
  private let session: PostgresSession
  private let compiler: PostgresExpressionCompiler

  /// The database shared by all tests that do not change it.
  private static let shared = Result { try TestPostgres(script) }

  private static let script =
    """
    CREATE EXTENSION citext;
    CREATE EXTENSION dblink;
    CREATE EXTENSION file_fdw;
    CREATE EXTENSION tablefunc;
    CREATE EXTENSION xml2;
    CREATE TABLE t (id int PRIMARY KEY, n int, s text, tags int[], c citext, "guard" int);
    CREATE TABLE other (id int PRIMARY KEY, n int);
    INSERT INTO t VALUES (1, 1, 'a', '{1,2}', 'x'), (2, 2, 'b', '{3}', 'y');
    INSERT INTO other SELECT id, n FROM t;
    CREATE SEQUENCE seq;
    CREATE FUNCTION evil() RETURNS int LANGUAGE plpgsql AS
      'BEGIN DELETE FROM other; RETURN 1; END';
    CREATE FUNCTION quiet() RETURNS int IMMUTABLE LANGUAGE plpgsql AS
      'BEGIN PERFORM evil(); RETURN 1; END';
    CREATE FUNCTION evil(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT evil()';
    CREATE FUNCTION evil(int, int) RETURNS bool LANGUAGE sql AS 'SELECT evil() = 1';
    -- A better match than the server's own for a varchar and for a small number.
    CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT evil()::text';
    CREATE FUNCTION abs(text) RETURNS int LANGUAGE sql AS 'SELECT evil()';
    CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = evil);
    CREATE OPERATOR + (LEFTARG = text, RIGHTARG = text, FUNCTION = textcat);
    CREATE OPERATOR @@@ (RIGHTARG = int, FUNCTION = evil);
    CREATE FUNCTION add_evil(int, int) RETURNS int LANGUAGE sql AS 'SELECT evil()';
    CREATE AGGREGATE evilsum(int) (SFUNC = add_evil, STYPE = int, INITCOND = '0');
    CREATE DOMAIN evil_domain AS int CHECK (evil() = value);
    CREATE TYPE pair AS (a evil_domain, b int);
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE sql AS 'SELECT evil(), 1';
    CREATE CAST (int AS pair) WITH FUNCTION to_pair(int);
    CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
    CREATE FOREIGN TABLE passwords (line text) SERVER files OPTIONS (filename '/etc/passwd')
    """

  init() throws { try self.init(in: Self.shared.get()) }

  private init(in database: TestPostgres) throws {
    self.database = database
    session = try database.session()
    let session = session
    let table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: "t", in: session)
    }
    compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: PostgresParameters(["p": .integer(1), "text": .text("x")]),
      path: try SearchPath(of: session)
    )
  }

  static let hostile: [String] = [
    // Closing the parentheses or ending the statement.
    "true) OR (true", "true); DROP TABLE other; --", "true; DROP TABLE other", "true)--", "true/*",
    "true /* /* */", "(true", "true))((", "'a", "\"n", "E'\\'", "E'\\') OR true --'", "$$a$$ = 'a'",
    "$x$)$x$ = ''", "1$$ = 1", "n = 1$$)$$", "1e'a\\'' = ')' OR '('",
    "U&'\\0041' UESCAPE ''') OR (",
    "s = E'a'\n'b\\'' OR (1=1)", "s = e'a' -- c\n'\\') OR (1=1'", "true -- comment\n) OR (true", "",
    "   ",
    "-- nothing", "/* nothing */", "true\0", "true UNION SELECT 1", "true ORDER BY 1",
    "true LIMIT 1",
    "true GROUP BY id", "true FOR UPDATE", "true RETURNING 1", "true, true", "*", "t.*",
    // Statements inside.
    "DELETE FROM other", "(DELETE FROM other RETURNING true)",
    "EXISTS (WITH d AS (DELETE FROM other RETURNING 1) SELECT 1 FROM d)",
    "(WITH d AS (UPDATE other SET n = 9 RETURNING 1) SELECT true FROM d)",
    "EXISTS (SELECT 1 FROM (INSERT INTO other VALUES (9) RETURNING 1) AS i)",
    "EXISTS (SELECT 1 FROM other FOR UPDATE)", "EXISTS (SELECT 1 FROM other FOR SHARE)",
    "EXISTS (SELECT * INTO new FROM other)", "EXISTS (TABLE other FOR UPDATE)",
    "EXISTS (SELECT 1 FROM other TABLESAMPLE SYSTEM (1))", "CURRENT OF c",
    "(COPY other TO '/tmp/x')", "(EXPLAIN ANALYZE DELETE FROM other)", "(CALL evil())", "(DO 'x')",
    // Functions that write, read files, sleep, lock, send, inspect the server or change settings.
    "evil() = 1", "public.evil() = 1", "\"public\" . \"evil\" /* */ () = 1", "quiet() = 1",
    "evil(n) = 1",
    "id = ANY (ARRAY[evil()])", "EXISTS (SELECT evil() OFFSET 0)", "EXISTS (SELECT FROM evil())",
    "CASE WHEN false THEN evil() = 1 ELSE true END",
    "(SELECT count(*) FILTER (WHERE evil() = 1) FROM other) > 0",
    "(SELECT evilsum(n) FROM other) > 0", "(SELECT evilsum(n) OVER () FROM other LIMIT 1) > 0",
    "(SELECT max(n) OVER (ORDER BY evil()) FROM other LIMIT 1) > 0",
    "EXISTS (SELECT 1 FROM other GROUP BY evil())", "EXISTS (SELECT 1 FROM other ORDER BY evil())",
    "EXISTS (SELECT 1 FROM other LIMIT evil())", "EXISTS (VALUES (evil()))",
    "EXISTS (WITH RECURSIVE r AS (SELECT 1 AS a UNION SELECT evil() FROM r) SELECT FROM r)",
    "EXISTS (SELECT 1 FROM other JOIN t AS x ON evil() = x.n)",
    "EXISTS (SELECT FROM LATERAL (SELECT evil()) AS l)",
    "nextval('seq') > 0", "setval('seq', 9) > 0", "pg_read_file('/etc/passwd') > ''",
    "pg_catalog.pg_read_binary_file('/etc/passwd') IS NULL", "pg_ls_dir('/') > ''",
    "EXISTS (SELECT pg_ls_dir('/'))", "pg_stat_file('/etc/passwd') IS NULL",
    "lo_import('/etc/passwd') > 0",
    "lo_export(1, '/tmp/x') > 0", "lo_create(0) > 0", "pg_sleep(9) IS NULL",
    "pg_advisory_lock(1) IS NULL",
    "pg_notify('c', 'x') IS NULL", "pg_terminate_backend(1)", "pg_cancel_backend(1)",
    "pg_reload_conf()",
    "set_config('search_path', 'public', false) > ''", "current_setting('data_directory') > ''",
    "query_to_xml('DELETE FROM other', true, true, '') IS NULL",
    "table_to_xml('other', true, true, '') IS NULL",
    "database_to_xml(true, true, '') IS NULL", "dblink('', 'DELETE FROM other') IS NULL",
    "EXISTS (SELECT FROM dblink('dbname=postgres', 'DELETE FROM other') AS d (a int))",
    "dblink_connect('dbname=postgres') > ''", "pg_get_viewdef(1) > ''", "txid_current() > 0",
    "pg_current_xact_id() IS NULL", "pg_relation_size('other') > 0",
    "ts_rewrite('a'::tsquery, 'DELETE FROM other') IS NULL",
    "EXISTS (SELECT FROM ts_stat('DELETE FROM other'))", "pg_export_snapshot() > ''",
    "lastval() > 0",
    "currval('seq') > 0", "pg_logical_emit_message(false, 'a', 'b') IS NULL",
    "pg_switch_wal() IS NULL",
    "EXISTS (SELECT FROM xmltable('/a' PASSING '<a/>' COLUMNS b int))",
    // Functions of extensions that are declared stable but run SQL.
    "EXISTS (SELECT FROM crosstab('SELECT evil(), 1, 1') AS c (a int, b int))",
    "EXISTS (SELECT FROM connectby('other', 'id', 'n', '1', 0) AS c (a int, b int, l int))",
    "EXISTS (SELECT FROM xpath_table('n', 's', 'other', '/', 'evil() = 1') AS x (a int, b text))",
    // Custom operators, casts and types; names that hide the server's.
    "n === 1", "n OPERATOR(public.===) 1", "n OPERATOR(\"public\".\"===\") 1", "@@@ n = 1",
    "lower(s::varchar) = 'a'",
    "abs(s) = 1", "n::evil_domain = 1", "CAST(n AS public.evil_domain) = 1", "evil_domain '1' = 1",
    "'{1}'::evil_domain[] IS NULL", "n::pair IS NULL", "'(1,1)'::pair IS NULL",
    "jsonb_populate_record(NULL::pair, '{}') IS NULL",
    "domain_in('1', 'evil_domain'::regtype, -1) IS NULL",
    "EXISTS (SELECT FROM json_to_record('{}') AS x (a evil_domain))",
    "(s + s) = 'aa' AND evil() = 1",
    // Tables outside the database.
    "EXISTS (SELECT FROM passwords)", "(SELECT rolpassword FROM pg_authid LIMIT 1) > ''",
    "EXISTS (SELECT FROM pg_catalog.pg_file_settings)",
    "EXISTS (SELECT FROM information_schema.tables)",
    "EXISTS (SELECT FROM pg_stat_activity)", "EXISTS (SELECT FROM nowhere)",
    // Texts that are not conditions.
    "n", "s", "ROW(1, 2)", "SELECT id, n FROM t", "count(*) > 0", "sum(n) > 1",
    "row_number() OVER () = 1",
    "nothing = 1", "id = :nothing", "id = $1", "id = ?", "tags[1:p] IS NULL", "DEFAULT",
    "true = :p'x'",
  ]

  @Test(arguments: hostile)
  func `a condition with side effects is refused and not executed`(text: String) throws {
    let error = #expect(throws: BatchError.self) {
      try compiler.condition(PostgresExpression(text, at: "job.json:1:1"))
    }
    #expect(error?.code == .invalidSQL, "\(String(describing: error))")
    #expect(error?.place == "job.json:1:1")
    #expect(!session.isInTransaction)
    try expectNothingDone()
  }

  static let hostileValues: [String] = [
    "1, s = 'x'", "1 WHERE true", "1) , s = ('x'", "1 FROM other", "evil()", "(SELECT evil())",
    "nextval('seq')",
    "evil(n)", "(1, 2)", "DEFAULT", "'x'", "other.n", "(DELETE FROM other RETURNING 1)", "sum(n)",
    "n::evil_domain",
    "1); DELETE FROM other; --", "array[1]",
    "(WITH d AS (DELETE FROM other RETURNING 1) SELECT 1 FROM d)",
    "CASE WHEN n > 0 THEN pg_read_file('x')::int END", "lo_create(0)", "row_number() OVER ()",
    "generate_series(1, 2)",
  ]

  @Test(arguments: hostileValues)
  func `a value expression with side effects is refused and not executed`(text: String) throws {
    let error = #expect(throws: BatchError.self) {
      try compiler.assignment(of: PostgresExpression(text, at: "job.json:1:1"), to: "n")
    }
    #expect(error?.code == .invalidSQL, "\(String(describing: error))")
    try expectNothingDone()
  }

  private func expectNothingDone() throws {
    #expect(try session.text("SELECT count(*) FROM other") == "2")
    #expect(try session.text("SELECT sum(n) FROM other") == "3")
    #expect(try session.text("SELECT is_called FROM seq") == "f")
    #expect(try session.text("SELECT to_regclass('new')") == nil)
    #expect(try session.text("SELECT count(*) FROM pg_largeobject_metadata") == "0")
  }

  @Test(arguments: [
    "n = 1", "true", "n IN (1, 2)", "n = ANY (tags)", "s LIKE 'a%' ESCAPE '\\'", "s ~ '^a(b|c)'",
    "n = :p",
    "n=:p", "n > -:p", "tags[1 : 2] IS NULL", "tags[1: id] IS NULL", "s = :text::varchar",
    "s::text = 'a'",
    "n::text||')' = '1)'", "s = 'a;b' OR s = '''('", "s = E'a\\'b' OR n = 1", "n = 1 -- (a comment",
    "/* (a /* nested */ one */ n = 1", "\"guard\" IS NULL",
    "EXISTS (SELECT 1 FROM other AS o WHERE o.id = t.id)",
    "id IN (SELECT id FROM other)", "(SELECT count(*) FROM other) > 1", "SELECT true",
    "VALUES (true)",
    "WITH a AS (SELECT 1 AS b) SELECT b = 1 FROM a", "lower(s) = 'a'",
    "coalesce(n, 0) BETWEEN 0 AND 9",
    "CASE WHEN n > 0 THEN true ELSE false END", "now() > '2020-01-01'",
    "current_date > date '2020-01-01'",
    "random() < 2", "gen_random_uuid() IS NOT NULL", "n / nullif(id, 0) > 0", "(n, id) < (3, 4)",
    "'{\"a\": 1}'::jsonb ? 'a'", "'{\"a\": 1}'::jsonb -> 'a' = '1'",
    "jsonb_build_object('a', n) @> '{}'",
    "s IS DISTINCT FROM 'x'", "greatest(n, 1) = n", "s COLLATE \"C\" > 'a'",
    "extract(year FROM now()) > 2000",
    "make_interval(days := n) > '0'", "ARRAY[n, id] && tags", "c = 'X'", "c LIKE 'x%'",
    "'sad'::mood = 'sad'",
    "n = '1'", "interval '1 day' > '0'", "timestamp '2020-01-01' < now()",
    "date '2020-01-01' < now()",
    "now() AT TIME ZONE 'UTC' IS NOT NULL", "extract('year' FROM now()) > 1",
    "s = 'a'\n'b' OR true",
    "mood 'sad' = 'sad'", "B'01' = b'01'", "s = n'x'", "s LIKE'a%'", "s IN ('a', E'b')",
    "timestamp with time zone '2020-01-01' < now()", "jsonb '{}' IS NULL", "'{1}'::int[] IS NULL",
    "s IS DISTINCT FROM 'x' AND 'x' IS NOT NULL", "numeric '1.5' > n", "double precision '1' > n",
    "trim(BOTH 'x' FROM s) = 'a'", "(SELECT 'a' AS b) = s", "array_append(tags, '1') IS NULL",
    "position('a' IN s) > 0", "substring(s FROM 1 FOR 1) = 'a'", "n IS NULL IS FALSE",
    "to_jsonb(t) ? 'id'",
    "NOT (n <> 1)", "(SELECT string_agg(s, ',' ORDER BY id) FROM t) > ''",
    "pg_typeof(n) = 'int'::regtype",
    "EXISTS (SELECT FROM generate_series(1, 3) AS g WHERE g = n)", "s < 'ü' COLLATE \"en-x-icu\"",
    "(SELECT max(x) OVER (PARTITION BY n) FROM (SELECT 1 AS x) AS y) = 1",
  ])
  func `ordinary conditions are accepted and run as checked`(text: String) throws {
    let checked = try compiler.condition(PostgresExpression(text))
    // And it runs in the form that was checked.
    let parameters = PostgresParameters(["p": .integer(1), "text": .text("x")])
    try session.execute(
      "SELECT 1 FROM t WHERE \(checked.sql(parameters, .place)) AND $1 IS NOT NULL AND $2 <> ''",
      .integer(1),
      .text("x")
    )
  }

  @Test(arguments: [
    "n + 1", "NULL", "(SELECT max(n) FROM other)", ":p", "length(s)", "tags[1]", "round(n * 1.1)",
  ])
  func `ordinary value expressions are accepted`(text: String) throws {
    let checked = try compiler.assignment(of: PostgresExpression(text), to: "n")
    #expect(checked.expression.text == text)
  }

  @Test func `a function that later shadows one of the server's is not called`() throws {
    let own = try Self(in: TestPostgres(Self.script))
    let (session, compiler) = (own.session, own.compiler)
    // With the same arguments as the server's: pg_catalog comes first.
    try session.run(
      "CREATE FUNCTION upper(text) RETURNS text LANGUAGE sql AS 'SELECT evil()::text'"
    )
    _ = try compiler.condition(PostgresExpression("upper(s) = 'A'"))
    try session.run(
      "CREATE SCHEMA \"$user\"; CREATE FUNCTION \"$user\".length(text) RETURNS int LANGUAGE sql AS 'SELECT evil()'"
    )
    _ = try compiler.condition(PostgresExpression("length(s) = 1"))
    try session.run("SET search_path = public, pg_catalog")
    _ = try compiler.condition(PostgresExpression("upper(s) = 'A'"))
    try own.expectNothingDone()
  }

  @Test func `a column of a custom type is compared with the operator of its type`() throws {
    // With the server's operators alone, this would be another comparison.
    let checked = try compiler.condition(PostgresExpression("c = 'X'"))
    let path = try SearchPath(of: session)
    let count = try session.transaction(TransactionOptions(searchPath: path)) {
      () throws(BatchError) in
      try session.text("SELECT count(*) FROM t WHERE \(checked.sql(PostgresParameters(), .place))")
    }
    #expect(count == "1")
  }

  @Test func `the error of a refused expression names the cause and any remedy`() throws {
    func refusal(_ text: String) throws -> BatchError {
      try #require(throws: BatchError.self) { try compiler.condition(PostgresExpression(text)) }
    }
    #expect(try refusal("gaurd = 1").remedy == "did you mean \"guard\"?")
    #expect(try refusal("n = :q").message.contains("there is no parameter \":q\""))
    #expect(try refusal("evil() = 1").message.contains("the function public.evil is not allowed"))
    #expect(
      try refusal("pg_sleep(1) IS NULL").message.contains("the function pg_sleep is not allowed")
    )
    #expect(
      try refusal("EXISTS (SELECT FROM passwords)").message.contains("passwords may not be read")
    )
    #expect(
      try refusal("n::evil_domain = 1").message.contains("the type evil_domain is not allowed")
    )
    #expect(try refusal("EXISTS (SELECT FROM other FOR UPDATE)").message.contains("ROWMARKCLAUSE"))
    #expect(try refusal("true)").remedy == nil)
  }
}
#endif
