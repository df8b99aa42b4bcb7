package import BatchIdentifiers
package import BatchRuns

/// The kind of store that has the rows of a job, as far as a job is planned, checked and recorded there.
package protocol JobStore: Sendable {
  /// Finds out what a run would do, but for its first decision; writes nothing.
  func report(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> PlanReport

  /// Checks the job against its database.
  ///
  /// - Returns: The entity that it concerns, and what whoever runs it should know.
  func check(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String])
}
