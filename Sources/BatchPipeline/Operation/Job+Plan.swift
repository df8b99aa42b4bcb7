public import BatchIdentifiers
#if PostgreSQL
import BatchPostgres
#endif
import BatchSQLite

extension Job {
  /// Finds out what a run would do, on either store; writes nothing.
  ///
  ///     let plan = try await job.plan()
  ///     print(plan.matches, plan.sql.apply, plan.warnings)
  ///
  /// - Parameters:
  ///   - options: What may differ from one run to the next.
  ///   - handlers: Handlers that the `handler` of a transform may name, none of which is called.
  /// - Returns: The plan, which has the keys of `batch plan --json`.
  /// - Throws: `BatchError` with the place in the job file if the job is not valid or does not fit its database.
  /// - Complexity: One count of the matching rows, reads of up to 10,000 of them, and up to six chunks of 1,000 that are
  ///   tried and rolled back.
  public func plan(
    _ options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) -> PlanReport {
    try options.check()
    var report = try await report(options, handlers)
    let next = await records.nextStep(options, handlers)
    (report.next, report.nextWords) = (next.name, next.words)
    return report
  }

  private func report(
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> PlanReport {
    #if PostgreSQL
    if database.server != nil {
      return try await resolved(options, handlers) { plan, session throws(BatchError) in
        try plan.report(chunkSize: options.chunkSize, in: session)
      }
    }
    #endif
    return try await resolved(options, handlers: handlers).report(chunkSize: options.chunkSize)
  }

  /// Checks the job against its database, as `batch validate` does.
  ///
  /// - Returns: The entity that it concerns, and what whoever runs it should know.
  package func check(
    _ options: BatchRun.Options,
    handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    #if PostgreSQL
    if database.server != nil {
      return try await resolved(options, handlers) { plan, _ in (plan.table.title, plan.notes) }
    }
    #endif
    let plan = try await resolved(options, handlers: handlers)
    return (plan.entity.name, plan.traps)
  }

  /// Resolves a job on SQLite for a run that begins now.
  package func resolved(
    _ options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler]
  ) async throws(BatchError) -> JobPlan {
    try requireSupport()
    let parameters = try parameters(options, handlers)
    let plan = try await JobPlan(self, parameters: parameters, handlers: handlers)
    try refuseOccupiedOutput()
    return plan
  }

  private func parameters(
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler]
  ) throws(BatchError) -> ParameterValues {
    try validate()
    let work = JobWork(job: self, options: options, handlers: handlers)
    return try work.parameters(of: RunIdentity())
  }

  #if PostgreSQL
  /// Resolves a job on PostgreSQL for a run that begins now.
  private func resolved<Result: Sendable>(
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler],
    _ body: @Sendable (PostgresPlan, PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let parameters = try parameters(options, handlers)
    try refuseMissingFolders()
    try refuseOccupiedOutput()
    return try await inSession { session throws(BatchError) in
      let plan = try PostgresPlan(
        self,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: true,
        in: session
      )
      try plan.refuseOccupiedFolder()
      if sharedServer != nil { try RunTables(of: session).requireUse(in: session) }
      return try body(plan, session)
    }
  }
  #endif
}
