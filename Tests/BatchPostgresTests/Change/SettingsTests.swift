#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

/// The settings of a database hold in all that its users wrote, as in psql; what leaves the server does not depend on them.
@Suite(.timeLimit(.minutes(60))) struct SettingsTests {
  private static let settings: KeyValuePairs = [
    "datestyle": ["ISO, DMY", "SQL, DMY", "German", "Postgres, MDY", "ISO, YMD"],
    "timezone": ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "UTC"],
    "intervalstyle": ["iso_8601", "sql_standard", "postgres_verbose", "postgres"],
    "bytea_output": ["escape", "hex"], "extra_float_digits": ["-5", "0", "3"],
    "array_nulls": ["off", "on"], "transform_null_equals": ["on", "off"],
    "standard_conforming_strings": ["off", "on"], "quote_all_identifiers": ["on", "off"],
    "search_path": ["s, public", "public, s", "\"$user\", public, s"],
  ]

  /// A column, and an expression whose value depends on settings.
  private static let assignments = [
    ("d", "raw::date"), ("d", "at::date"), ("at", "local"),
    ("at", "(raw || ' 02:30')::timestamptz"),
    ("local", "at"), ("x", "at::text"), ("x", "i::text"), ("x", "f::text"), ("x", "y::text"),
    ("x", "d::text"), ("x", "date_trunc('day', at)::text"), ("x", "'a\\\\b'"),
    ("x", "('{NULL,a}'::text[])[1]"), ("x", "(SELECT name FROM place)"),
    ("i", "(i::text)::interval"),
    ("x", "current_setting('timezone')"), ("x", "current_schema()"), ("x", "ARRAY[d]::text"),
    ("x", "CASE WHEN x = NULL THEN 'null' ELSE 'other' END"), ("x", "extract(hour FROM at)::text"),
  ]
  private static let conditions = [
    "true", "at >= '2026-03-29 00:00'", "raw::date > '01/02/2026'", "d::text LIKE '%0%'",
    "at::date > local::date - 400", "i = '-1 2:00:00'::interval OR true", "x = NULL OR true",
  ]
  private static let keys = ["id", "at", "local", "d2", "i", "f", "real4", "ym"]

  private static let script = """
    CREATE SCHEMA s;
    CREATE TABLE place (name text); INSERT INTO place VALUES ('public');
    CREATE TABLE s.place (name text); INSERT INTO s.place VALUES ('s');
    CREATE TABLE public.t (id int, raw text, d date, d2 date, at timestamptz, local timestamp, i interval, f float8,
      real4 real, ym interval, y bytea, x text, seen text);
    INSERT INTO t SELECT g, '0' || g % 9 + 1 || '/0' || g % 8 + 1 || '/2026', NULL, date '0001-12-20 BC' + g * 37777,
      timestamptz '2026-03-28 20:00:00.5+01' + g * interval '37 min', timestamp '1999-12-31' + g * interval '1.7 days',
      make_interval(days => 1 - g, secs => g * 1.25), g / 7.0, g / 7.0, make_interval(months => 5 - g, days => g, secs => -g),
      decode(lpad(to_hex(g), 4, '0'), 'hex'), NULL, NULL FROM generate_series(1, 40) g;
    UPDATE t SET d2 = 'infinity', at = '-infinity', local = 'infinity', f = 'NaN', real4 = '-Infinity' WHERE id = 7;
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.seen = concat_ws('|', NEW.at, NEW.i, NEW.f, NEW.y, (SELECT name FROM place)); RETURN NEW; END $$;
    CREATE TABLE naive (LIKE t);
    INSERT INTO naive SELECT * FROM t;
    CREATE TRIGGER note BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
    CREATE TRIGGER note BEFORE UPDATE ON naive FOR EACH ROW EXECUTE FUNCTION note()
    """

  @Test func `updates have the effect of a plain session's under any server settings`() async throws
  {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    let count = environment["BATCH_SETTINGS"].flatMap { Int($0) } ?? 12
    print("settings: seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for number in 0..<count {
      let chosen = Self.settings.map { ($0.key, $0.value.randomElement(using: &random)!) }
      let (column, expression) = Self.assignments.randomElement(using: &random)!
      let condition = Self.conditions.randomElement(using: &random)!
      let key = Self.keys.filter { $0 != column }.randomElement(using: &random)!
      let what: Comment =
        "\(number): \(chosen), \(column) = \(expression) where \(condition), key \(key)"
      let database = try TestPostgres(Self.script)
      for (name, value) in chosen {
        let list = name == "search_path" ? value : "'\(value)'"
        try database.run("ALTER DATABASE \(database.name) SET \(name) = \(list)")
      }
      // What a plain session cannot do is refused.
      let plain: Void? = try? database.run(
        "UPDATE public.naive SET \(column) = \(expression) WHERE \(condition)"
      )
      do {
        let trial = try await ChangeTrial.of(database, "public.t", where: condition, key: [key])
        try trial.write(trial.update([column: expression], if: condition))
        #expect(plain != nil, what)
      } catch let error as BatchError where plain == nil || error.code == .invalidSQL {
        // Some functions are not allowed in expressions.
        if plain != nil { #expect(error.message.contains("not allowed"), "\(what): \(error)") }
        continue
      }
      let different = try database.text(
        "SELECT count(*) FROM public.t FULL JOIN public.naive USING (id) WHERE t::text IS DISTINCT FROM naive::text"
      )
      #expect(different == "0", what)
    }
  }

  @Test(arguments: [RowFormat.csv, .ndjson], ["at::text > ''", nil])
  func `exports have identical bytes under any server settings`(
    format: RowFormat,
    condition: String?
  ) async throws {
    let script = """
      CREATE TABLE t (id int PRIMARY KEY, d date, at timestamptz, i interval, f float8, r real, ds date[], tr tstzrange, x text);
      INSERT INTO t SELECT g, date '2026-03-04' + g, timestamptz '2026-03-28 20:00+01' + g * interval '1 h',
        make_interval(0, -1, 0, g), g / 7.0, g / 7.0, ARRAY[date '2026-03-04', NULL],
        tstzrange('2026-03-04 00:00+00', NULL), 'x' FROM generate_series(1, 30) g
      """
    var files: [String] = []
    for settings in [
      ["datestyle": "ISO, MDY", "timezone": "UTC"],
      [
        "datestyle": "German", "timezone": "Asia/Tokyo", "intervalstyle": "iso_8601",
        "extra_float_digits": "-3",
      ],
    ] {
      let database = try TestPostgres(script)
      for (name, value) in settings {
        try database.run("ALTER DATABASE \(database.name) SET \(name) = '\(value)'")
      }
      let trial = try await ChangeTrial.of(database, "t")
      let lines = try trial.export(as: LineFormat(format), if: condition).lines(
        for: trial.keys(),
        onFailure: .failChunk,
        in: trial.session
      )
      files.append(String(decoding: lines.bytes, as: UTF8.self))
      #expect(lines.result.succeeded == 30)
    }
    #expect(files[0] == files[1])
    #expect(files[0].contains("2026-03-28 20:00:00+00"))
  }

  @Test func `the session's settings are restored after rows were read under a lock`() async throws
  {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, at timestamptz); INSERT INTO t VALUES (1, '2026-03-04 00:00+00')"
    )
    try trial.session.run("SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'")
    let transform = try trial.transform(["at"], ["at"])
    try trial.session.transaction(TransactionOptions(searchPath: trial.path)) {
      () throws(BatchError) in
      let keys = (try? trial.keys())!
      let rows = try transform.read(keys, .locking, in: trial.session)
      #expect(rows.values.value(0, 0) == .text("2026-03-04 00:00:00+00"))
      #expect(try trial.session.text("SHOW timezone") == "Asia/Tokyo")
      #expect(try trial.session.text("SHOW datestyle") == "German, DMY")
    }
  }

  @Test func `the smaller of the role's and the run's time limits applies`() throws {
    let database = try TestPostgres()
    let session = try database.session()
    defer { withExtendedLifetime(database) {} }
    for (role, own, holds) in [
      ("300ms", 7_000, "300ms"), ("0", 7_000, "7s"), ("1h", 7_000, "7s"), ("5s", 7_000, "5s"),
    ] {
      try session.run("SET statement_timeout = '\(role)'; SET lock_timeout = '\(role)'")
      let options = TransactionOptions(
        lockTimeout: .milliseconds(own),
        statementTimeout: .milliseconds(own)
      )
      try session.transaction(options) { () throws(BatchError) in
        #expect(try session.text("SHOW statement_timeout") == holds)
        #expect(try session.text("SHOW lock_timeout") == holds)
      }
    }
  }
}
#endif
