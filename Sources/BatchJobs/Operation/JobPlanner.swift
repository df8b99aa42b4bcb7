package import BatchIdentifiers
package import BatchRuns

/// The store that holds the rows of a job, for planning and checking the job.
package protocol JobPlanner: Sendable {
  /// Finds out what a run would do, except for `next`; writes nothing.
  func report(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> PlanReport

  /// The digest of the plan of a run that would begin now, after selecting all of its rows; writes
  /// nothing.
  func digest(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> String

  /// Checks the job against its database; returns its entity, and notes for the user.
  func check(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String])
}
