#if PostgreSQL
import BatchRuns
import BatchIdentifiers

extension RunTables {
  /// Whether all positions of a run may be worked on, including those that are not in its canary.
  func isCanaryOver(ofRun run: String, in session: PostgresSession) throws(BatchError) -> Bool {
    try session.text(
      "SELECT canary_over FROM \(self.run) WHERE run = $1::uuid",
      .text(run)
    ) != "f"
  }

  /// How long ago the canary of a run was done, and how many of its rows have failed; the first call
  /// records that it is done.
  ///
  /// - Returns: Nil if the trial is over, or the run.
  func canary(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> (waited: Duration, failed: Int)? {
    let condition = "run = $1::uuid AND state = 'running' AND NOT canary_over"
    // Not an update each time, which would leave a dead row a second.
    try session.execute(
      """
      UPDATE \(self.run) SET canary_ended_at = clock_timestamp() WHERE \(condition) AND canary_ended_at IS NULL
      """,
      .text(run)
    )
    let found = try session.execute(
      """
      SELECT extract(epoch FROM clock_timestamp() - canary_ended_at)::float8,
        (SELECT count(*) FROM \(failure) WHERE run = $1::uuid) FROM \(self.run) WHERE \(condition)
      """,
      .text(run)
    )
    guard found.count == 1, let seconds = found.text(0, 0).flatMap(Double.init) else { return nil }
    return (.seconds(seconds), Int(found.integer(0, 1) ?? 0))
  }

  /// How many rows of a canary have failed that is done, but not over; nil for any other run.
  func failuresOfCanary(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> Int? {
    try session.text(
      """
      SELECT (SELECT count(*) FROM \(failure) AS f WHERE f.run = r.run) FROM \(self.run) AS r
      WHERE run = $1::uuid AND canary_ended_at IS NOT NULL AND NOT canary_over
      """,
      .text(run)
    ).flatMap { Int($0) }
  }

  /// Records that the run may go on with what is not in its canary.
  func endCanary(ofRun run: String, in session: PostgresSession) throws(BatchError) {
    try session.execute(
      "UPDATE \(self.run) SET canary_over = true WHERE run = $1::uuid",
      .text(run)
    )
  }
}
#endif
