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
    if case .load(let load) = job.action {
      return try await resolved(load, options, reading: .whole { false })
        .report(chunkSize: options.chunkSize)
    }
    return try await resolved(options, handlers).report(chunkSize: options.chunkSize)
  }

  package func digest(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> String {
    if case .load(let load) = job.action {
      let plan = try await resolved(load, options, reading: .whole { false })
      return PlannedRun(
        of: job,
        options.policy(of: job),
        plan.statements,
        plan.fingerprint().text,
        over: try PlannedRun.subject(plan.list(plan.store.identity), plan.expected.planned)
      ).digest
    }
    let plan = try await resolved(options, handlers)
    let given = try await plan.givenIdentifiers()
    let list: PackedIdentifiers
    if let given {
      list = given.list
    } else {
      let query = try await plan.inDeletionOrder(within: nil).query
      let fetch = IdentifierFetch(query, from: plan.store, readers: 1, spill: BlockSpill())
      list = try await fetch.run(store: plan.store.identity)
    }
    let subject = try PlannedRun.subject(list, plan.expected.planned)
    return PlannedRun(
      of: job,
      options.policy(of: job),
      plan.statements,
      plan.fingerprint(identifiersHash: given?.hash).text,
      over: subject
    ).digest
  }

  package func check(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    if case .load(let load) = job.action {
      return (try await resolved(load, options, reading: .names).insertion.entity.name, [])
    }
    let plan = try await resolved(options, handlers)
    return (plan.entity.name, plan.traps)
  }

  private func resolved(
    _ load: Job.Load,
    _ options: RunOptions,
    reading extent: LoadedFiles.Extent
  ) async throws(BatchError) -> LoadPlan {
    try job.validate()
    try job.requireSupport()
    do throws(BatchError) {
      return try await LoadPlan(
        job,
        load,
        parameters: options.parameters(of: job, for: RunIdentity()),
        store: nil,
        reading: extent,
        expecting: nil
      )
    } catch {
      throw error.inWordsOfJobs
    }
  }

  package func resolved(
    _ options: RunOptions = .init(),
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> JobPlan {
    try job.validate()
    try job.requireSupport()
    let run = job.nextRun(options)
    let parameters = try options.parameters(of: job, for: run)
    let plan = try await JobPlan(job, parameters: parameters, handlers: handlers, of: run)
    try job.refuseOccupiedOutput()
    return plan
  }
}
