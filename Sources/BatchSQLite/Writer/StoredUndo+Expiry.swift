import BatchJobs
import BatchRuns
import BatchIdentifiers

extension StoredUndo {
  /// Removes the expired records of a job's runs.
  ///
  /// `now` is an ISO 8601 timestamp in UTC.
  ///
  /// - Returns: How many runs can no longer be undone.
  static func removeExpired(
    ofJob job: String,
    at now: String,
    in connection: Connection
  ) throws(BatchError) -> Int {
    guard try connection.value(tables) == .integer(1) else { return 0 }
    // Records in use by an undo stay.
    for undo in try StoredRun.all(ofJob: ProgramWork.jobName(undoing: job), in: connection) {
      if case .unfinished = undo.state { return 0 }
    }
    try connection.execute(
      "DELETE FROM _batch_undo_run WHERE job = ? AND kept_until < ?",
      .text(job),
      .text(now)
    )
    let count = connection.changes
    if count > 0 {
      try connection.execute(
        "DELETE FROM _batch_undo WHERE run NOT IN (SELECT run FROM _batch_undo_run)"
      )
    }
    return count
  }
}
