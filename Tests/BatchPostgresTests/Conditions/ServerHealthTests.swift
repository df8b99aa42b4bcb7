#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ServerHealthTests {
  private static let table = """
    CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY LIST (id);
    CREATE TABLE t1 PARTITION OF t DEFAULT; INSERT INTO t SELECT generate_series(1, 1000)
    """

  private static func health(
    _ database: TestPostgres,
    role: String = "postgres"
  ) throws -> ServerHealth {
    let session = try database.session(role: role)
    let oid = try session.integer("SELECT 't'::regclass::oid") ?? 0
    return try ServerHealth(of: oid, in: session)
  }

  @Test func `a table that no other session wants does not hold a run`() throws {
    let database = try TestPostgres(Self.table)
    let health = try Self.health(database)
    #expect(health.hold(.init()) == nil)
    #expect(health.lock == nil)
    #expect(health.vacuum == nil)
    #expect(health.standby == nil)
    // Nothing is archived.
    #expect(health.unarchived == nil)
    #expect((1..<400).contains(health.spareConnections ?? 0))
    #expect(try ServerHealth.notes(for: database.session()) == [])
  }

  @Test func `a session that waits for a lock on the table holds the run`() async throws {
    let database = try TestPostgres(Self.table)
    // A chunk that is not committed.
    let chunk = try database.session()
    try chunk.run("BEGIN; UPDATE t SET n = 1 WHERE id = 1")
    #expect(try Self.health(database).lock == nil)
    let change = PostgresConnection(label: "batch.ddl", address: try database.address)
    let changed = Task {
      try await change.perform { session throws(BatchError) in
        try session.run("ALTER TABLE t1 ADD CHECK (n < 5)")
      }
    }
    try await database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'batch.ddl' AND wait_event_type = 'Lock'"
    )
    let waiting = try Self.health(database)
    #expect(waiting.lock?.isAwaited == true)
    let hold = waiting.hold(.init(lag: nil))
    #expect(hold?.name == "tableLock")
    #expect(hold?.reason.contains("waits for AccessExclusiveLock on the table") == true)
    try chunk.run("COMMIT")
    try await changed.value
    #expect(try Self.health(database).lock == nil)
    await change.close()
  }

  @Test func `a new index on the run's table holds the run, one on another table does not`() throws
  {
    let database = try TestPostgres("\(Self.table); CREATE TABLE other (a int)")
    let other = try database.session()
    try other.run("BEGIN; CREATE INDEX ON other (a)")
    #expect(try Self.health(database).lock == nil)
    try other.run("COMMIT; BEGIN; CREATE INDEX ON t1 (n)")
    let lock = try Self.health(database).lock
    #expect(lock?.mode == "ShareLock")
    #expect(lock?.isAwaited == false)
    try other.run("ROLLBACK")
  }

  @Test func `a vacuum of the table holds the run only if the run yields to vacuums`() async throws
  {
    let database = try TestPostgres(
      """
      CREATE TABLE t (id int, w text) WITH (autovacuum_enabled = off);
      INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 20000) AS g; DELETE FROM t WHERE id % 2 = 0
      """
    )
    let connection = PostgresConnection(label: "batch.vacuum", address: try database.address)
    let vacuum = Task {
      try await connection.perform { session throws(BatchError) in
        // It rests most of the time, so that the test can observe its work.
        try session.run("SET vacuum_cost_delay = 100")
        try session.run("SET vacuum_cost_limit = 1")
        try session.run("VACUUM t")
      }
    }
    try await database.wait(
      until: "SELECT 1 FROM pg_stat_progress_vacuum WHERE relid = 't'::regclass"
    )
    let health = try Self.health(database)
    #expect(health.vacuum != nil)
    #expect(health.hold(.init()) == nil)
    #expect(health.hold(.init(yieldsToVacuum: true))?.name == "vacuum")
    connection.interrupt()
    _ = try? await vacuum.value
    await connection.close()
  }

  @Test func `a role without pg_read_all_stats gets a note, and the run continues`() throws {
    let role = "blind_\(UInt32.random(in: 0 ... .max))"
    let database = try TestPostgres("\(Self.table); CREATE ROLE \(role) LOGIN")
    defer { try? database.run("DROP ROLE \(role)") }
    let session = try database.session(role: role)
    let notes = try ServerHealth.notes(for: session)
    #expect(notes.count == 1)
    #expect(notes.first?.contains("pg_read_all_stats") == true)
    let health = try Self.health(database, role: role)
    #expect(health.hold(.init()) == nil)
    #expect(health.spareConnections != nil)
  }

  @Test func `a lagging standby and an archive backlog hold the run until they catch up`()
    async throws
  {
    let cluster = try TestCluster(
      configuration: "archive_mode = on\narchive_command = 'true'\nmin_wal_size = 32MB",
      standby: "recovery_min_apply_delay = 1h"
    )
    let database = try TestPostgres(Self.table, in: cluster)
    let session = try database.session()
    try session.execute("SELECT pg_switch_wal()")
    try await database.wait(
      until: "SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal IS NOT NULL"
    )
    try session.run("ALTER SYSTEM SET archive_command = 'false'")
    try session.execute("SELECT pg_reload_conf()")
    for _ in 0..<5 {
      try session.run("UPDATE t SET n = 1")
      try session.execute("SELECT pg_switch_wal()")
    }
    try await database.wait(until: "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")
    let health = try Self.health(database)
    #expect((3...6).contains(health.unarchived ?? 0))
    #expect(health.hold(.init(lag: nil, lagBytes: nil, unarchived: 2))?.name == "archiveBacklog")
    // It has received the changes but does not apply them for an hour.
    #expect(health.standby?.name == "walreceiver")
    #expect(health.hold(.init(lag: nil, lagBytes: 1 << 20))?.name == "replicationLag")
    try session.run("ALTER SYSTEM SET archive_command = 'true'")
    try session.execute("SELECT pg_reload_conf()")
    try await database.wait(
      until: """
        SELECT 1 FROM pg_stat_archiver
        WHERE last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16 * 1024 * 1024)
        """
    )
    #expect((0...1).contains(try Self.health(database).unarchived ?? 9))
  }

  @Test func `each exceeded limit of the server's health has its own reason`() {
    var health = ServerHealth()
    health.standby = .init(name: "b", lag: .seconds(41), bytes: 3 << 30)
    health.unarchived = 70
    var limits = ServerHealth.Limits()
    #expect(health.hold(limits) == .init("replicationLag", "standby b is 41 s behind"))
    limits.lag = .seconds(60)
    #expect(health.hold(limits) == .init("replicationLag", "standby b is 3.2 GB behind"))
    limits.lagBytes = nil
    #expect(
      health.hold(limits)
        == .init("archiveBacklog", "70 files of the write-ahead log wait to be archived")
    )
    limits.unarchived = 70
    #expect(health.hold(limits) == nil)
  }

  @Test func `a watch reports the latest state of the server, even through PgBouncer`() async throws
  {
    let database = try TestPostgres(Self.table)
    let session = try database.session()
    let table = try session.transaction { () throws(BatchError) in
      try PostgresTable(named: "t", in: session)
    }
    for address in [try database.address, try database.pooledAddress] {
      let watch = ServerWatch(over: table, at: address, limits: .init())
      #expect(watch.hold == nil)
      try session.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")
      await watch.look()
      #expect(watch.hold?.name == "tableLock")
      try session.run("COMMIT")
      await watch.look()
      #expect(watch.hold == nil)
    }
  }
}
#endif
