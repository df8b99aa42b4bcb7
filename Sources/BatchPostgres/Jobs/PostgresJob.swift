#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

package struct PostgresJob: JobPlanner {
  private let job: Job

  package init(_ job: Job) { self.job = job }

  package func report(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> PlanReport {
    try await resolved(options, handlers) { plan, session throws(BatchError) in
      try plan.report(chunkSize: options.chunkSize, in: session)
    }
  }

  package func digest(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> String {
    let (plan, given) = try await resolved(options, handlers) { plan, session throws(BatchError) in
      (plan, try plan.givenIdentifiers(in: session))
    }
    let list: PackedIdentifiers
    if let given {
      list = given
    } else {
      let fetch = PostgresFetch(plan.query, from: plan.address, readers: 1)
      list = try await fetch.run(store: plan.database.derivedIdentity)
    }
    return PlannedRun(
      of: job,
      options.policy(of: job),
      plan.statements,
      try plan.fingerprint.text,
      over: try PlannedRun.subject(list, plan.expected.planned)
    ).digest
  }

  package func check(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    try await resolved(options, handlers, reading: .names) { plan, _ in
      (plan.table.title, plan.notes)
    }
  }

  private func resolved<Result: Sendable>(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler],
    reading extent: LoadedFiles.Extent = .whole { false },
    _ body: @Sendable (PostgresPlan, PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    try job.validate()
    let parameters = try options.parameters(of: job, for: RunIdentity())
    try job.refuseMissingFolders()
    try job.refuseOccupiedOutput()
    return try await job.inSession { [job] session throws(BatchError) in
      let run =
        job.sharedServer == nil
        ? job.nextRun(options)
        : try RunIdentity(
          after: RunTables(of: session).runs(ofJobIfThere: job.name, in: session),
          of: job,
          options
        )
      let plan = try PostgresPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: true,
        reading: extent,
        // The run that will record rows has no name yet.
        recordingIn: "…",
        of: run,
        in: session
      )
      try plan.refuseOccupiedFolder()
      if job.sharedServer != nil { try RunTables(of: session).requireUse(in: session) }
      return try body(plan, session)
    }
  }
}
#endif
