#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite(.timeLimit(.minutes(5))) struct ServerAdviceTests {
  private let session: PostgresSession
  private let database: TestPostgres

  init() throws {
    database = try TestPostgres(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int, m int, label text);
      INSERT INTO t SELECT g, g, g, 'label ' || g FROM generate_series(1, 20000) AS g; ANALYZE t
      """
    )
    session = try database.session()
  }

  private func lines(
    _ name: String = "t",
    setting columns: [String]?,
    rows: Int = 20_000
  ) throws -> [String] {
    let session = session
    return try session.transaction(TransactionOptions(isReadOnly: true)) {
      () throws(BatchError) in
      let table = try PostgresTable(named: name, in: session)
      return try ServerAdvice(on: table, setting: columns, count: rows, in: session).lines
    }
  }

  /// How many of the rows that an update changes stay on their page without new entries in indexes.
  private func hotUpdates(_ set: String) throws -> Int64 {
    // A session also counts what it has done shortly before.
    let session = try database.session()
    try session.begin(TransactionOptions())
    defer { session.rollBack() }
    try session.execute("UPDATE t SET \(set)")
    return try session.execute(
      "SELECT n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 't'"
    ).integer(0, 0) ?? -1
  }

  // MARK: Indexes

  @Test(arguments: [
    "CREATE INDEX one ON t (n)", "CREATE INDEX one ON t (m, n)",
    "CREATE INDEX one ON t (m) INCLUDE (n)",
    "CREATE INDEX one ON t ((n % 10))", "CREATE INDEX one ON t (m) WHERE n > 0",
    "ALTER TABLE t ADD CONSTRAINT one UNIQUE (n) DEFERRABLE",
    "ALTER TABLE t ADD twice int GENERATED ALWAYS AS (2 * n) STORED; CREATE INDEX one ON t (twice)",
  ])
  func `the advice names each index that contains a changed column`(
    index: String
  ) throws {
    // Room for all rows, so that only the index decides.
    try session.run("ALTER TABLE t SET (fillfactor = 50)")
    try session.run("VACUUM FULL t")
    #expect(try lines(setting: ["n"]) == [])
    #expect(try hotUpdates("n = n + 1") == 20_000)
    try session.run("\(index); ANALYZE t")
    #expect(try hotUpdates("n = n + 1") == 0)
    let found = try lines(setting: ["n"])
    let column = index.contains("twice") ? "twice" : "n"
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("the index one has \(column), which") == true, "\(found)")
    // Other columns, and deletions, have nothing to do with it. What was rolled back still takes room.
    try session.run("VACUUM FULL t")
    #expect(try hotUpdates("label = 'x'") == 20_000)
    #expect(try lines(setting: ["label"]) == [])
    #expect(try lines(setting: nil) == [])
  }

  @Test
  func `the advice has a line for each index that contains a changed column, and none about room`()
    throws
  {
    try session.run("CREATE INDEX one ON t (n); CREATE INDEX two ON t (label, n)")
    let found = try lines(setting: ["n", "label"])
    #expect(found.count == 2)
    #expect(found.first?.hasPrefix("the index one has n, which") == true)
    #expect(found.last?.hasPrefix("the index two has label, n, which") == true)
  }

  // MARK: Room in pages

  @Test func `the advised fillfactor makes room for every row on a full page`() throws {
    #expect(try hotUpdates("n = n + 1") < 200)
    let line = try #require(try lines(setting: ["n"]).first)
    let advised = "ALTER TABLE t SET (fillfactor = 50)"
    #expect(line.contains(advised) && line.contains("fillfactor 100"))
    #expect(!line.contains("trigger"))
    // Existing rows are where they were.
    try session.run(advised)
    #expect(try hotUpdates("n = n + 1") < 200)
    try session.run("VACUUM FULL t")
    #expect(try hotUpdates("n = n + 1") == 20_000)
    #expect(try lines(setting: ["n"]) == [])
  }

  @Test func `the advised fillfactor depends on the share of rows that the run changes`() throws {
    func factor(_ rows: Int) throws -> Substring? {
      try lines(setting: ["n"], rows: rows).first?.firstMatch(of: /fillfactor = ([0-9]+)/)?.1
    }
    #expect(try factor(20_000) == "50")
    #expect(try factor(10_000) == "66")
    #expect(try factor(9_999) == nil)
    try session.run(
      "INSERT INTO t SELECT g FROM generate_series(20001, 200000) AS g; ANALYZE t"
    )
    #expect(try factor(20_000) == "90")
  }

  @Test func `a deletion or a table without an index needs no free room on its pages`() throws {
    #expect(try lines(setting: nil) == [])
    try session.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    #expect(try lines(setting: ["n"]) == [])
  }

  @Test func `the advice mentions a trigger that may change an indexed column`() throws {
    try session.run(
      """
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.m := 0; RETURN NEW; END $$;
      CREATE TRIGGER note BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note()
      """
    )
    let words = "unless a trigger changes an indexed column"
    #expect(try lines(setting: ["n"]).first?.contains(words) == true)
  }

  @Test func `the partitions of a table share one line of advice`() throws {
    try session.run(
      """
      CREATE TABLE p (id int, n int, m int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
      CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10000) WITH (fillfactor = 40);
      CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10000) TO (15000);
      CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (15000) TO (20000);
      INSERT INTO p SELECT g, g FROM generate_series(1, 19999) AS g; CREATE INDEX by_m ON p (m); ANALYZE p
      """
    )
    let room = try lines("p", setting: ["n"])
    #expect(room.count == 1)
    #expect(room.first?.hasPrefix("pages of p2 and 1 more are") == true, "\(room)")
    let found = try lines("p", setting: ["m"])
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("the index by_m has m, which") == true, "\(found)")
  }

  @Test func `a view gets no advice`() throws {
    try session.run("CREATE VIEW v AS SELECT * FROM t; CREATE INDEX one ON t (n)")
    #expect(try lines("v", setting: ["n"]) == [])
  }

  // MARK: Vacuum

  @Test func `the advice mentions dead rows that autovacuum will not remove, even for a deletion`()
    throws
  {
    try session.run("ALTER TABLE t SET (fillfactor = 50, autovacuum_enabled = off)")
    let line = "autovacuum is off for t: the dead rows that the run leaves stay until"
    for columns in [["n"], nil] {
      let found = try lines(setting: columns)
      #expect(found.count == 1)
      #expect(found.first?.hasPrefix(line) == true, "\(found)")
    }
    // So few that a server that vacuums leaves them as well.
    try session.run("ALTER TABLE t SET (autovacuum_vacuum_scale_factor = 0.6)")
    #expect(try lines(setting: nil, rows: 12_000) == [])
    #expect(try lines(setting: nil, rows: 12_100).count == 1)
  }

  @Test func `the advice mentions long vacuum pauses, and the advised setting removes them`() throws
  {
    // The greatest pause, of which a page that it changes needs two.
    try session.run(
      "ALTER TABLE t SET (fillfactor = 50, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 10)"
    )
    for columns in [["n"], nil] {
      let found = try lines(setting: columns)
      #expect(found.count == 1)
      #expect(found.first?.hasPrefix("dead rows of t pile up") == true, "\(found)")
      #expect(found.first?.contains("100 ms after each 10 of cost") == true)
    }
    try session.run("ALTER TABLE t SET (autovacuum_vacuum_cost_delay = 0)")
    #expect(try lines(setting: ["n"]) == [])
    try session.run("ALTER TABLE t RESET (autovacuum_vacuum_cost_delay)")
    #expect(try lines(setting: ["n"]) == [])
  }

  @Test func `the server's own settings apply to a table without options`() async throws {
    let cluster = try TestCluster(
      configuration: "autovacuum_vacuum_cost_delay = 100\nvacuum_cost_limit = 10"
    )
    let database = try TestPostgres(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int) WITH (fillfactor = 50);
      INSERT INTO t SELECT g FROM generate_series(1, 20000) AS g; ANALYZE t
      """,
      in: cluster
    )
    let session = try database.session()
    func line() throws -> String? {
      try session.transaction(TransactionOptions(isReadOnly: true)) { () throws(BatchError) in
        let table = try PostgresTable(named: "t", in: session)
        return try ServerAdvice(on: table, setting: ["n"], count: 20_000, in: session).lines.first
      }
    }
    #expect(try line()?.contains("100 ms after each 10 of cost") == true)
    try session.run("ALTER TABLE t SET (autovacuum_vacuum_cost_delay = 0)")
    #expect(try line() == nil)
    try session.run("ALTER SYSTEM SET autovacuum = off")
    try session.run("SELECT pg_reload_conf()")
    try await database.wait(
      until: "SELECT 1 FROM pg_settings WHERE name = 'autovacuum' AND setting = 'off'"
    )
    #expect(try line()?.hasPrefix("autovacuum is off for t") == true)
  }
}
#endif
