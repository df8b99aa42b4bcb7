#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// With an order, rows change one after another in it, whichever process changes them.
@Suite(.timeLimit(.minutes(5))) struct SharedOrderTests {
  private static let rows = 3_000

  /// A job over a table whose trigger notes which row changed when.
  private func makeJob(_ more: [String: Any] = [:]) throws -> SharedJob {
    let job = try SharedJob(
      rows: Self.rows,
      """
      ALTER TABLE t ADD v int;
      UPDATE t SET v = id;
      ALTER TABLE t ADD UNIQUE (v);
      CREATE TABLE log (place bigserial, id bigint);
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log (id) VALUES (new.id); RETURN new; END $$;
      CREATE TRIGGER note AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
      """
    )
    let base: [String: Any] = [
      "source": ["entity": "t", "everything": true, "orderBy": ["-v"]],
      "action": ["type": "update", "set": ["v": "v + 1", "n": "n + 1"]],
      "chunk": ["size": 17],
    ]
    try job.writeJob(base.merging(more) { $1 })
    return job
  }

  private func expectOrder(of job: SharedJob) throws {
    #expect(try job.counts() == ["1 x \(Self.rows)"])
    let wrong = try job.database.session().execute(
      """
      SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY place) AS before FROM log) AS l
      WHERE id >= before
      """
    )
    #expect(wrong.integer(0, 0) == 0)
  }

  @Test func `an ordered shift under a unique index succeeds with two processes`() throws {
    let job = try makeJob()
    let programs = try (0..<2).map { _ in try job.start() }
    for program in programs {
      let result = program.wait()
      #expect(result.status == 0, "\(result.errors)")
    }
    try expectOrder(of: job)
  }

  @Test func `a process continues in order where another was killed`() throws {
    let job = try makeJob(SharedJob.slowly)
    let (first, second) = (try job.start(), try job.start())
    try job.untilDone(200)
    first.send(SIGKILL)
    _ = first.wait()
    let result = second.wait()
    #expect(result.status == 0, "\(result.errors)")
    try expectOrder(of: job)
  }

  @Test func `the first row in the order gets a contested unique value`() throws {
    let job = try makeJob([
      "source": ["entity": "t", "everything": true, "orderBy": ["-id"]],
      "action": ["type": "update", "set": ["v": "-(v / 10)", "n": "n + 1"]],
      "skip": ["limit": Self.rows],
    ])
    #expect(try job.start().wait().status == 4)
    let wrong = try job.database.session().execute(
      "SELECT count(*) FROM t WHERE (v <= 0) <> (id % 10 = 9 OR id = \(Self.rows))"
    )
    #expect(wrong.integer(0, 0) == 0)
  }

  @Test func `a transform keeps the order under a unique index`() throws {
    let job = try makeJob([
      "action": [
        "type": "transform", "columns": ["v", "n"], "writes": ["v", "n"],
        "command": [
          "sh", "-c",
          """
          while read -r line; do
            v=${line##*\\"v\\":}; v=${v%%,*}; n=${line##*:}; n=${n%?}
            echo "{\\"v\\": $((v + 1)), \\"n\\": $((n + 1))}"
          done
          """,
        ],
      ]
    ])
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    try expectOrder(of: job)
  }
}
#endif
