#if PostgreSQL
import BatchRuns
import BatchIdentifiers

extension RunTables {
  /// Approves a plan as the session's role and the user of this process, inside the caller's
  /// transaction.
  func approve(_ planned: PlannedRun, ofRun run: String, in session: PostgresSession)
    throws(BatchError)
  {
    let process = RunInvocation(version: "")
    try session.execute(
      """
      INSERT INTO \(approval) (run, user_name, host, digest) VALUES ($1::uuid, $2, $3, $4)
      ON CONFLICT (run, role, user_name) DO NOTHING
      """,
      .text(run),
      .text(process.user),
      .text(process.host),
      .text(planned.digest)
    )
  }

  /// The approvals of a run's plan by others than whoever began it.
  ///
  /// The server vouches for the role; users who share one are told apart by what their processes
  /// say.
  func approvals(
    of planned: PlannedRun,
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> [PlanApproval] {
    let beginner = try session.text(
      "SELECT convert_from(metadata, 'UTF8')::json #>> '{invocation,user}' FROM \(self.run) WHERE run = $1::uuid",
      .text(run)
    )
    let found = try session.execute(
      """
      SELECT CASE WHEN a.role = a.user_name THEN a.user_name ELSE a.user_name || ' as ' || a.role END, a.host, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      FROM \(approval) AS a JOIN \(self.run) AS r USING (run)
      WHERE a.run = $1::uuid AND a.digest = $2 AND (a.role <> r.role OR a.user_name <> $3) ORDER BY a.at
      """,
      .text(run),
      .text(planned.digest),
      .text(beginner ?? "")
    )
    return (0..<found.count).map { row in
      PlanApproval(
        of: planned.digest,
        by: found.text(row, 0) ?? "",
        on: found.text(row, 1) ?? "",
        at: found.text(row, 2) ?? ""
      )
    }
  }

  /// The plan of a run that too few users have approved; nil if its chunks may begin.
  func unapprovedPlan(
    of run: TableRun,
    in session: PostgresSession
  ) throws(BatchError) -> PlannedRun? {
    guard let planned = try run.described().planned, planned.approvals > 0,
      try approvals(of: planned, ofRun: run.run, in: session).count < planned.approvals
    else { return nil }
    return planned
  }
}
#endif
