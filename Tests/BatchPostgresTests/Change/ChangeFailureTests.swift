#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ChangeFailureTests {
  private static let small = """
    CREATE TABLE t (id int PRIMARY KEY, n int CONSTRAINT small CHECK (n < 90), m int NOT NULL DEFAULT 0);
    INSERT INTO t SELECT g, least(g, 89) FROM generate_series(0, 99) AS g
    """

  @Test func `rows that fail alone are found, and the others are done`() async throws {
    let trial = try await ChangeTrial(Self.small)
    try trial.session.run(
      "UPDATE t SET n = 89 WHERE id IN (13, 14)"
    )
    let written = try trial.write(
      trial.update(["n": "n + 1", "m": "m + 1"]),
      onFailure: .skip(upTo: 13)
    )
    #expect(written.failures.map(\.number) == [13, 14, 89] + Array(90...99))
    #expect(written.succeeded == 87)
    let error = try #require(written.failures.first?.error)
    #expect(error.code == .constraint)
    #expect(error.postgres?.constraint == "small")
    #expect(error.message.contains("\"small\""))
    #expect(try trial.session.integer("SELECT sum(m) FROM t") == 87)
    #expect(try trial.session.integer("SELECT max(n) FROM t") == 89)
  }

  @Test
  func `a chunk with more failures than allowed changes nothing and names the failed identifier`()
    async throws
  {
    let trial = try await ChangeTrial(Self.small)
    let change = try trial.update(["n": "n + 85", "m": "1"])
    let error = #expect(throws: BatchError.self) {
      try trial.write(change, onFailure: .skip(upTo: 3))
    }
    #expect(error?.message.contains("identifier 8:") == true)
    #expect(error?.remedy?.contains("skip") == true)
    #expect(try trial.session.integer("SELECT sum(m) FROM t") == 0)
  }

  @Test func `the error of a failed chunk names the identifier, the column and its values`()
    async throws
  {
    let trial = try await ChangeTrial(Self.small)
    let check = #expect(throws: BatchError.self) { try trial.write(trial.update(["n": "n + 20"])) }
    #expect(check?.message.contains("identifier 70:") == true)
    let null = #expect(throws: BatchError.self) {
      try trial.write(trial.update(["m": "nullif(n, 41)"]))
    }
    #expect(null?.message.contains("identifier 41:") == true)
    #expect(null?.postgres?.column == "m")
    let division = #expect(throws: BatchError.self) {
      try trial.write(trial.update(["m": "1 / (n - 77)"]))
    }
    #expect(division?.code == .invalidValue)
    #expect(division?.message.contains("identifier 77:") == true)
    #expect(try trial.session.integer("SELECT sum(m) FROM t") == 0)
  }

  @Test func `a violated deferred constraint fails only its own row`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2);
      CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
      INSERT INTO t SELECT g, 1 FROM generate_series(0, 19) AS g
      """
    )
    let change = try trial.update(["p": "CASE id WHEN 6 THEN 3 ELSE 2 END"])
    let written = try trial.write(change, onFailure: .skip(upTo: 1))
    #expect(written.failures.map(\.number) == [6])
    #expect(written.failures[0].error.message.contains("Key (p)=(3) is not present"))
    #expect(try trial.texts("count(*) FILTER (WHERE p = 2)") == ["19"])
  }

  @Test func `a delete fails the rows that others refer to and those that a trigger refuses`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(0, 19);
      CREATE TABLE child (t int REFERENCES t); INSERT INTO child VALUES (4);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF OLD.id = 9 THEN RAISE 'not nine'; END IF; RETURN OLD; END $$;
      CREATE TRIGGER refuse BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION refuse()
      """
    )
    let written = try trial.write(trial.delete(), onFailure: .skip(upTo: 5))
    #expect(written.failures.map(\.number) == [4, 9])
    #expect(written.failures[1].error.message.contains("not nine"))
    #expect(try trial.texts("id") == ["4", "9"])
  }

  @Test(arguments: [WritingMethod.listing, .halving])
  func `a chunk whose statement times out is written in halves`(method: WritingMethod) async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0); INSERT INTO t SELECT generate_series(0, 15);
      \(ChangeTrial.slowTrigger)
      """
    )
    let change = try trial.update(["n": "n + 1"])
    let keys = try trial.keys()
    let written = try trial.session.transaction(
      TransactionOptions(statementTimeout: .milliseconds(200))
    ) { () throws(BatchError) in
      try change.write(to: keys, method, onFailure: .failChunk, in: trial.session)
    }
    #expect(written.succeeded == 16)
    #expect(try trial.texts("sum(n)") == ["16"])
    let one = try trial.write(change, by: .halving, at: 3..<4)
    #expect(one.succeeded == 1)
  }

  @Test func `an error that does not concern a single row is reported unchanged`() async throws {
    let trial = try await ChangeTrial(Self.small)
    let change = try trial.update(["m": "1"])
    try trial.session.run("ALTER TABLE t RENAME COLUMN m TO was_m")
    let column = #expect(throws: BatchError.self) {
      try trial.write(change, onFailure: .skip(upTo: 100))
    }
    #expect(column?.code == .unknownAttribute)
    try trial.session.run(
      "ALTER TABLE t RENAME COLUMN was_m TO m; ALTER TABLE t ALTER id TYPE text"
    )
    let type = #expect(throws: BatchError.self) {
      try trial.write(change, onFailure: .skip(upTo: 100))
    }
    #expect(type?.code == .invalidSQL)
    try trial.session.run("DROP TABLE t")
    let table = #expect(throws: BatchError.self) {
      try trial.write(change, onFailure: .skip(upTo: 100))
    }
    #expect(table?.code == .unknownEntity)
  }

  // MARK: Before the first chunk

  @Test func `a role that may not write gets an error with the necessary grant`() async throws {
    let role = "reader_\(UInt32.random(in: 0 ... .max))"
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int, m int);
      CREATE TABLE kept (id int, n int, m int);
      CREATE ROLE \(role) LOGIN; GRANT SELECT, UPDATE (n) ON t TO \(role); GRANT SELECT ON kept TO \(role)
      """,
      role: role
    )
    defer { try? trial.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    #expect(try trial.update(["n": "1"]).check(in: trial.session) == [])
    func refusal(_ change: PostgresChange) throws -> BatchError {
      try #require(throws: BatchError.self) { try change.check(in: trial.session) }
    }
    let update = try refusal(trial.update(["m": "1"]))
    #expect(update.code == .accessDenied)
    #expect(update.message.contains("set \"m\""))
    #expect(try refusal(trial.delete()).remedy == "have it granted DELETE")
    try trial.database.run("GRANT DELETE ON t TO \(role)")
    let archive = try await ChangeTrial.again(trial, role: role)
    let insert = #expect(throws: BatchError.self) {
      try archive.delete(archive: "kept").check(in: archive.session)
    }
    #expect(insert?.message.contains("insert into \"kept\"") == true)
    try trial.database.run("ALTER ROLE \(role) SET default_transaction_read_only = on")
    let reader = try trial.database.session(role: role)
    let readOnly = #expect(throws: BatchError.self) {
      try trial.update(["n": "1"]).check(in: reader)
    }
    #expect(readOnly?.code == .readOnly)
  }

  @Test func `row-level security fails the rows that its policies forbid, and a note says so`()
    async throws
  {
    let role = "tenant_\(UInt32.random(in: 0 ... .max))"
    let trial = try await ChangeTrial(
      """
      CREATE ROLE \(role) LOGIN;
      CREATE TABLE t (id int PRIMARY KEY, tenant text, n int DEFAULT 0);
      INSERT INTO t SELECT g, CASE WHEN g < 10 THEN '\(role)' ELSE 'other' END FROM generate_series(0, 19) AS g;
      ALTER TABLE t ENABLE ROW LEVEL SECURITY;
      CREATE POLICY own ON t USING (tenant = current_user) WITH CHECK (n < 5);
      GRANT SELECT, UPDATE ON t TO \(role)
      """,
      role: role
    )
    defer { try? trial.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    #expect(trial.list.count == 10)
    let change = try trial.update(["n": "CASE WHEN id = 3 THEN 7 ELSE 1 END"])
    let notes = try change.check(in: trial.session)
    #expect(notes.count == 1)
    #expect(notes.first?.contains("row security") == true)
    let written = try trial.write(change, onFailure: .skip(upTo: 1))
    #expect(written.failures.map(\.number) == [3])
    #expect(written.failures[0].error.message.contains("row-level security"))
    #expect(try trial.database.text("SELECT sum(n) FROM t") == "9")
  }

  @Test(arguments: [false, true])
  func `a row that a policy lets the role read but not write fails`(deletes: Bool) async throws {
    let role = "reader_\(UInt32.random(in: 0 ... .max))"
    let trial = try await ChangeTrial(
      """
      CREATE ROLE \(role) LOGIN;
      CREATE TABLE t (id int PRIMARY KEY, own bool, n int DEFAULT 0);
      INSERT INTO t SELECT g, g % 3 = 0 FROM generate_series(0, 19) AS g;
      ALTER TABLE t ENABLE ROW LEVEL SECURITY;
      CREATE POLICY see ON t FOR SELECT USING (true);
      GRANT SELECT, UPDATE, DELETE ON t TO \(role)
      """,
      role: role
    )
    defer { try? trial.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    let change = try deletes ? trial.delete() : trial.update(["n": "n + 1"])
    let none = #expect(throws: BatchError.self) { try change.check(in: trial.session) }
    #expect(none?.code == .accessDenied)
    #expect(
      none?.message.contains("no policy lets the role \(deletes ? "delete" : "update") rows")
        == true
    )
    try trial.database.run(
      "CREATE POLICY change ON t FOR \(deletes ? "DELETE" : "UPDATE") TO \(role) USING (own)"
    )
    _ = try change.check(in: trial.session)
    let refusal = #expect(throws: BatchError.self) { try trial.write(change) }
    #expect(refusal?.code == .accessDenied)
    let written = try trial.write(change, onFailure: .skip(upTo: 20))
    #expect(written.failures.map(\.number) == (0..<20).filter { $0 % 3 != 0 })
    #expect(written.succeeded == 7)
    #expect(written.passedOver.counts.total == 0)
    let changed = deletes ? "20 - count(*)" : "sum(n)"
    #expect(try trial.database.text("SELECT \(changed) FROM t") == "7")
  }

  @Test func `a row that begins to match during a chunk is changed, and no trigger is blamed`()
    async throws
  {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, m int NOT NULL DEFAULT 1);
      INSERT INTO t VALUES (3);
      CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER pass BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION pass();
      -- The statement that fires it does not see the row as it leaves it, but the next one does.
      CREATE FUNCTION match() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF pg_trigger_depth() = 1 THEN UPDATE t SET m = 1 WHERE m = 0; END IF; RETURN NULL; END $$;
      CREATE TRIGGER match BEFORE UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION match();
      """
    )
    try trial.session.run(
      "BEGIN; SET LOCAL session_replication_role = replica; UPDATE t SET m = 0 WHERE id = 3; COMMIT"
    )
    let written = try trial.write(trial.update(["n": "n + 1"], if: "m = 1"), by: .listing)
    #expect(written.outcomes.succeeded == 1, "\(written)")
    #expect(try trial.texts("n") == ["1"])
  }

  @Test func `a role without rights to an expression's columns is refused before the first chunk`()
    async throws
  {
    let role = "writer_\(UInt32.random(in: 0 ... .max))"
    let trial = try await ChangeTrial(
      """
      CREATE ROLE \(role) LOGIN;
      CREATE TABLE t (id int PRIMARY KEY, secret text, n int);
      GRANT SELECT (id, n), UPDATE ON t TO \(role)
      """,
      role: role
    )
    defer { try? trial.database.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    _ = try trial.update(["n": "n + 1"]).check(in: trial.session)
    let change = try trial.update(["n": "length(secret)"])
    let refusal = #expect(throws: BatchError.self) { try change.check(in: trial.session) }
    #expect(refusal?.code == .accessDenied)
  }

  @Test func `an archive that could miss rows or change values is refused`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, price numeric(12,4), at timestamptz(3), f float8, c varchar(9));
      CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree ON DELETE CASCADE);
      CREATE TABLE nulls (id int PRIMARY KEY, parent int REFERENCES nulls ON DELETE SET NULL);
      CREATE TABLE a (id int PRIMARY KEY, b int);
      CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE);
      ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b ON DELETE CASCADE;
      CREATE TABLE chain (id int PRIMARY KEY, parent int REFERENCES chain ON DELETE RESTRICT);
      CREATE TABLE heir () INHERITS (t);
      CREATE TABLE wide (id bigint, price numeric, at timestamptz, f float8, c text);
      CREATE TABLE same (LIKE t);
      CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
      CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)
      """
    )
    for name in ["tree", "nulls", "a", "chain"] {
      let other = try await ChangeTrial.again(trial, name)
      try trial.database.run("CREATE TABLE \(name)_old (LIKE \(name))")
      if name == "chain" {
        _ = try other.delete(archive: "\(name)_old").check(in: other.session)
        continue
      }
      let refusal = #expect(throws: BatchError.self) {
        try other.delete(archive: "\(name)_old").check(in: other.session)
      }
      #expect(refusal?.message.contains("others of it or of the archive") == true, "\(name)")
      _ = try other.delete().check(in: other.session)
      #expect(throws: BatchError.self) {
        try NewArchive(ifMissing: "new", for: other.table, in: other.session)
      }
    }
    try trial.database.run(
      "CREATE TABLE kept (id int REFERENCES chain ON DELETE CASCADE, parent int)"
    )
    let chain = try await ChangeTrial.again(trial, "chain")
    let kept = #expect(throws: BatchError.self) {
      try chain.delete(archive: "kept").check(in: chain.session)
    }
    #expect(kept?.message.contains("others of it or of the archive") == true)
    for (table, archive) in [("t", "heir"), ("p", "p1"), ("p1", "p")] {
      let other = try await ChangeTrial.again(trial, table)
      let refusal = #expect(throws: BatchError.self) {
        try other.delete(archive: archive).check(in: other.session)
      }
      #expect(refusal?.message.contains("one is a part of the other") == true)
    }
    try trial.database.run("ALTER TABLE heir ADD COLUMN extra text")
    let parent = try await ChangeTrial.again(trial, "t")
    let missed = #expect(throws: BatchError.self) {
      try parent.delete(archive: "wide").check(in: parent.session)
    }
    #expect(missed?.message.contains("\"extra\"") == true)
    try trial.database.run("DROP TABLE heir")
    for name in ["wide", "same"] { _ = try trial.delete(archive: name).check(in: trial.session) }
    let types = [
      ("price", "integer"), ("price", "numeric(12,2)"), ("at", "date"), ("at", "timestamp"),
      ("f", "real"), ("c", "\"char\""), ("id", "smallint"),
    ]
    for (index, (column, type)) in types.enumerated() {
      try trial.database.run(
        """
        CREATE TABLE lossy\(index) (LIKE t);
        ALTER TABLE lossy\(index) DROP COLUMN \(column), ADD COLUMN \(column) \(type)
        """
      )
      let refusal = #expect(throws: BatchError.self) { try trial.delete(archive: "lossy\(index)") }
      #expect(refusal?.message.contains("could change values") == true, "\(column) \(type)")
    }
  }

  @Test func `a view or partition of a foreign table is refused`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE EXTENSION postgres_fdw;
      CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw;
      CREATE TABLE t (id int PRIMARY KEY, n int);
      CREATE TABLE p (id int NOT NULL, n int) PARTITION BY RANGE (id);
      CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
      CREATE FOREIGN TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) SERVER other;
      CREATE TABLE parent (id int, n int);
      CREATE FOREIGN TABLE child () INHERITS (parent) SERVER other;
      CREATE VIEW v AS SELECT * FROM p2;
      CREATE VIEW w AS SELECT * FROM v
      """
    )
    for name in ["p", "parent", "v", "w"] {
      let table = try trial.session.transaction { () throws(BatchError) in
        try PostgresTable(named: name, in: trial.session)
      }
      let refusal = #expect(throws: BatchError.self, "\(name)") {
        try table.requireOwnTransaction(in: trial.session)
      }
      #expect(refusal?.message.contains("on another server") == true)
    }
    try trial.table.requireOwnTransaction(in: trial.session)
  }

  @Test func `a table with a rule or a view that cannot be updated is refused`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int);
      CREATE RULE watch AS ON UPDATE TO t DO ALSO NOTIFY changed;
      """
    )
    let rule = #expect(throws: BatchError.self) {
      try trial.update(["n": "1"]).check(in: trial.session)
    }
    #expect(rule?.code == .invalidSQL)
    #expect(rule?.message.contains("\"watch\"") == true)
    let view = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0); INSERT INTO t VALUES (1), (2);
      CREATE VIEW v AS SELECT * FROM t WHERE id < 2;
      CREATE VIEW sums AS SELECT id, sum(n) AS n FROM t GROUP BY id;
      CREATE MATERIALIZED VIEW m AS SELECT * FROM t
      """,
      "v",
      key: ["id"]
    )
    #expect(try view.update(["n": "1"]).check(in: view.session) == [])
    #expect(try view.write(view.update(["n": "1"])).succeeded == 1)
    for (name, part) in [("m", "materialized"), ("sums", "cannot update view")] {
      let trial = try await ChangeTrial.again(view, name, key: ["id"])
      let error = #expect(throws: BatchError.self) {
        let assignment = try PostgresChange.Assignment(
          of: CheckedExpression(expression: PostgresExpression("1"), pieces: [.text("1")]),
          to: "n",
          in: trial.table,
          key: trial.key
        )
        return try PostgresChange(
          of: trial.table,
          key: trial.key,
          .update([assignment]),
          path: trial.path
        ).check(in: trial.session)
      }
      #expect(error?.message.contains(part) == true, "\(error?.description ?? "")")
    }
  }
}
#endif
