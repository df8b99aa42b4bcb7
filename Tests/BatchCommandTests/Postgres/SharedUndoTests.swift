#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// `batch undo` on PostgreSQL, as a user meets it.
///
/// The life of such a run is in ``RunLifeTests``.
@Suite(.timeLimit(.minutes(5))) struct SharedUndoTests {
  private static func outcomes(_ result: BatchProgram.Result) throws -> [String: Int] {
    try (result.last["outcomes"] as? [String: Int] ?? [:]).filter { $0.value > 0 }
  }

  /// A copy of the table, to which ``differences(_:)`` compares.
  private static func copy(_ job: SharedJob, of table: String = "t") throws {
    try job.database.run("DROP TABLE IF EXISTS copy; CREATE TABLE copy AS SELECT * FROM \(table)")
  }

  /// How many rows of the table and its copy are not the same, bit for bit.
  private static func differences(
    _ job: SharedJob,
    of table: String = "t",
    by key: String = "id"
  ) throws -> String? {
    try job.database.text(
      """
      SELECT count(*)::text FROM \(table) AS t FULL JOIN copy AS c USING (\(key))
      WHERE t IS NULL AND c IS NOT NULL OR c IS NULL AND t IS NOT NULL OR record_image_ne(t, c)
      """
    )
  }

  // MARK: Values

  @Test func `values of all kinds return bit for bit`() throws {
    let job = try SharedJob(
      rows: 3_000,
      """
      CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
      CREATE DOMAIN small AS int CHECK (value < 1000000);
      CREATE TYPE pair AS (a int, b text);
      ALTER TABLE t ADD num numeric, ADD short numeric(10, 2), ADD real8 float8, ADD real4 float4, ADD flag boolean,
        ADD words text, ADD fixed char(5), ADD bytes bytea, ADD list int[], ADD texts text[], ADD span int4range,
        ADD spans int4multirange, ADD state mood, ADD inner_ small, ADD both_ pair, ADD doc jsonb, ADD raw json,
        ADD at timestamptz, ADD day date, ADD lapse interval, ADD key uuid, ADD ip inet, ADD bits bit(3),
        ADD long text, ADD computed numeric GENERATED ALWAYS AS (num * 2) STORED;
      UPDATE t SET num = CASE id % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN 1.00 WHEN 2 THEN 1e-30 END,
        short = id / 7.0, real8 = CASE id % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' ELSE id / 3.0 END,
        real4 = CASE id % 3 WHEN 0 THEN '-0' ELSE id / 3.0 END, flag = id % 2 = 0,
        words = CASE id % 3 WHEN 0 THEN '' WHEN 1 THEN 'Ü ''"' || id END, fixed = 'a', bytes = decode(md5(id::text), 'hex'),
        list = ARRAY[id, NULL, 3]::int[], texts = '[0:1]={NULL,"NULL"}', span = int4range(id::int, NULL),
        spans = '{[1,3),[7,9)}', state = 'ok', inner_ = id, both_ = ROW(id, NULL), doc = jsonb_build_object('a', 1.00),
        raw = '{"a":1,  "a":2}', at = 'epoch'::timestamptz + id * interval '1 us', day = 'infinity', lapse = '1 mon -3 days',
        key = gen_random_uuid(), ip = '10.0.0.1/8', bits = '101', long = repeat(md5(id::text), CASE WHEN id % 100 = 0 THEN 5000 ELSE 1 END)
      """
    )
    try Self.copy(job)
    let names = try job.database.text(
      """
      SELECT string_agg(attname, ',') FROM pg_attribute
      WHERE attrelid = 't'::regclass AND attnum > 0 AND attname NOT IN ('id', 'computed')
      """
    )
    let columns = try #require(names).split(separator: ",").map(String.init)
    var set = Dictionary(uniqueKeysWithValues: columns.map { ($0, "NULL") })
    (set["n"], set["num"], set["words"], set["long"]) = ("n + 1", "2.0", "'x'", "long || 'x'")
    try job.writeJob(["action": ["type": "update", "set": set], "undo": true])
    #expect(try job.start().wait().status == 0)
    #expect(try Self.differences(job) == "3000")
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try Self.outcomes(undone) == ["succeeded": 3_000])
    #expect(try Self.differences(job) == "0")
  }

  @Test func `deleted rows return with all columns, also those of an identity`() throws {
    let job = try SharedJob(
      rows: 2_000,
      """
      ALTER TABLE t ADD serial int GENERATED ALWAYS AS IDENTITY, ADD words text DEFAULT 'x',
        ADD computed int GENERATED ALWAYS AS (n + 1) STORED, ADD parent bigint REFERENCES t;
      UPDATE t SET parent = CASE WHEN id > 1000 THEN id - 1000 END, words = nullif(md5(id::text), '');
      CREATE TABLE archive (LIKE t)
      """
    )
    try Self.copy(job)
    try job.writeJob([
      "action": ["type": "delete", "archive": ["entity": "archive"]],
      "source": ["entity": "t", "where": "id > 500", "orderBy": ["-id"]], "undo": true,
    ])
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.database.text("SELECT count(*)::text FROM t") == "500")
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try Self.differences(job) == "0")
    #expect(try job.database.text("SELECT count(*)::text FROM archive") == "1500")
  }

  @Test func `a transform is undone as an update is`() throws {
    let job = try SharedJob(
      rows: 1_000,
      "ALTER TABLE t ADD words text; UPDATE t SET words = id || ' ü'"
    )
    try Self.copy(job)
    let program = """
      import json, sys
      for line in sys.stdin:
          row = json.loads(line)
          print(json.dumps({"n": row["n"] + 1, "words": None if row["n"] % 2 else "x" * 500}), flush=True)
      """
    try job.directory.write(program, to: "double.py")
    try job.writeJob([
      "action": [
        "type": "transform", "columns": ["n"], "writes": ["n", "words"],
        "command": ["python3", "double.py"],
      ], "undo": true,
    ])
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try Self.differences(job) == "1000")
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try Self.differences(job) == "0")
  }

  @Test func `rows of partitions and of inheriting tables return to where they were`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE parts (id int, kind int, n int, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
      CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
      CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
      INSERT INTO parts SELECT g, 1 + g % 2, g FROM generate_series(1, 1000) AS g;
      CREATE TABLE place (id int, region int, n int, UNIQUE (id, region)) PARTITION BY LIST (region);
      CREATE TABLE place_1 PARTITION OF place FOR VALUES IN (1);
      CREATE TABLE place_2 PARTITION OF place FOR VALUES IN (2);
      INSERT INTO place SELECT g, 1, g FROM generate_series(1, 500) AS g;
      CREATE TABLE parent (id int PRIMARY KEY, n int);
      CREATE TABLE child (extra text, PRIMARY KEY (id)) INHERITS (parent);
      INSERT INTO parent SELECT g, g FROM generate_series(1, 300) AS g;
      INSERT INTO child SELECT g, g, 'x' FROM generate_series(301, 600) AS g
      """
    )
    func check(
      _ table: String,
      _ source: [String: Any],
      _ action: [String: Any],
      by key: String
    ) throws {
      try Self.copy(job, of: table)
      try job.writeJob([
        "name": table, "action": action, "undo": true,
        "source": source.merging(["entity": table, "everything": true]) { $1 },
      ])
      let run = try job.start().wait()
      #expect(run.status == 0, "\(table): \(run.errors)")
      #expect(try Self.differences(job, of: table, by: key) != "0")
      let undone = try job.batch("undo", "job.json", "--json")
      #expect(undone.status == 0, "\(table): \(undone.errors)")
      #expect(try Self.differences(job, of: table, by: key) == "0", "\(table)")
    }
    try check("parts", [:], ["type": "update", "set": ["n": "-n"]], by: "id, kind")
    try check("parts", [:], ["type": "delete"], by: "id, kind")
    // The update itself moves each row to another partition.
    try check("place", ["key": ["id"]], ["type": "update", "set": ["region": "2"]], by: "id")
    try check("parent", [:], ["type": "update", "set": ["n": "-n"]], by: "id")
    #expect(try job.database.text("SELECT count(*)::text FROM ONLY child") == "300")
    try job.writeJob([
      "source": ["entity": "parent", "everything": true], "action": ["type": "delete"],
      "undo": true,
    ])
    let refused = try job.batch("run", "job.json")
    #expect(
      refused.status == 2 && refused.errors.contains("tables that inherit from it"),
      "\(refused.errors)"
    )
  }

  // MARK: Other people's changes

  @Test func `rows that others have changed since are left with both values in the error`() throws {
    let job = try SharedJob(
      rows: 1_000,
      "ALTER TABLE t ADD words text DEFAULT 'a', ADD other int DEFAULT 0"
    )
    try job.writeJob([
      "action": ["type": "update", "set": ["n": "n + 1", "words": "'b'"]], "undo": true,
    ])
    #expect(try job.start().wait().status == 0)
    try job.database.run(
      """
      UPDATE t SET words = 'it''s' WHERE id = 7; UPDATE t SET n = 5 WHERE id = 8;
      UPDATE t SET n = 0, words = 'a' WHERE id = 9; DELETE FROM t WHERE id = 10; UPDATE t SET other = 5 WHERE id = 11
      """
    )
    let plan = try job.batch("undo", "job.json", "--plan", "--json")
    let report = try JSONOutput.object(plan.output)
    #expect(
      report["outcomes"] as? [String: Int] == [
        "succeeded": 996, "failed": 2, "unchanged": 1, "vanished": 1, "noLongerMatching": 0,
      ]
    )
    let changed = try #require(report["changedSince"] as? [String])
    let words = [
      "identifier 7: somebody has changed the row since: \"words\" is 'it''s', the run had set 'b', and before it was 'a'",
      "identifier 8: somebody has changed the row since: \"n\" is 5, the run had set 1, and before it was 0",
    ]
    #expect(changed == words)
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 4, "\(undone.errors)")
    #expect(
      try Self.outcomes(undone) == ["succeeded": 996, "failed": 2, "unchanged": 1, "vanished": 1]
    )
    let failed = try job.batch("ids", "job.undo", "--outcome", "failed", "--reasons").output
    let quoted = words.map { $0.dropFirst("identifier 7: ".count).replacing("\"", with: "\"\"") }
    #expect(quoted.allSatisfy { failed.contains($0) }, "\(failed)")
    #expect(try job.counts() == ["0 x 997", "1 x 1", "5 x 1"])
    #expect(try job.database.text("SELECT other::text FROM t WHERE id = 11") == "5")
    // The rest, whatever others have made of it.
    let all = try job.batch("undo", "job.json", "--overwrite", "--json")
    #expect(all.status == 0, "\(all.errors)")
    #expect(try Self.outcomes(all) == ["succeeded": 2, "unchanged": 997, "vanished": 1])
    #expect(try job.counts() == ["0 x 999"])
  }

  @Test func `deleted rows whose key was used again are left with both values in the error`() throws
  {
    let job = try SharedJob(rows: 500)
    try job.writeJob(["action": ["type": "delete"], "undo": true])
    #expect(try job.start().wait().status == 0)
    try job.database.run("INSERT INTO t VALUES (5, 77), (6, 0)")
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 4, "\(undone.errors)")
    #expect(try Self.outcomes(undone) == ["succeeded": 498, "failed": 1, "unchanged": 1])
    let failed = try job.batch("ids", "job.undo", "--outcome", "failed", "--reasons").output
    #expect(
      failed.contains("a row with the key exists again: \"\"n\"\" is 77 and was 0"),
      "\(failed)"
    )
    #expect(try job.batch("undo", "job.json", "--overwrite").status == 0)
    #expect(try job.counts() == ["0 x 500"])
  }

  @Test func `values that rows have exchanged under a unique index return`() throws {
    let job = try SharedJob(
      rows: 400,
      "ALTER TABLE t ADD place int; UPDATE t SET place = id; CREATE UNIQUE INDEX ON t (place)"
    )
    try Self.copy(job)
    try job.writeJob([
      "action": ["type": "update", "set": ["place": "place + 1"]], "undo": true,
      "source": ["entity": "t", "everything": true, "orderBy": ["-id"]],
    ])
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try Self.differences(job) == "0")
  }

  @Test(arguments: ["BEFORE", "AFTER"])
  func `a row whose trigger changes what is restored is left as it was`(time: String) throws {
    let job = try SharedJob(
      rows: 300,
      """
      CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF new.n = 0 AND new.id % 100 = 3 THEN
          IF tg_when = 'BEFORE' THEN new.n = 9; ELSE UPDATE t SET n = 9 WHERE id = new.id; END IF;
        END IF;
        RETURN new;
      END $$;
      CREATE TRIGGER meddle \(time) UPDATE ON t FOR EACH ROW EXECUTE FUNCTION meddle()
      """
    )
    try job.writeJob(["undo": true])
    #expect(try job.start().wait().status == 0)
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 4, "\(undone.errors)")
    #expect(try Self.outcomes(undone) == ["succeeded": 297, "failed": 3])
    #expect(try job.counts() == ["0 x 297", "1 x 3"])
  }

  // MARK: Which run

  @Test func `only given rows are undone, and then the others`() throws {
    let job = try SharedJob(rows: 1_000)
    try job.writeJob(["undo": true])
    #expect(try job.start().wait().status == 0)
    #expect(try job.batch("ids", "split", "4", "job.json", "--output", "part.ids").status == 0)
    let some = try job.batch("undo", "job.json", "--ids", "part.2.ids", "--json")
    #expect(some.status == 0, "\(some.errors)")
    #expect(try job.counts() == ["0 x 250", "1 x 750"])
    let rest = try job.batch("undo", "job.json", "--json")
    #expect(try Self.outcomes(rest) == ["succeeded": 750, "unchanged": 250], "\(rest.errors)")
    #expect(try job.counts() == ["0 x 1000"])
  }

  @Test func `the last run is undone once, and an earlier one by its name`() throws {
    let job = try SharedJob(rows: 200)
    let none = try job.batch("undo", "job.json")
    #expect(
      none.status == 2 && none.errors.contains("give the job \"undo\": true"),
      "\(none.errors)"
    )
    try job.writeJob(["undo": true])
    let first = try job.start().wait()
    #expect(try job.start().wait().status == 0)
    let undone = try job.batch("undo", "job.json", "--json")
    #expect(undone.status == 0, "\(undone.errors)")
    let undo = try #require(undone.last["run"] as? String)
    #expect(try job.counts() == ["1 x 200"])
    let next = try JSONOutput.object(job.batch("status", "job.undo", "--json").output)
    #expect(next["next"] as? String == "refuse" && next["run"] as? String == undo, "\(next)")
    let again = try job.batch("undo", "job.json")
    #expect(
      again.status == 2 && again.errors.contains("was undone by run \(undo)"),
      "\(again.errors)"
    )
    let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    #expect(status["undoneBy"] as? String == undo)
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    let runs = try #require(history["runs"] as? [[String: Any]])
    #expect(runs.map { $0["undoneBy"] as? String } == [undo, nil])
    let run = try #require(first.last["run"] as? String)
    #expect(again.errors.contains("use --run: \(run)"))
    #expect(try job.batch("undo", "job.json", "--run", String(run.prefix(8))).status == 0)
    #expect(try job.counts() == ["0 x 200"])
    // The records go when the job says so, with the table that has them.
    #expect(
      try job.database.text(
        "SELECT count(*)::text FROM pg_tables WHERE tablename LIKE '\\_batch\\_undo\\_%'"
      ) == "2"
    )
    try job.database.run("UPDATE _batch_undo SET kept_until = now() - interval '1 s'")
    #expect(try job.batch("cleanup", "job.json").status == 0)
    #expect(
      try job.database.text(
        "SELECT count(*)::text FROM pg_tables WHERE tablename LIKE '\\_batch\\_undo\\_%'"
      ) == "0"
    )
    #expect(try job.database.text("SELECT count(*)::text FROM _batch_undo") == "0")
  }

  @Test func `an unfinished run that was undone does not go on, and no run begins during an undo`()
    throws
  {
    let job = try SharedJob(rows: 20_000)
    try job.writeJob(SharedJob.slowly.merging(["undo": true]) { $1 })
    let run = try job.start()
    try job.untilDone(1_000)
    let alive = try job.batch("undo", "job.json")
    #expect(alive.status == 5 && alive.errors.contains("is alive"), "\(alive.errors)")
    run.send(SIGKILL)
    _ = run.wait()
    try job.wait(
      until:
        "NOT EXISTS (SELECT FROM _batch_host WHERE seen_at > clock_timestamp() - interval '2 s')"
    )
    try job.writeJob(["undo": true, "throttle": ["identifiersPerSecond": 100]])
    let undo = try BatchProgram(["undo", "job.json", "--json"], in: job.directory)
    _ = try undo.event("started")
    try job.writeJob(["undo": true])
    for command in [["run", "job.json"], ["run", "job.json", "--fresh"]] {
      let refused = try BatchProgram(command, in: job.directory).wait()
      #expect([2, 5].contains(refused.status), "\(refused.errors)")
      #expect(
        refused.errors.contains("being undone") || refused.errors.contains("is alive"),
        "\(refused.errors)"
      )
    }
    let status = try job.batch("status", "job.json").output
    #expect(status.contains("being undone"), "\(status)")
    undo.send(SIGKILL)
    _ = undo.wait()
    let finished = try job.batch("undo", "job.json", "--json")
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try job.counts() == ["0 x 20000"])
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 20000"])
  }

  @Test func `removed records and a changed table are refused, and nothing changes`() throws {
    let job = try SharedJob(rows: 300, "ALTER TABLE t ADD words varchar(10) DEFAULT 'a'")
    try job.writeJob(["action": ["type": "update", "set": ["words": "'b'"]], "undo": true])
    #expect(try job.start().wait().status == 0)
    func refusal(_ words: String) throws {
      let refused = try job.batch("undo", "job.json")
      #expect(refused.status == 1 || refused.status == 2, "\(refused.errors)")
      #expect(refused.errors.contains(words), "\(refused.errors)")
      #expect(
        try job.database.text("SELECT count(*)::text FROM t WHERE t::text LIKE '%,b)'") == "300"
      )
    }
    try job.database.run("ALTER TABLE t ALTER words TYPE text")
    try refusal("words was character varying(10) and is text")
    try job.database.run("ALTER TABLE t RENAME words TO others")
    try refusal("has changed since the run")
    try job.database.run(
      "ALTER TABLE t RENAME others TO words; ALTER TABLE t ALTER words TYPE varchar(10)"
    )
    let found = try job.database.text(
      "SELECT tablename FROM pg_tables WHERE tablename LIKE '\\_batch\\_undo\\_%'"
    )
    let name = try #require(found)
    try job.database.run("DELETE FROM \(name) WHERE id = 17")
    try refusal("records were removed or added by hand")
    try job.database.run("DROP TABLE \(name)")
    try refusal("there is no run of the job that can be undone")
  }

  /// Changes of a table of four text columns, each with whether its deleted rows can return.
  private static let tableChanges: [(sql: String, isUndone: Bool)] = [
    ("DROP COLUMN a", false), ("DROP COLUMN c", false), ("ADD z text", true),
    ("ADD z int NOT NULL DEFAULT 3", true), ("DROP COLUMN b, ADD z text", false),
    ("ALTER COLUMN b TYPE varchar(9)", false),
  ]

  @Test(arguments: tableChanges.indices)
  func `deleted rows return to the columns that they had, whatever the table's columns are now`(
    index: Int
  ) throws {
    let (sql, isUndone) = Self.tableChanges[index]
    let job = try SharedJob(
      rows: 30,
      "ALTER TABLE t ADD a text, ADD b text, ADD c text; UPDATE t SET a = 'a' || id, b = 'b' || id, c = 'c' || id"
    )
    try job.writeJob(["action": ["type": "delete"], "undo": true])
    #expect(try job.start().wait().status == 0)
    try job.database.run("ALTER TABLE t \(sql)")
    let undo = try job.batch("undo", "job.json")
    #expect((undo.status == 0) == isUndone, "\(sql): \(undo.errors)")
    if isUndone {
      let wrong =
        "SELECT count(*)::text FROM t WHERE a = 'a' || id AND b = 'b' || id AND c = 'c' || id"
      #expect(try job.database.text(wrong) == "30")
    } else {
      #expect(undo.errors.contains("has changed since the run"), "\(undo.errors)")
      #expect(try job.database.text("SELECT count(*)::text FROM t") == "0")
    }
  }

  @Test func `deleted rows return to a table whose columns have another order`() throws {
    let job = try SharedJob(
      rows: 30,
      "ALTER TABLE t ADD a text, ADD b text; UPDATE t SET a = 'a' || id, b = 'b' || id"
    )
    try job.writeJob(["action": ["type": "delete"], "undo": true])
    #expect(try job.start().wait().status == 0)
    try job.database.run(
      "DROP TABLE t; CREATE TABLE t (b text, a text, n int, id bigint PRIMARY KEY)"
    )
    #expect(try job.batch("undo", "job.json").status == 0)
    let right = "SELECT count(*)::text FROM t WHERE a = 'a' || id AND b = 'b' || id AND n = 0"
    #expect(try job.database.text(right) == "30")
  }

  @Test(arguments: [false, true])
  func `rows of hundreds of columns are undone`(deletes: Bool) throws {
    let columns = (1...150).map { "c\($0)" }
    let job = try SharedJob(
      rows: 20,
      "ALTER TABLE t \(columns.map { "ADD \($0) int DEFAULT 1" }.joined(separator: ", "))"
    )
    try Self.copy(job)
    let set = Dictionary(uniqueKeysWithValues: columns.map { ($0, "\($0) + 1") })
    let action: [String: Any] = deletes ? ["type": "delete"] : ["type": "update", "set": set]
    try job.writeJob(["action": action, "undo": true])
    #expect(try job.start().wait().status == 0)
    if !deletes {
      try job.database.run("UPDATE t SET c150 = 9 WHERE id = 3")
      let refused = try job.batch("undo", "job.json")
      #expect(
        refused.status == 4 && refused.output.contains("batch ids job.undo"),
        "\(refused.errors)"
      )
      let listed = try job.batch("ids", "job.undo", "--outcome", "failed", "--reasons")
      #expect(listed.output.contains("c150"), "\(listed.output) \(listed.errors)")
    }
    let undo = try job.batch("undo", "job.json", "--overwrite")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try Self.differences(job) == "0")
  }

  @Test func `values that rows have exchanged under a deferred constraint return`() throws {
    let job = try SharedJob(
      rows: 500,
      "UPDATE t SET n = id; ALTER TABLE t ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED"
    )
    try Self.copy(job)
    try job.writeJob(
      [
        "action": ["type": "update", "set": ["n": "501 - n"]], "chunk": ["size": 1000],
        "undo": true,
      ]
    )
    #expect(try job.start().wait().status == 0)
    let undo = try job.batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try Self.differences(job) == "0")
  }

  @Test func `a view cannot be undone, and a job says so before it runs`() throws {
    let job = try SharedJob(rows: 10, "CREATE VIEW v AS SELECT * FROM t")
    try job.writeJob(["source": ["entity": "v", "everything": true, "key": ["id"]], "undo": true])
    for command in ["validate", "plan", "run"] {
      let refused = try job.batch(command, "job.json")
      #expect(
        refused.status == 2 && refused.errors.contains("a view has no rows of its own"),
        "\(refused.errors)"
      )
    }
  }
}
#endif
