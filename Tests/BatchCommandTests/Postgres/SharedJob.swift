#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation

/// A job that adds one to `n` in each row of a test's own table, and the processes that run it.
///
/// The update is not idempotent, so a row that is done twice shows, and so does one that is left out.
struct SharedJob {
  /// A lease short enough for a test to wait for.
  static let lease = "2s"

  let directory: TemporaryDirectory
  let database: TestPostgres

  /// Creates a table `t` and a job in small chunks.
  init(
    rows: Int,
    _ script: String = "",
    adding more: [String: Any] = [:],
    in cluster: TestCluster? = nil
  ) throws {
    directory = try TemporaryDirectory()
    database = try TestPostgres(
      """
      CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0);
      INSERT INTO t SELECT generate_series(1, \(rows));
      \(script)
      """,
      in: cluster
    )
    try writeJob(more)
  }

  /// Settings that slow a process down so much that a test can interfere.
  static var slowly: [String: Any] { ["throttle": ["identifiersPerSecond": 5_000]] }

  /// The URL of the database, for a role.
  func url(role: String = "postgres") -> String {
    database.cluster.url(database: database.name, role: role)
  }

  /// Rewrites the job.
  func writeJob(_ more: [String: Any] = [:]) throws {
    let base: [String: Any] = [
      "database": ["url": url(), "lease": Self.lease], "chunk": ["size": 100], "workers": 2,
    ]
    try directory.write(
      JobText.update(entity: "t", adding: base.merging(more) { $1 }),
      to: "job.json"
    )
  }

  /// Starts a process that takes part.
  func start(_ more: String...) throws -> BatchProgram {
    try BatchProgram(["run", "job.json", "--json"] + more, in: directory)
  }

  /// Runs a command to completion.
  @discardableResult
  func batch(
    _ arguments: String...,
    environment: [String: String] = [:]
  ) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory, environment: environment).wait()
  }

  /// How often rows were done, and how many of them: `1 x 500`.
  func counts() throws -> [String] {
    let rows = try database.session().execute(
      "SELECT n || ' x ' || count(*) FROM t GROUP BY n ORDER BY n"
    )
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// Waits until some rows are done.
  func untilDone(_ count: Int) throws {
    try wait(until: "(SELECT count(*) FROM t WHERE n > 0) >= \(count)")
  }

  /// Waits until a condition holds; the waiting happens on the server.
  func wait(until condition: String) throws {
    try database.run(
      """
      DO $$ BEGIN
        FOR attempt IN 1..12000 LOOP
          IF \(condition) THEN RETURN; END IF;
          PERFORM pg_stat_clear_snapshot();
          PERFORM pg_sleep(0.005);
        END LOOP;
        RAISE EXCEPTION 'nothing has come of it';
      END $$
      """
    )
  }
}

extension BatchProgram {
  /// Reads events until one has the name.
  ///
  /// - Returns: The event; nil if the program ended first.
  func event(_ names: String...) throws -> [String: Any]? {
    while let line = nextLine() {
      let event = try JSONOutput.object(line)
      if names.contains(event["event"] as? String ?? "") { return event }
    }
    return nil
  }
}

extension BatchProgram.Result {
  /// The last object on standard output.
  var last: [String: Any] {
    get throws { try JSONOutput.lines(output).last ?? [:] }
  }
}
#endif
