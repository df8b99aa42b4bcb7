#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation

/// A job on a table of a test's own that adds one to `n` of each row, and the processes that run it.
///
/// The update is not idempotent, so that a row that is done twice shows, as does one that is left out.
struct SharedJob {
  /// A lease short enough for a test to wait for.
  static let lease = "2s"

  let directory: TemporaryDirectory
  let database: TestPostgres

  /// Creates a table `t` of a number of rows, and a job in small chunks.
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

  /// Settings by which a process does so little at a time that there is time to do something to it.
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

  /// Runs a command to its end.
  @discardableResult
  func batch(
    _ arguments: String...,
    environment: [String: String] = [:]
  ) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory, environment: environment).wait()
  }

  /// How often rows were done, with how many rows that is true of: `1 x 500`.
  func counts() throws -> [String] {
    let rows = try database.session().execute(
      "SELECT n || ' x ' || count(*) FROM t GROUP BY n ORDER BY n"
    )
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// Waits until some rows are done; the server does the waiting.
  func untilDone(_ count: Int) throws {
    try database.run(
      """
      DO $$ BEGIN
        FOR attempt IN 1..12000 LOOP
          IF (SELECT count(*) FROM t WHERE n > 0) >= \(count) THEN RETURN; END IF;
          PERFORM pg_sleep(0.005);
        END LOOP;
        RAISE EXCEPTION 'the rows are not done';
      END $$
      """
    )
  }
}

extension BatchProgram {
  /// Reads events until one of those names.
  ///
  /// - Returns: The event; nil if the program ended before.
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
