#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Random tables and jobs: what a rehearsal tells is what a run of the same job then does.
@Suite(.timeLimit(.minutes(30))) struct PostgresRehearsalModelTests {
  /// The number of tables; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 24

  @Test(arguments: 0..<count)
  func `a run does what its rehearsal has shown, which has changed nothing`(seed: UInt64) throws {
    let trial = try RehearsedTrial(seed: seed)
    let (database, told) = (trial.job.database, trial.told)
    let before = try database.fingerprint()
    let rows = try trial.rows()
    let logged = try trial.logged()
    let rehearsed = try trial.job.batch("rehearse", "job.json", "--json", "--samples", "100")
    #expect([0, 4].contains(rehearsed.status), "\(told) \(rehearsed.errors)")
    #expect(try database.fingerprint() == before, told)
    let rehearsal = try JSONOutput.object(rehearsed.output)

    let run = try trial.job.batch("run", "job.json", "--json")
    #expect(run.status == rehearsed.status, "\(told) \(run.errors)")
    let last = try run.last
    let summary = try #require(rehearsal["run"] as? [String: Any], told)
    #expect(summary["outcomes"] as? [String: Int] == last["outcomes"] as? [String: Int], told)
    #expect(summary["total"] as? Int == last["total"] as? Int, told)

    let failed = try database.session().execute(
      "SELECT code, count(*) FROM _batch_failure GROUP BY code ORDER BY code"
    )
    var codes: [String: Int] = [:]
    for failure in rehearsal["failures"] as? [[String: Any]] ?? [] {
      codes[failure["code"] as? String ?? "", default: 0] += failure["count"] as? Int ?? 0
    }
    let expected = (0..<failed.count).map {
      "\(failed.text($0, 0) ?? "") \(failed.text($0, 1) ?? "")"
    }
    #expect(codes.map { "\($0) \($1)" }.sorted() == expected, told)

    let now = try trial.rows()
    let tables = rehearsal["tables"] as? [[String: Any]] ?? []
    let own = tables.first { $0["table"] as? String == "a" } ?? [:]
    let changed = rows.filter { now[$0.key] != nil && now[$0.key] != $0.value }
    #expect(own["changed"] as? Int ?? 0 == changed.count, told)
    #expect(own["removed"] as? Int ?? 0 == rows.keys.count { now[$0] == nil }, told)
    var counts: [String: Int] = [:]
    for (key, old) in changed {
      for (column, value) in old where now[key]?[column] != value {
        counts[column, default: 0] += 1
      }
    }
    let columns = own["columns"] as? [[String: Any]] ?? []
    let shown = columns.map { ($0["name"] as? String ?? "", $0["rows"] as? Int ?? 0) }
    #expect(Dictionary(uniqueKeysWithValues: shown) == counts, told)
    for column in columns {
      let name = column["name"] as? String ?? ""
      for sample in column["samples"] as? [[String: Any]] ?? [] {
        let parts = sample["key"] as? [[String: Any]] ?? []
        let key = parts.map { trial.plain($0["value"] as? String ?? "") }.joined(separator: "|")
        #expect(trial.plain(sample["before"] as? String ?? "") == rows[key]?[name], told)
        #expect(trial.plain(sample["after"] as? String ?? "") == now[key]?[name], told)
      }
    }
    // What failed rows had reached is counted too.
    if failed.count == 0 {
      let log = tables.first { $0["table"] as? String == "log" }
      #expect(try log?["added"] as? Int ?? 0 == trial.logged() - logged, told)
    }
    if let kept = tables.first(where: { $0["table"] as? String == "kept" }), failed.count == 0 {
      let count = try database.text("SELECT count(*) FROM kept")
      #expect("\(kept["added"] ?? "")" == count, told)
    }
  }
}

/// A random table `a`, and a random job over it.
private struct RehearsedTrial {
  let job: SharedJob
  let told: Comment

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    func one(_ choices: String...) -> String {
      choices[Int.random(in: 0..<choices.count, using: &random)]
    }
    func yes(_ share: Int = 2) -> Bool { Int.random(in: 0..<share, using: &random) == 0 }
    let isPartitioned = yes(4)
    let key = one("id int", "id uuid", "id text", "id int, m text")
    let names = key.contains(",") ? "id, m" : "id"
    let deferred = one("", " DEFERRABLE INITIALLY DEFERRED")
    let unique = !isPartitioned && yes() ? ", UNIQUE (u)\(one("", deferred))" : ""
    let id =
      key.contains("uuid")
      ? "md5(i::text)::uuid" : key.contains("text") && !key.contains(",") ? "'k' || i" : "i"
    let rows = Int.random(in: 1...40, using: &random)
    var script = """
      CREATE TABLE p (id int PRIMARY KEY);
      INSERT INTO p SELECT generate_series(0, 6);
      CREATE TABLE log (what text);
      CREATE TABLE a (\(key), n int, s text, x numeric(8, 2), f float8, d timestamp, u int, g int,
        r int REFERENCES p\(deferred), CHECK (n < 9 OR n IS NULL)\(unique)
        \(isPartitioned ? "" : ", PRIMARY KEY (\(names))"))
        \(isPartitioned ? "PARTITION BY LIST (g)" : "");

      """
    if isPartitioned {
      script += "CREATE TABLE a0 PARTITION OF a FOR VALUES IN (0);"
      script += "CREATE TABLE a1 PARTITION OF a FOR VALUES IN (1);"
    }
    let more = key.contains(",") ? ", 'm' || i % 3" : ""
    script += """
      INSERT INTO a SELECT \(id)\(more), nullif(i % 8, 5), nullif('it''s ' || i % 4, 'it''s 2'), i / 7.0, i / 3.0,
        '2024-01-01'::timestamp + i * interval '1 hour', i, i % 2, i % 7 FROM generate_series(1, \(rows)) i;
      CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log VALUES (OLD.s); RETURN NULL; END $$;
      CREATE FUNCTION judged() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF OLD.u % 11 = 4 THEN RAISE EXCEPTION 'not %', OLD.u; END IF;
          IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
          NEW.s := NEW.s || '!'; RETURN NEW; END $$;

      """
    if yes() {
      script +=
        "CREATE TRIGGER noted AFTER UPDATE OR DELETE ON a FOR EACH ROW EXECUTE FUNCTION noted();"
    }
    if yes(3), !isPartitioned {
      script +=
        "CREATE TRIGGER judged BEFORE UPDATE OR DELETE ON a FOR EACH ROW EXECUTE FUNCTION judged();"
    }
    if yes(3) {
      script += """
        CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN IF OLD.u % 13 = 5 THEN RAISE EXCEPTION 'late'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER UPDATE OR DELETE ON a DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION late();

        """
    }
    let sets = [
      ("n", one("n + 1", "n * 2", "NULL")), ("s", one("upper(s)", "s || 'x'", "repeat(s, 30)")),
      ("x", one("x * 1.1", "x")), ("f", one("f / 7", "-f")), ("d", "d + interval '1 day'"),
      ("u", one("u + 1", "u / 2", "u")), ("r", one("r + 1", "6 - r")), ("g", "1 - g"),
    ].shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
    var set = Dictionary(uniqueKeysWithValues: Array(sets))
    if !isPartitioned { set["g"] = nil }
    if set.isEmpty { set["n"] = "n + 1" }
    var action: [String: Any] = ["type": "update", "set": set]
    if yes(3) { action["unchanged"] = "skip" }
    switch Int.random(in: 0..<6, using: &random) {
    case 0: action = ["type": "delete"]
    case 1: action = ["type": "delete", "archive": ["entity": "kept", "create": true]]
    case 2:
      action = [
        "type": "transform", "columns": ["u", "s"], "writes": ["s"],
        "command": [
          "sh", "-c",
          #"""
          while read -r line; do
            case "$line" in *'"u":3,'*) echo '{"$error":"three"}' ;; *) echo '{"s":"new"}' ;; esac
          done
          """#,
        ],
      ]
    default: break
    }
    var source: [String: Any] = ["entity": "a"]
    if yes() {
      source["where"] = one("n > 1", "u % 3 <> 0", "s IS NOT NULL")
    } else {
      source["everything"] = true
    }
    if isPartitioned { source["key"] = names.split(separator: ", ").map(String.init) }
    // A chunk does not see the others of a rehearsal, so rows that may conflict are in one.
    let size = unique.isEmpty ? one("5", "7", "100") : "100"
    let isUndoable = yes(3) && !isPartitioned
    let more2: [String: Any] = isUndoable ? ["undo": true] : [:]
    job = try SharedJob(rows: 1, script)
    try job.writeJob(
      [
        "source": source, "action": action, "chunk": ["size": Int(size) ?? 100], "workers": 1,
        "skip": ["limit": 1_000],
      ].merging(more2) { $1 }
    )
    told =
      "seed \(seed): \(script) \(try String(decoding: job.directory.read("job.json"), as: UTF8.self))"
    isPair = names.contains(",")
  }

  private let isPair: Bool

  /// The rows of the table by key, each with the texts of its columns.
  func rows() throws -> [String: [String: String]] {
    let session = try job.database.session()
    let names = ["id"] + (isPair ? ["m"] : []) + ["n", "s", "x", "f", "d", "u", "g", "r"]
    let list = names.map { "coalesce(left(\($0)::text, 50), 'NULL')" }.joined(separator: ", ")
    let found = try session.execute("SELECT \(list) FROM a")
    var rows: [String: [String: String]] = [:]
    for row in 0..<found.count {
      let texts = names.indices.map { found.text(row, $0) ?? "" }
      let key = texts.prefix(isPair ? 2 : 1).joined(separator: "|")
      rows[key] = Dictionary(uniqueKeysWithValues: zip(names, texts))
    }
    return rows
  }

  func logged() throws -> Int { Int(try job.database.text("SELECT count(*) FROM log") ?? "") ?? 0 }

  /// A value in SQL as the server writes it, as far as it is shown of both.
  func plain(_ literal: String) -> String {
    var text = literal
    if text.hasPrefix("'") {
      text = String(text.dropFirst()).replacing("''", with: "'")
      if text.hasSuffix("'") { text = String(text.dropLast()) }
    } else if text.hasSuffix(".0") {
      // A real number without a fraction.
      text = String(text.dropLast(2))
    }
    return String(text.prefix(50))
  }
}
#endif
