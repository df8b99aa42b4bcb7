#if PostgreSQL
import BatchIdentifiers
import BatchPlatform
import BatchRuns

/// How a run went, beside what its chunks tell.
struct RunCourse: Codable, Sendable {
  /// How much was done after how long.
  var pace = RunPace()
  /// What has been given back after the last chunk.
  var afterwards: ReturnedSpace?
}

extension RunTables {
  /// Changes what is recorded of a run's course; does nothing if an earlier version made the tables, and the role may
  /// not add one.
  func changeCourse(
    ofRun run: String,
    in session: PostgresSession,
    _ change: (inout RunCourse) -> Void
  ) throws(BatchError) {
    guard try session.text("SELECT pg_catalog.to_regclass($1)", .text(course)) != nil else {
      return
    }
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      try session.execute(
        "INSERT INTO \(course) VALUES ($1::uuid, '{\"pace\":{}}') ON CONFLICT (run) DO NOTHING",
        .text(run)
      )
      var course = try recordedCourse(ofRun: run, locking: true, in: session)
      change(&course)
      let text = (try? JSONEncoder().encode(course)).map { String(decoding: $0, as: UTF8.self) }
      try session.execute(
        "UPDATE \(self.course) SET course = $2 WHERE run = $1::uuid",
        .text(run),
        .text(text ?? "{}")
      )
    }
  }

  /// How a run went, as far as it is recorded and the role may read it.
  func course(ofRun run: String, in session: PostgresSession) throws(BatchError) -> RunCourse {
    let mayRead = try session.text(
      "SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass($1), 'SELECT')",
      .text(course)
    )
    guard mayRead == "t" else { return RunCourse() }
    return try recordedCourse(ofRun: run, locking: false, in: session)
  }

  private func recordedCourse(
    ofRun run: String,
    locking locks: Bool,
    in session: PostgresSession
  ) throws(BatchError) -> RunCourse {
    let text = try session.text(
      "SELECT course FROM \(course) WHERE run = $1::uuid\(locks ? " FOR UPDATE" : "")",
      .text(run)
    )
    return text.flatMap { try? JSONDecoder().decode(RunCourse.self, from: Data($0.utf8)) }
      ?? RunCourse()
  }
}
#endif
