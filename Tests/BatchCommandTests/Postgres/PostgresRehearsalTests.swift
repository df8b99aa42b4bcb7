#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// `batch rehearse` on PostgreSQL: chunks as in a run, each rolled back.
@Suite(.timeLimit(.minutes(10))) struct PostgresRehearsalTests {
  /// Rehearses, which leaves everything in the database as it is.
  @discardableResult
  private func rehearse(
    _ job: SharedJob,
    _ arguments: String...,
    status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> (result: BatchProgram.Result, json: [String: Any]) {
    let before = try job.database.fingerprint()
    let files = try job.directory.names()
    let result = try BatchProgram(
      ["rehearse", "job.json", "--json"] + arguments,
      in: job.directory
    )
    .wait()
    let said: Comment = "\(result.output) \(result.errors)"
    #expect(result.status == status, said, sourceLocation: location)
    #expect(try job.database.fingerprint() == before, sourceLocation: location)
    #expect(try job.directory.names() == files, sourceLocation: location)
    let json = result.output.isEmpty ? [:] : try JSONOutput.object(result.output)
    return (result, json)
  }

  private func failures(_ json: [String: Any]) -> [String] {
    (json["failures"] as? [[String: Any]] ?? []).map {
      "\($0["count"] ?? 0) \($0["message"] ?? "") \($0["firstKey"] ?? "")"
    }
  }

  private func tables(_ json: [String: Any]) -> [String] {
    (json["tables"] as? [[String: Any]] ?? []).map {
      "\($0["table"] ?? "") \($0["changed"] ?? "") \($0["added"] ?? "") \($0["removed"] ?? "")"
    }
  }

  private func notes(_ json: [String: Any]) -> [String] { json["notes"] as? [String] ?? [] }

  private func update(_ set: [String: String]) -> [String: Any] {
    ["action": ["type": "update", "set": set]]
  }

  @Test func `a rehearsal shows changed rows, and the rows that triggers add and copies keep`()
    throws
  {
    let job = try SharedJob(
      rows: 250,
      """
      CREATE TABLE log (id serial, what text);
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log (what) VALUES (TG_OP); RETURN NULL; END $$;
      CREATE TRIGGER noted AFTER UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
      """
    )
    let result = try job.batch("rehearse", "job.json", "--samples", "1")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("job: 250 identifiers to rehearse"))
    let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines[0].hasPrefix("job: rehearsed: completed, 250 of 250 done in "))
    #expect(result.output.contains("\n  sample:    all 250 rows of the list\n"))
    #expect(result.output.contains(/\n  chunk: +[\d.]+ ms on average, without its COMMIT\n/))
    #expect(result.output.contains(/\n  WAL: +[\d.]+ .*, of the whole server\n/))
    #expect(result.output.contains(/\n  a run: +about [\d.]+ s, [\d.]+ .*B of WAL, extrapolated\n/))
    #expect(
      result.output.contains(
        /\ntriggers and constraints, for 100 rows:\n  noted on t: 100 calls, [\d.]+ ms\n/
      )
    )
    #expect(
      result.output.hasSuffix(
        """
        changed:
          t: 250 rows changed
            n: 250 rows
              id = 1: 0 → 1
          log: 250 rows added

        """
      )
    )
    try job.writeJob([
      "action": ["type": "delete", "archive": ["entity": "kept", "create": true]], "undo": true,
    ])
    let (_, json) = try rehearse(job, "--samples", "2")
    #expect(tables(json) == ["t 0 0 250", "kept 0 250 0", "log 0 250 0"])
    let rows = (json["tables"] as? [[String: Any]])?[0]["removedRows"] as? [[String: Any]]
    #expect(rows?.count == 2)
    #expect("\(rows?[0]["values"] ?? "")".contains("0"))
    #expect(json["folder"] is NSNull && json["bytesBefore"] is NSNull)
    // Sequences are not rolled back.
    #expect(try job.database.text("SELECT last_value > 250 FROM log_id_seq") == "t")
  }

  @Test func `a sample comes from all parts of the list, and says what it stands for`() throws {
    let job = try SharedJob(rows: 5_000)
    let (_, json) = try rehearse(job, "--rows", "2000", "--samples", "100")
    let sample = try #require(json["sample"] as? [String: Any])
    #expect(sample["selected"] as? Int == 5_000)
    #expect(sample["places"] as? Int == 10)
    let run = try #require(json["run"] as? [String: Any])
    #expect(run["total"] as? Int == 2_000)
    #expect(run["chunks"] as? Int == 20)
    #expect(json["comparedRows"] as? Int == 2_000)
    let bytes = try #require(sample["walBytes"] as? Int)
    #expect(bytes > 2_000 * 20)
    #expect(sample["estimatedWALBytes"] as? Int == Int(Double(bytes) / 2_000 * 5_000))
    #expect(sample["estimatedSeconds"] as? Double ?? 0 > 0)
    #expect(sample["secondsPerChunk"] as? Double ?? 0 > 0)
    // Few rows say nothing of the time that many take.
    let (_, few) = try rehearse(job, "--rows", "11", "--samples", "11")
    #expect((few["sample"] as? [String: Any])?["estimatedSeconds"] == nil)
    let columns = (few["tables"] as? [[String: Any]])?[0]["columns"] as? [[String: Any]]
    let keys = (columns?[0]["samples"] as? [[String: Any]] ?? []).compactMap { row in
      ((row["key"] as? [[String: Any]])?[0]["value"] as? String).flatMap { Int($0) }
    }
    #expect(keys.count == 11 && keys.first == 1 && keys.last == 5_000, "\(keys)")
    #expect(zip(keys, keys.dropFirst()).allSatisfy { $1 - $0 < 600 }, "\(keys)")
    #expect(try rehearse(job, "--rows", "0", status: 64).json.isEmpty)
  }

  @Test func `deferred constraints and triggers act on rehearsed rows before they are rolled back`()
    throws
  {
    let job = try SharedJob(
      rows: 30,
      """
      CREATE TABLE parents (id int PRIMARY KEY);
      INSERT INTO parents VALUES (1);
      ALTER TABLE t ADD p int REFERENCES parents DEFERRABLE INITIALLY DEFERRED;
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.id = 20 THEN RAISE EXCEPTION 'too late'; END IF; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER refused AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse();
      """
    )
    try job.writeJob(
      update(["p": "CASE WHEN id IN (7, 8) THEN 9 ELSE 1 END"]).merging(["skip": ["limit": 9]]) {
        $1
      }
    )
    let (_, json) = try rehearse(job, status: 4)
    #expect(
      failures(json) == [
        "2 insert or update on table \"t\" violates foreign key constraint \"t_p_fkey\": Key (p)=(9) is not"
          + " present in table \"parents\". 7",
        "1 too late 20",
      ]
    )
    #expect(tables(json) == ["t 27 0 0"])
    try job.writeJob(update(["p": "9"]))
    let failed = try rehearse(job, status: 1)
    #expect(failed.result.errors.contains("violates foreign key constraint"))
    #expect((failed.json["run"] as? [String: Any])?["state"] as? String == "failed")
    #expect(!failed.result.errors.contains("resum"))
  }

  @Test func `a rehearsed program fails for some rows, and knows that it is rehearsed`() throws {
    let job = try SharedJob(rows: 40, "ALTER TABLE t ADD label text")
    try job.directory.write(
      """
      while read -r line; do
        case "$line" in
          *'"id":7}'*) echo '{"$error":"seven"}' ;;
          *) echo "{\\"label\\":\\"$BATCH_REHEARSAL\\"}" ;;
        esac
      done
      """,
      to: "program.sh"
    )
    let program = job.directory.file("program.sh")
    try job.writeJob([
      "action": [
        "type": "transform", "columns": ["id"], "writes": ["label"], "command": ["sh", program],
      ], "skip": ["limit": 1],
    ])
    let (_, json) = try rehearse(job, status: 4)
    #expect(failures(json) == ["1 the command says: seven 7"])
    #expect(tables(json) == ["t 39 0 0"])
    let columns = (json["tables"] as? [[String: Any]])?[0]["columns"] as? [[String: Any]]
    let sample = (columns?[0]["samples"] as? [[String: Any]])?[0]
    #expect(sample?["before"] as? String == "NULL" && sample?["after"] as? String == "'1'")
  }

  @Test func `rows that move to other partitions are compared by their keys`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE TABLE p (id int, part int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
      CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0);
      CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
      INSERT INTO p SELECT i, i % 2 FROM generate_series(1, 20) i;
      """
    )
    try job.writeJob(
      update(["part": "1"]).merging([
        "source": ["entity": "p", "everything": true, "key": ["id"]]
      ]) { $1 }
    )
    let (_, json) = try rehearse(job)
    #expect(tables(json) == ["p 10 0 0"])
    #expect((json["run"] as? [String: Any])?["done"] as? Int == 20)
  }

  @Test func `limits of time hold for rehearsed statements and locks as for those of a run`() throws
  {
    let job = try SharedJob(
      rows: 8,
      """
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.id = 5 THEN PERFORM pg_sleep(9); END IF; RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION slow();
      CREATE ROLE hasty LOGIN; GRANT ALL ON t TO hasty; GRANT CREATE ON SCHEMA public TO hasty;
      ALTER ROLE hasty SET statement_timeout = '1s'
      """
    )
    defer { try? job.database.run("DROP OWNED BY hasty; DROP ROLE hasty") }
    let hasty = ["url": job.url(role: "hasty")]
    try job.writeJob(["database": hasty, "skip": ["limit": 1]])
    let timedOut = try rehearse(job, status: 1).result.errors
    #expect(timedOut.contains("canceling statement due to statement timeout"), "\(timedOut)")
    let run = try job.batch("run", "job.json")
    #expect(run.status == 1)
    #expect(run.errors.contains("canceling statement due to statement timeout"))

    let other = try job.database.session()
    try other.run("BEGIN; UPDATE t SET n = 9 WHERE id = 3")
    try job.writeJob([
      "database": ["url": job.url(), "busyTimeout": "100ms"], "retry": ["limit": 1],
    ])
    let locked = try job.batch("rehearse", "job.json", "--json")
    #expect(locked.status == 1, "\(locked.errors)")
    #expect(locked.errors.contains("lock timeout (tried 2 times)"), "\(locked.errors)")
    try other.run("ROLLBACK")
  }

  @Test func `a killed rehearsal leaves nothing, and a stopped one says so`() throws {
    let job = try SharedJob(
      rows: 400,
      """
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION slow();
      """,
      adding: ["undo": true]
    )
    let before = try job.database.fingerprint()
    let files = try job.directory.names()
    let others = """
      SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^batch' AND datname = current_database()
      """
    // The server waits: a task of this process may not run while other tests block its threads.
    let working = "EXISTS (\(others) AND state = 'active' AND query ~ '^(WITH|UPDATE)')"
    let gone = "NOT EXISTS (\(others))"
    let killed = try BatchProgram(["rehearse", "job.json"], in: job.directory)
    try job.wait(until: working)
    killed.send(SIGKILL)
    #expect(killed.wait().status == -SIGKILL)
    try job.wait(until: gone)
    #expect(try job.database.fingerprint() == before)
    #expect(try job.directory.names() == files)

    let stopped = try BatchProgram(["rehearse", "job.json"], in: job.directory)
    try job.wait(until: working)
    stopped.send(SIGINT)
    let end = stopped.wait()
    #expect(end.status == 3, "\(end.errors)")
    #expect(end.errors.contains("the rehearsal was stopped; the database is as it was"))
    try job.wait(until: gone)
    #expect(try job.database.fingerprint() == before)
  }

  @Test func `a role that may not create tables rehearses, and learns that a run would be refused`()
    throws
  {
    let job = try SharedJob(
      rows: 10,
      """
      CREATE ROLE plain LOGIN; GRANT SELECT, UPDATE ON t TO plain;
      REVOKE CREATE ON SCHEMA public FROM PUBLIC
      """
    )
    defer { try? job.database.run("DROP OWNED BY plain; DROP ROLE plain") }
    try job.writeJob(["database": ["url": job.url(role: "plain")]])
    let (_, json) = try rehearse(job)
    #expect(tables(json) == ["t 10 0 0"])
    let refused = try #require(notes(json).first)
    #expect(refused.hasPrefix("batch run would be refused: the role may not create the tables"))
    let run = try job.batch("run", "job.json")
    #expect(run.status == 2)
    #expect(run.errors.contains("the role may not create the tables"))
    try job.writeJob(["database": ["url": job.url(role: "plain")], "undo": true])
    let undoable = try rehearse(job, status: 1)
    #expect(undoable.result.errors.contains("permission denied for schema public"))
  }

  @Test func `another database is rehearsed on by its URL`() throws {
    let job = try SharedJob(rows: 10)
    let copy = try SharedJob(rows: 3)
    let before = try copy.database.fingerprint()
    let (_, json) = try rehearse(job, "--on", copy.url())
    #expect(tables(json) == ["t 3 0 0"])
    #expect((json["database"] as? String)?.hasSuffix(copy.database.name) == true)
    #expect(try copy.database.fingerprint() == before)
    let password = try rehearse(job, "--on", "postgres://a:b@h/d", status: 2)
    #expect(password.result.errors.contains("--on: the URL contains a password"))
    let keep = try rehearse(job, "--keep", status: 2)
    #expect(keep.result.errors.contains("leaves nothing to keep"))
  }

  @Test func `a rehearsed export to a folder is in the folder of the rehearsal`() throws {
    let job = try SharedJob(rows: 300)
    let action: [String: Any] = ["type": "export", "folder": "parts", "format": "csv"]
    try job.writeJob(["action": action])
    let (_, json) = try rehearse(job)
    #expect(json["isKept"] as? Bool == false)
    #expect(tables(json).isEmpty && json["comparedTables"] as? Int == 0)
    let result = try job.batch("rehearse", "job.json", "--keep", "--rows", "20")
    #expect(result.status == 0, "\(result.errors)")
    let folder = try #require(
      try job.directory.names().first { $0.hasPrefix("job.rehearsal.") }
    )
    #expect(result.errors.contains("exporting into \(job.directory.file(folder))\n"))
    #expect(result.output.contains("  folder:    \(job.directory.file(folder))\n"))
    #expect(result.output.contains(": 1 file, "), "\(result.output)")
    let files = try job.directory.files(in: "\(folder)/output/parts")
    let part = try #require(files.first { $0.hasPrefix("part-") })
    #expect(files.count == 2 && files.contains("manifest.json"))
    let bytes = try job.directory.read("\(folder)/output/parts/\(part)")
    #expect(bytes.count(where: { $0 == 10 }) == 21)
  }

  @Test func `a rehearsal is refused beside a live run, and tells of an unfinished one`() throws {
    let job = try SharedJob(rows: 2_000, adding: SharedJob.slowly)
    let running = try job.start()
    try job.untilDone(100)
    let refused = try job.batch("rehearse", "job.json")
    #expect(refused.status == 5, "\(refused.errors)")
    #expect(refused.errors.contains("is alive"))
    running.send(SIGTERM)
    #expect(running.wait().status == 3)
    let (_, json) = try rehearse(job)
    #expect(notes(json).contains { $0.hasPrefix("this was a new selection, but the job has an") })
  }
}

extension TestPostgres {
  /// The rows of all tables with their places and versions, all objects, and the validity of the
  /// indexes.
  func fingerprint() throws -> [String] {
    let session = try session()
    let objects = try session.execute(
      """
      SELECT c.oid || ' ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(i.indisvalid::text, '')
      FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1
      """
    )
    var lines = (0..<objects.count).compactMap { objects.text($0, 0) }
    let tables = try session.execute(
      "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
    )
    for table in (0..<tables.count).compactMap({ tables.text($0, 0) }) {
      let rows = try session.text(
        "SELECT md5(string_agg(r.ctid || r.xmin::text || r::text, ',' ORDER BY r.ctid)) FROM \(table) AS r"
      )
      lines.append("\(table) \(rows ?? "")")
    }
    return lines
  }
}
#endif
