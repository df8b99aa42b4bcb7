#if PostgreSQL
package import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// The records of a job's runs, or of their undos, in tables of its database, which hosts share.
package struct TableRecords: RunRecords {
  let work: TableWork

  package init(of work: TableWork) { self.work = work }

  package var cause: any RunCause { work.cause }

  package func nextStep(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async -> NextStep {
    do throws(BatchError) {
      try options.check()
      return try await cause.inSession { [work] session throws(BatchError) in
        let tables = try RunTables(of: session)
        let runs = try tables.runs(ofJobIfThere: work.cause.name, in: session)
        return try NextStep(of: work, options, after: runs, tables, in: session)
      }
    } catch {
      return NextStep(refusing: "\(error.inWordsOfJobs)")
    }
  }

  package func status(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> RunStatus {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(nil, tables, in: session)
      if let id = options.runID, run.runID?.hasSameBytes(as: id) != true {
        throw BatchError.unknownRunID(id, at: session.address.description)
      }
      guard let snapshot = try tables.snapshot(ofRun: run.run, in: session) else {
        throw BatchError(.otherRun, "run \(run.run) has just been removed", remedy: "ask again")
      }
      let hosts = try tables.hosts(ofRun: run.run, in: session)
      let runs = try tables.runs(ofJob: work.cause.name, in: session)
      var next = try NextStep(of: work, options, after: runs, tables, in: session)
      if let beginning = try work.cause.wordsOfBeginning(in: session) {
        next = NextStep(next.name, "\(next.words); one begins: \(beginning)")
      }
      var status = RunStatus(snapshot, hosts, lease: work.cause.database.lease, next: next)
      status.undo = try work.completedUndo(of: run.run, tables, in: session)
      let noted = try tables.noted(of: run.run, in: session)
      status.actions = noted.following(try run.described(), status.undo)
      return status
    }
  }

  /// The runs that `batch cleanup` has not removed.
  package func history() async throws(BatchError) -> JobHistory {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      var runs: [RecordedRun] = []
      for run in try tables.runs(ofJobIfThere: work.cause.name, in: session) {
        runs += try recorded(run, tables, in: session).map { [$0] } ?? []
      }
      return JobHistory(folder: session.address.description, bytes: 0, runs: runs.reversed())
    }
  }

  package func run(named name: String) async throws(BatchError) -> RecordedRun {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(name, tables, in: session)
      guard let recorded = try recorded(run, tables, in: session) else {
        throw BatchError.unknownRun(name, count: 0, at: session.address.description)
      }
      return recorded
    }
  }

  package func report(ofRun name: String?) async throws(BatchError) -> RunReport {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(name, tables, in: session)
      guard let recorded = try recorded(run, tables, in: session) else {
        throw BatchError.unknownRun(run.run, count: 0, at: session.address.description)
      }
      var pace = try tables.course(ofRun: run.run, in: session).pace
      pace.finish()
      let failures = try tables.reportedFailures(ofRun: run.run, in: session)
      return try RunReport(recorded, in: run.described().database, failures, pace)
    }
  }

  private func recorded(
    _ run: TableRun,
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) -> RecordedRun? {
    guard let snapshot = try tables.snapshot(ofRun: run.run, in: session) else { return nil }
    let hosts = try tables.hosts(ofRun: run.run, in: session)
    let summary = RunSummary(snapshot, of: hosts, lease: work.cause.database.lease)
    let undo = try work.completedUndo(of: run.run, tables, in: session)
    return RecordedRun(
      try run.described(),
      summary,
      undo: undo,
      actions: try tables.noted(of: run.run, in: session).following(run.described(), undo)
    )
  }

  package func identifiers(
    _ outcome: IdentifierSelection.Outcome,
    _ part: IdentifierSelection.Part,
    ofRun name: String?
  ) async throws(BatchError) -> IdentifierSelection {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(name, tables, in: session)
      let list = try tables.list(ofRun: run.run, in: session).packed
      guard list.count == run.total else {
        throw .identifiersGone(ofRun: run.run, at: session.address.description)
      }
      return try IdentifierSelection(
        list,
        outcome,
        outcome == .all ? nil : tables.rowOutcomes(ofRun: run.run, in: session),
        part,
        canary: run.described().canaryPositions(of: run.total),
        permissions: work.cause.files.permissions
      )
    }
  }

  package func request(
    _ change: @escaping @Sendable (inout RunControl) -> Void
  ) async throws(BatchError) -> RunControl {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(nil, tables, in: session)
      return try session.transaction { () throws(BatchError) in
        // One request at a time: each replaces the previous one.
        try tables.lock(job: work.cause.name, in: session)
        let hosts = try tables.hosts(ofRun: run.run, in: session)
        guard run.state == .running,
          hosts.contains(where: { $0.isAlive(within: work.cause.database.lease) && !$0.isMissing })
        else {
          throw work.cause.words(
            of: BatchError(
              .notRunning,
              "no run of job \"\(work.cause.name)\" is alive",
              at: session.address.description,
              advice: "\(.start) starts or resumes it"
            )
          )
        }
        let text = try tables.snapshot(ofRun: run.run, in: session)?.control
        var control = text.flatMap { RunControl(sharedText: $0) } ?? RunControl()
        try control.apply(change, to: work.cause.policy)
        // The record of the run has them.
        let actions = control.actions.take() ?? []
        try tables.request(control.sharedText, of: run.run, in: session)
        try tables.note(actions, of: run.run, in: session)
        return control
      }
    }
  }

  /// As many of the last runs stay as the job's history has records, and at least the last one.
  ///
  /// Those with a run ID stay as long as the job remembers them, and unfinished and unacknowledged
  /// runs always.
  package func cleanUp(removingHistory: Bool) async throws(BatchError) -> JobCleanup {
    try await cause.inSession { [work] session throws(BatchError) in
      var cleanup = JobCleanup()
      let tables = try RunTables(of: session)
      guard try tables.exist(in: session) else { return cleanup }
      cleanup.runCount = try session.transaction { () throws(BatchError) in
        try tables.lock(job: work.cause.name, in: session)
        try tables.removeExpiredUndos(ofJob: work.cause.name, in: session)
        cleanup.undoable = try work.undoableRuns(tables, in: session)
        let undos = Set(cleanup.undoable.map(\.run))
        let runs = try tables.runs(ofJob: work.cause.name, in: session)
        var count = 0
        let kept = Set(
          work.cause.policy.history.kept(of: runs, removingAll: removingHistory).map(\.run)
        )
        for run in runs where run.state == .acknowledged || run.state == .setAside {
          if kept.contains(run.run) { continue }
          guard let snapshot = try tables.snapshot(ofRun: run.run, in: session) else { continue }
          if undos.contains(run.run) { continue }
          let isRemembered =
            run.runID != nil && run.state == .acknowledged
            && (snapshot.endedAt ?? "") >= work.cause.policy.checkpoint.oldestEnd ?? ""
          if isRemembered { continue }
          try tables.remove(run.run, in: session)
          count += 1
        }
        return count
      }
      return cleanup
    }
  }

  package func approve(_ name: String) async throws(BatchError) -> (PlannedRun, [PlanApproval]) {
    try await cause.inSession { [work] session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try work.cause.sharedRun(nil, tables, in: session)
      let place = session.address.description
      return try session.transaction { () throws(BatchError) in
        guard run.state == .running, let planned = try tables.unapprovedPlan(of: run, in: session)
        else { throw BatchError.noApprovalAwaited(ofJob: work.cause.name, at: place) }
        try planned.requireName(name, at: place)
        // Whoever approves may look at the file that they name.
        if case .job(let job, _) = work { try run.described().refuse(unless: job, nil, at: place) }
        let before = try tables.approvals(of: planned, ofRun: run.run, in: session)
        try tables.approve(planned, ofRun: run.run, in: session)
        let approvals = try tables.approvals(of: planned, ofRun: run.run, in: session)
        guard approvals.count > before.count else { throw BatchError.ownApproval(at: place) }
        if let own = approvals.last {
          try tables.note([OperatorAction(own)], of: run.run, in: session)
        }
        return (planned, approvals)
      }
    }
  }

  package func isBeginning() async -> Bool {
    let isLocked = try? await cause.inSession { [work] session throws(BatchError) in
      try RunTables(of: session).isLocked(job: work.cause.name, in: session)
    }
    return isLocked ?? false
  }
}

extension TableWork {
  /// The completed undo of a run; nil if there is none, and for an undo.
  fileprivate func completedUndo(
    of run: String,
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) -> CompletedUndo? {
    guard case .job(let job, _) = self, job.undo != nil else { return nil }
    return try tables.completedUndo(of: run, by: job.undoing.name, in: session)
  }

  /// The runs of the job that can be undone, the newest first; none for an undo.
  package func undoableRuns(
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) -> [UndoableRun] {
    guard case .job(let job, _) = self else { return [] }
    return try tables.undos(ofJob: job.name, in: session).map { undo throws(BatchError) in
      var run = undo.undoable
      run.undo = try tables.completedUndo(of: run.run, by: job.undoing.name, in: session)
      return run
    }
  }
}

extension RunPolicy.History {
  /// The runs whose records stay, of all runs, the newest last.
  fileprivate func kept(of runs: [TableRun], removingAll: Bool) -> [TableRun] {
    if removingAll { return runs.suffix(1) }
    switch self {
    case .runs(let count): return runs.suffix(max(1, min(count, Self.limit)))
    case .time(let time):
      let oldest = Date.now.addingTimeInterval(-(time / .seconds(1))).formatted(.iso8601)
      return runs.suffix(1) + runs.filter { $0.startedAt >= oldest }
    }
  }
}

extension NextStep {
  /// Parameters that are not given are not compared; the newest run is last.
  fileprivate init(
    of work: TableWork,
    _ options: RunOptions,
    after runs: [TableRun],
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) {
    let undo = try work.undoableJob.flatMap { name throws(BatchError) in
      try tables.undoInTheWay(after: runs, ofJob: name, in: session)
    }
    do throws(BatchError) {
      let decision = try RunDecision(
        FoundRuns(runs, during: undo),
        options.request,
        job: work.cause.name
      )
      var joining = "resumes the unfinished run"
      switch decision {
      case .join(let run), .conclude(let run), .concludeFirst(let run):
        let hosts = try tables.hosts(ofRun: run.record.run, in: session)
        if hosts.contains(where: { $0.isAlive(within: work.cause.database.lease) }) {
          joining = "takes part in the unfinished run"
        }
        guard case .job(let job, _) = work else { break }
        let metadata = try run.record.described()
        try metadata.refuse(
          unless: job,
          options.givenParameters(of: job, for: RunIdentity(metadata)),
          at: run.place ?? metadata.run
        )
        if case .join = decision,
          (try? options.parameters(of: job, for: RunIdentity(metadata))) != nil
        {
          let identity = RunIdentity(metadata)
          let plan = try work.plan(of: identity, metadata, options, in: session)
          try run.record.refuse(unless: plan)
          try metadata.refuse(
            unlessPlanned: job,
            options,
            options.policy(of: job),
            plan.statements,
            at: "run \(run.record.run)"
          )
        }
        if case .join(let run) = decision,
          let planned = try tables.unapprovedPlan(of: run.record, in: session)
        {
          let given = try tables.approvals(of: planned, ofRun: run.record.run, in: session).count
          self.init(awaiting: planned, given, job.commandWord)
          return
        }
        if case .join = decision,
          let trial = CanaryTrial(of: metadata, options.policy(of: job), total: run.record.total),
          let failed = try tables.failuresOfCanary(ofRun: run.record.run, in: session)
        {
          try trial.refuse(failures: failed)
        }
      case .begin:
        if case .undo(let request, _) = work {
          let run = try tables.run(toUndo: request, in: session).run
          self.init(decision.name, "undoes run \(run.run) of \(run.startedAt)")
          return
        }
        if work.job.source.isIncremental {
          let identity = try RunIdentity(after: runs, of: work.job, options)
          _ = try work.plan(of: identity, nil, options, in: session)
        }
        try tables.refuseRunsElsewhere(
          ofJob: work.cause.name,
          over: { () throws(BatchError) in
            let source = work.job.source
            let oid =
              source.query == nil ? try PostgresTable(named: source.entity, in: session).oid : 0
            return PostgresTable.identity(oid, in: try PostgresDatabase(of: session))
          },
          in: session
        )
      case .nothing: break
      }
      self.init(decision.name, decision.words(joining: joining))
    } catch {
      self.init(refusing: "\(error.inWordsOfJobs)")
    }
  }
}

extension RunOptions {
  /// The values of a job's parameters for a run; nil if none, or not all, are given.
  fileprivate func givenParameters(of job: Job, for run: RunIdentity) -> ParameterValues? {
    guard let parameterTexts, !parameterTexts.isEmpty else { return nil }
    return try? ParameterValues(
      arguments: parameterTexts,
      declarations: job.parameters,
      runStartedAt: run.startedAt,
      runID: run.run
    )
  }
}

extension RunStatus {
  fileprivate init(
    _ snapshot: TableRunSnapshot,
    _ hosts: [HostSnapshot],
    lease: Duration,
    next: NextStep
  ) {
    let isOver = snapshot.run.state != .running
    let shown = hosts.map { Host($0, lease: lease) }
    var summary = RunSummary(snapshot, of: hosts, lease: lease)
    let alive = shown.filter(\.isAlive)
    if summary.state == .running {
      if let hold = alive.first?.hold, alive.allSatisfy({ $0.hold != nil }) {
        summary.throttle = hold
        summary.state = hold.hasPrefix("pause") ? .paused : .throttled
      } else if alive.allSatisfy({ $0.hold ?? $0.waiting != nil }) {
        summary.waiting = alive.lazy.compactMap(\.waiting).first
      }
      let rate = alive.compactMap(\.identifiersPerSecond).reduce(0, +)
      summary.setSpeed(rate > 0 ? rate : nil)
    }
    self.init(summary, in: nil, next: next)
    requests = alive.isEmpty ? nil : snapshot.control.flatMap { RunControl(sharedText: $0) }
    sharing = Sharing(
      hosts: shown,
      spans: snapshot.spanCount,
      spansDone: snapshot.doneSpanCount,
      isBeginning: !isOver && hosts.isEmpty && snapshot.age < 5
    )
  }
}

extension RunStatus.Host {
  fileprivate init(_ host: HostSnapshot, lease: Duration) {
    self.init(
      name: host.name,
      process: host.process,
      processes: host.processCount,
      done: host.done,
      spans: host.spanCount,
      identifiersPerSecond: host.isHeard(within: lease) ? host.rate : nil,
      hold: host.isAlive(within: lease) ? host.hold : nil,
      waiting: host.isAlive(within: lease) ? host.waiting : nil,
      lastSeenSecondsAgo: host.silence / .seconds(1),
      isAlive: host.isAlive(within: lease),
      end: host.exit?.state.rawValue,
      reason: host.exit?.reason
    )
  }
}
#endif
