#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Random commands in random order, on PostgreSQL.
@Suite(.timeLimit(.minutes(60))) struct SharedSequenceTests {
  /// The number of sequences; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 8

  @Test(arguments: 0..<count)
  func `a shared run keeps its guarantees under random commands, kills, backups and losses`(
    seed: UInt64
  ) throws {
    var sequence = try RandomSequence(seed: seed, over: ServerRows())
    for _ in 0..<14 { try sequence.step() }
  }

  /// Rows of a server, with a record in tables beside them.
  private struct ServerRows: RandomSequence.Rows {
    let isShared = true
    private let job: SharedJob

    init() throws {
      job = try SharedJob(
        rows: RandomSequence.total,
        """
        ALTER TABLE t ADD COLUMN label text;
        CREATE TABLE changes (run text, id bigint);
        CREATE TABLE bad (id bigint PRIMARY KEY);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF EXISTS (SELECT FROM bad WHERE id = new.id) THEN
            RAISE EXCEPTION 'bad' USING ERRCODE = 'check_violation';
          END IF;
          INSERT INTO changes VALUES (new.label, new.id);
          RETURN new;
        END $$;
        CREATE TRIGGER change AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
        """
      )
      var settings = RandomSequence.settings
      settings["action"] = ["type": "update", "set": RandomSequence.set]
      settings["database"] = ["url": job.url(), "lease": "1s"]
      try job.writeJob(settings)
    }

    var directory: TemporaryDirectory { job.directory }

    func texts(_ sql: String) throws -> [String] {
      let rows = try job.database.session().execute(sql)
      return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    func execute(_ sql: String...) throws {
      for statement in sql { try job.database.run(statement) }
    }

    func waitForClients() throws {
      try job.wait(
        until: """
          NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
            AND pid <> pg_backend_pid() AND backend_type = 'client backend')
          """
      )
    }

    func backUp() throws { try copyTables(from: "public", to: "backup") }
    func restore() throws { try copyTables(from: "backup", to: "public") }
    // The record is beside the rows: it is lost with them, or not at all.
    func loseRecord() {}
    func keepRecord() {}
    func returnRecord() {}

    /// Gives the tables of one schema the rows of another, as a restored backup would.
    private func copyTables(from source: String, to target: String) throws {
      try job.database.run(
        """
        DO $$ DECLARE name text; BEGIN
          SET LOCAL session_replication_role = replica;
          CREATE SCHEMA IF NOT EXISTS backup;
          FOR name IN SELECT relname FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
              AND (relname IN ('t', 'changes') OR relname LIKE '\\_batch%')
          LOOP
            EXECUTE format('CREATE TABLE IF NOT EXISTS backup.%I (LIKE public.%I)', name, name);
            EXECUTE format('DELETE FROM \(target).%I', name);
            EXECUTE format(
              'INSERT INTO \(target).%I OVERRIDING SYSTEM VALUE SELECT * FROM \(source).%I', name, name
            );
          END LOOP;
        END $$
        """
      )
    }
  }
}
#endif
