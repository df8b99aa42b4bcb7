package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

package struct SQLiteJob: JobPlanner {
  private let job: Job

  package init(_ job: Job) { self.job = job }

  package func report(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> PlanReport {
    try await resolved(options, handlers).report(chunkSize: options.chunkSize)
  }

  package func check(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    let plan = try await resolved(options, handlers)
    return (plan.entity.name, plan.traps)
  }

  package func resolved(
    _ options: RunOptions = .init(),
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> JobPlan {
    try job.validate()
    try job.requireSupport()
    let parameters = try options.parameters(of: job, for: RunIdentity())
    let plan = try await JobPlan(job, parameters: parameters, handlers: handlers)
    try job.refuseOccupiedOutput()
    return plan
  }
}
