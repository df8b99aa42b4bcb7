#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
import BatchPostgres

/// The status of a job's last run on PostgreSQL, across all its processes.
package struct SharedRunStatus: Sendable, Encodable {
  /// A process that takes part, or did.
  package struct Host: Sendable, Encodable {
    package let name: String
    package let process: Int32
    /// The number of spans that it has.
    package let spans: Int
    package let identifiersPerSecond: Double?
    /// Why it is held, in words.
    package let hold: String?
    /// The time since its last heartbeat or its end, by the server's clock.
    package let lastSeenSecondsAgo: Double
    /// Whether its last heartbeat is within a lease; otherwise its spans are free.
    package let isAlive: Bool
    /// How it ended its part, `stopped` or `failed`; nil if it takes part, or went silent.
    package let end: String?
    /// Why it ended so, on one line.
    package let reason: String?
  }

  package let summary: RunSummary
  package let hosts: [Host]
  package let spans: Int
  package let spansDone: Int
  /// What `batch run` would do, in a word and in words.
  package let next: String
  package private(set) var nextWords: String

  /// Whether the run has just begun, so its first process may not have joined yet.
  package let isBeginning: Bool

  /// Whether a process is working on it.
  package var isLive: Bool { summary.state.isGoingOn }

  /// Reads the status from the database.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - runID: The identifier of the work; nil for any.
  ///   - name: The UUID of one of its runs, or the first characters of it; nil for the last.
  /// - Throws: `BatchError` of code `fileAccess` if the job has not been run, `unknownRun` if it has no such run.
  package init(
    of job: Job,
    runID: String? = nil,
    run name: String? = nil
  ) async throws(BatchError) {
    let (lease, request) = (job.database.lease, RunRequest(runID: runID))
    self = try await job.inSession { session throws(BatchError) in
      let tables = try RunTables(of: session)
      var run = try job.sharedRun(name, tables, in: session)
      let runs = try tables.runs(ofJob: job.name, in: session)
      if name == nil, let runID {
        guard let asked = runs.last(where: { $0.runID?.hasSameBytes(as: runID) == true }) else {
          throw BatchError.unknownRunID(runID, at: session.address.description)
        }
        run = asked
      }
      guard let standing = try tables.standing(ofRun: run.run, in: session) else {
        throw BatchError(.otherRun, "run \(run.run) has just been removed", remedy: "ask again")
      }
      let hosts = try tables.hosts(ofRun: run.run, in: session)
      let next = RunDecision.next(after: runs, request, of: job) { _ in nil }
      let beginning = try job.wordsOfBeginning(in: session)
      return SharedRunStatus(standing, hosts, lease: lease, next, beginning)
    }
  }

  private init(
    _ standing: SharedRunStanding,
    _ hosts: [RunHostStanding],
    lease: Duration,
    _ next: (name: String, words: String),
    _ beginning: String?
  ) {
    // It does not matter how processes left a run that is over.
    let isOver = standing.run.state != .running
    self.hosts = hosts.filter { !isOver || $0.isAlive(within: lease) }.map { host in
      Host(
        name: host.name,
        process: host.process,
        spans: host.spanCount,
        // One that misses heartbeats may be waiting.
        identifiersPerSecond: host.isAlive(within: min(lease, .seconds(5))) ? host.rate : nil,
        hold: host.isAlive(within: lease) ? host.hold : nil,
        lastSeenSecondsAgo: host.silence / .seconds(1),
        isAlive: host.isAlive(within: lease),
        end: host.exit?.state.rawValue,
        reason: host.exit?.reason
      )
    }
    isBeginning = standing.run.state == .running && hosts.isEmpty && standing.elapsedSeconds < 5
    spans = standing.spanCount
    spansDone = standing.doneSpanCount
    var summary = RunSummary(standing, of: hosts, lease: lease)
    let alive = self.hosts.filter(\.isAlive)
    if summary.state == .running {
      let rates = alive.compactMap(\.identifiersPerSecond)
      let rate = rates.reduce(0, +)
      if rate > 0 {
        summary.identifiersPerSecond = rate
        summary.etaSeconds = Double(summary.total - summary.done) / rate
      }
      if let hold = alive.first?.hold, alive.allSatisfy({ $0.hold != nil }) {
        summary.throttle = hold
        summary.etaSeconds = nil
        summary.state = hold.hasPrefix("pause") ? .paused : .throttled
      }
    }
    self.summary = summary
    (self.next, nextWords) = next
    if let beginning { nextWords += "; one begins: \(beginning)" }
  }

  private enum CodingKeys: String, CodingKey {
    case hosts, spans, spansDone, next, nextWords, undoneBy, warnings
  }

  package func encode(to encoder: any Encoder) throws {
    try summary.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(hosts, forKey: .hosts)
    try container.encode(spans, forKey: .spans)
    try container.encode(spansDone, forKey: .spansDone)
    try container.encode(next, forKey: .next)
    try container.encode(nextWords, forKey: .nextWords)
    // As for a run on SQLite, which may be undone, and has a log.
    try container.encodeNil(forKey: .undoneBy)
    try container.encode([String](), forKey: .warnings)
  }
}

extension RunControl {
  /// Changes the request to the processes that take part in a job's last run.
  ///
  /// - Throws: `BatchError` of code `notRunning` if no process does, `invalidJob` if a setting is unknown or has an
  ///   invalid value.
  package static func change(
    ofSharedRunOf job: Job,
    _ change: @escaping @Sendable (inout RunControl) -> Void
  ) async throws(BatchError) {
    try await job.inSession { session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try job.sharedRun(nil, tables, in: session)
      try session.transaction { () throws(BatchError) in
        // One request at a time: each replaces the previous one.
        try tables.lock(job: job.name, in: session)
        let hosts = try tables.hosts(ofRun: run.run, in: session)
        guard run.state == .running,
          hosts.contains(where: { $0.isAlive(within: job.database.lease) })
        else {
          throw BatchError(
            .notRunning,
            "no run of job \"\(job.name)\" is alive",
            at: session.address.description,
            advice: "\(.start) starts or resumes it"
          )
        }
        let text = try tables.standing(ofRun: run.run, in: session)?.control
        var control = text.flatMap { RunControl(sharedText: $0) } ?? RunControl()
        change(&control)
        _ = try job.policy.adjusted(by: control.settings)
        try tables.request(control.sharedText, of: run.run, in: session)
      }
    }
  }
}

extension IdentifierSelection {
  /// The identifiers of a run of a job on PostgreSQL.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - outcome: The outcome of the identifiers to select.
  ///   - name: The UUID of one of the runs, or the first characters of it; nil for the last.
  /// - Throws: `BatchError` if there is no such run.
  package init(
    ofSharedRunOf job: Job,
    outcome: Outcome,
    run name: String?
  ) async throws(BatchError) {
    self = try await job.inSession { session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try job.sharedRun(name, tables, in: session)
      let list = try tables.list(ofRun: run.run, in: session).packed
      guard list.count == run.total else {
        throw BatchError(
          .outcomeNotRecorded,
          "the identifiers of run \(run.run) are gone from the database",
          at: session.address.description,
          remedy: "batch cleanup removes them; they cannot be restored"
        )
      }
      guard outcome != .all else {
        return IdentifierSelection(list, PositionSet([0..<list.count]))
      }
      let outcomes = try tables.rowOutcomes(ofRun: run.run, in: session)
      return IdentifierSelection(
        list,
        try outcomes.positions(outcome, of: list.count),
        outcome == .failed ? outcomes.failed : []
      )
    }
  }
}

/// Removes the records of a job's past runs on PostgreSQL that are no longer needed.
///
/// Acknowledged runs with a run ID stay as long as the job remembers them, and the last run stays if its failures can
/// be retried; unfinished and unacknowledged runs always stay.
package struct SharedCleanup: Sendable {
  /// The number of runs removed.
  package let runCount: Int

  /// Removes the records.
  package init(of job: Job) async throws(BatchError) {
    let oldest = job.checkpoint.oldestEnd
    runCount = try await job.inSession { session throws(BatchError) in
      let tables = try RunTables(of: session)
      guard try tables.exist(in: session) else { return 0 }
      return try session.transaction { () throws(BatchError) in
        try tables.lock(job: job.name, in: session)
        let runs = try tables.runs(ofJob: job.name, in: session)
        var count = 0
        for run in runs where run.state == .acknowledged || run.state == .setAside {
          guard let standing = try tables.standing(ofRun: run.run, in: session) else { continue }
          let isRemembered =
            run.runID != nil && run.state == .acknowledged
            && (standing.endedAt ?? "") >= oldest ?? ""
          let isToBeRetried = run.run == runs.last?.run && standing.outcomes.failed > 0
          if isRemembered || isToBeRetried { continue }
          try tables.remove(run.run, in: session)
          count += 1
        }
        return count
      }
    }
  }
}
#endif
