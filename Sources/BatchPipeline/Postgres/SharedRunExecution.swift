#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// This process's part of a shared run, until nothing is left to do or a stop is requested.
struct SharedRunExecution {
  /// The settings that may differ between the processes of a run.
  struct Settings {
    var workers: Int
    var chunkSize: Int?
    var progressInterval: Duration
    var stopRequests: AsyncStream<Void>
  }

  /// The end of a process's part.
  struct Ended {
    let summary: RunSummary
    /// Whether this process ended the run, and so reports the end.
    var hasEndedRun = false
  }

  /// How long a chunk's statement may take before the chunk is halved.
  private static let statementLimit = Duration.seconds(120)
  /// The interval at which the server is asked for the state of the run.
  private static let interval = Duration.seconds(1)

  let plan: PostgresPlan
  let tables: RunTables
  let run: SharedRun
  let hooks: RunHooks
  let settings: Settings
  let stop: SharedRunStop
  let onEvent: @Sendable (RunEvent) -> Void
  /// The parts of an export that this process has recorded.
  let recordedParts = Lock<[ExportPart]>([])

  private var job: Job { plan.job }
  private var lease: Duration { job.database.lease }

  /// Takes part in the run.
  ///
  /// - Parameter begins: The first event.
  /// - Returns: The end of the process's part.
  /// - Throws: `BatchError` if nothing was done, as when the server does not answer.
  func perform(
    _ begins: (RunSummary) -> RunEvent
  ) async throws(BatchError) -> Ended {
    let heartbeat = HostHeartbeat(tables, run: run.run, host: UUID().uuidString.lowercased())
    let own = connection("batch")
    let presence = HostPresence(
      heartbeat,
      name: ProcessInfo.processInfo.hostName,
      process: ProcessInfo.processInfo.processIdentifier,
      lease: lease,
      by: own
    )
    try plan.exportFolder?.make()
    let session = SharedSession(try await standing(own), stop.waits)
    try await presence.join(within: lease)
    let attending = Task { await presence.stay() }
    let watching = Task { await watch(own, session, presence) }
    onEvent(begins(session.summary()))
    for note in plan.notes { onEvent(.message("warning: \(note)")) }
    await hooks.run(.onStart, session.summary())

    let spans = LeasedSpans(
      SpanClaims(heartbeat, lease: lease, inOrder: plan.isInOrder),
      by: connection("batch.spans")
    )
    let (processor, policy) = processor(spans)
    let (ending, failure, reason) = await loop(processor, spans, policy, presence, session)
    if ending == .stopped { stop.hasStopped() }
    watching.cancel()
    await watching.value
    let ended = await end(ending, failure, reason, session, own)
    attending.cancel()
    await attending.value
    // Spans that it fails to release are taken over when their leases expire.
    try? await presence.leave(HostExit(ended.summary))
    await spans.end()
    await own.close()
    tellMessages()
    return ended
  }

  private func connection(_ label: String) -> PostgresConnection {
    PostgresConnection(label: label, address: plan.address, within: stop.closing)
  }

  private func standing(_ connection: PostgresConnection) async throws(BatchError)
    -> SharedRunStanding
  {
    let (tables, run) = (tables, run.run)
    let standing = try await connection.persistently(within: lease) {
      session throws(BatchError) in
      do throws(BatchError) {
        return try tables.standing(ofRun: run, in: session)
      } catch {
        guard error.postgres?.state == .undefinedTable else { throw error }
        return nil
      }
    }
    if let standing { return standing }
    throw BatchError(
      .otherRun,
      "run \(run) is no longer in the database",
      at: plan.address.description,
      remedy: """
        find out who removed it (batch cleanup does), or whether another server that lacks it has taken over; \
        batch run starts a new run
        """
    )
  }

  /// Asks regularly for the state of the run, until the task is cancelled.
  private func watch(
    _ connection: PostgresConnection,
    _ session: SharedSession,
    _ presence: HostPresence
  ) async {
    let (tables, run) = (tables, run.run)
    while !Task.isCancelled {
      try? await Task.sleep(for: Self.interval)
      if Task.isCancelled { return }
      let pace = session.pace
      presence.tell(rate: pace.rate, hold: pace.hold)
      let standing = try? await connection.perform { session throws(BatchError) in
        try tables.standing(ofRun: run, in: session)
      }
      if let standing { session.update(standing) }
    }
  }

  // MARK: Chunks

  /// Makes what does the chunks that this process is granted, and the policy for them.
  private func processor(_ spans: LeasedSpans) -> (
    any ChunkProcessor<PostgresConnection>, RunPolicy
  ) {
    var policy = job.policy
    if let size = settings.chunkSize { policy.chunk = .init(size: size) }
    let connect = { @Sendable [address = plan.address, stop] label in
      PostgresConnection(label: label, address: address, within: stop.closing)
    }
    switch plan.work {
    case .change(let change):
      let processor = SharedChangeProcessor(
        chunks(of: change),
        of: spans,
        reconnectingFor: lease,
        by: connect
      )
      return (processor, policy)
    case .archiving: preconditionFailure("the archive is made before the run has a chunk")
    case .transform(let transform, let action, let handler, let children):
      let processor = SharedTransformProcessor(
        chunks(of: transform),
        of: spans,
        patience: action.timeout,
        reconnectingFor: lease,
        by: connect,
        transform.computing(
          by: handler,
          run: run.run,
          // For programs, the code that waits for their answers enforces the timeout.
          timeout: children == nil ? action.timeout : nil,
          onFailure: job.skip.failurePolicy(of: run.total)
        )
      )
      return (processor, policy)
    case .export(let export, let action):
      guard let folder = plan.exportFolder else {
        preconditionFailure("an export to one file is a run of one host")
      }
      let processor = ExportPartsProcessor(
        export: export,
        format: PostgresExport.Format(action.format),
        folder: folder,
        parts: parts,
        recorded: recordedParts,
        spans: spans,
        key: plan.key,
        host: ProcessInfo.processInfo.hostName,
        size: policy.chunk.size,
        onFailure: job.skip.failurePolicy(of: run.total),
        statementLimit: Self.statementLimit,
        reconnection: lease,
        connect: connect
      )
      // A file for each span.
      policy.chunk = .init(size: RunPolicy.chunkSizeLimit)
      return (processor, policy)
    }
  }

  private var parts: ExportParts { ExportParts(SpanFence(tables, run: run.run)) }

  private func chunks<Change: ChunkChange>(of change: Change) -> ChunkTransaction<Change> {
    ChunkTransaction(
      change,
      SpanFence(tables, run: run.run),
      limits: .init(
        lock: job.database.busyTimeout,
        statement: Self.statementLimit,
        silence: lease
      ),
      onFailure: job.skip.failurePolicy(of: run.total)
    )
  }

  private func loop<Processor: ChunkProcessor>(
    _ processor: Processor,
    _ spans: LeasedSpans,
    _ policy: RunPolicy,
    _ presence: HostPresence,
    _ session: SharedSession
  ) async -> (RunStateMachine.Ending, BatchError?, String?)
  where Processor.Worker == PostgresConnection {
    let workers = (1...max(1, settings.workers + plan.spareWorkers)).map {
      processor.makeWorker("batch.worker.\($0)")
    }
    let health = ServerWatch(
      over: plan.table,
      at: plan.address,
      limits: .init(yieldsToVacuum: job.throttle.yieldsToVacuum),
      workers: workers,
      within: stop.closing
    )
    // Before the first chunk, which might make others wait longer for a lock.
    await health.look()
    let looking = Task { await health.run() }
    var loop = RunLoop(
      remaining: [],
      sizing: ChunkSizing(policy, preparedWithin: processor.patience),
      workers: workers,
      processor: processor,
      settings: .init(
        policy: policy,
        files: job.files,
        requests: SharedRequests(presence),
        deadline: policy.limits.runtime.map { session.start + $0 },
        spans: spans,
        workersCommit: true,
        addStoreConditions: { health.add(to: &$0) },
        stopRequests: settings.stopRequests
      )
    )
    let ending = await loop.run { event throws(BatchError) in observe(event, session) }
    var failure = loop.failure
    do throws(BatchError) {
      try plan.stop()
    } catch {
      failure = failure ?? error
    }
    looking.cancel()
    await looking.value
    for worker in workers { await worker.close() }
    return (failure == nil ? ending : .failed, failure, loop.stopReason)
  }

  private func observe(
    _ event: RunLogic.Event,
    _ session: SharedSession
  ) {
    switch event {
    case .committed(_, let commit):
      session.committed(commit)
      tellMessages()
      if session.shouldTell(every: settings.progressInterval) {
        onEvent(.progress(session.summary()))
      }
    case .retrying(let retry): onEvent(.retrying(retry))
    case .granted: break
    case .lost(let span):
      onEvent(
        .message(
          "another process has taken over positions \(span.lowerBound) to \(span.upperBound - 1),"
            + " since this one sent no heartbeat"
        )
      )
    case .held(let hold):
      guard session.hold(hold) else { break }
      let summary = session.summary()
      onEvent(.throttled(summary))
      if !hold.isPace { hooks.begin(.onThrottle, summary) }
    case .released: _ = session.hold(nil)
    case .message(let message): onEvent(.message(message))
    case .looked:
      // Shows an observer that the process is alive, even during a long chunk or hold.
      if session.shouldTell(every: max(settings.progressInterval, .seconds(1))) {
        onEvent(.progress(session.summary()))
      }
    }
  }

  private func tellMessages() {
    for message in plan.takeMessages() + hooks.takeMessages() { onEvent(.message(message)) }
  }

  // MARK: The end

  private func end(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    _ reason: String?,
    _ session: SharedSession,
    _ connection: PostgresConnection
  ) async -> Ended {
    var hasEndedRun = false
    var (ending, failure) = (ending, failure)
    do throws(BatchError) {
      if ending == .completed {
        try await publishParts(connection)
        let (tables, run) = (tables, run.run)
        hasEndedRun = try await connection.persistently(within: lease) {
          session throws(BatchError) in try tables.finish(run, in: session)
        }
      }
      session.update(try await standing(connection))
    } catch {
      if error.code == .interrupted {
        // The next run does the rest.
        ending = .stopped
      } else if failure == nil || error.code == .otherRun {
        // That the run is gone explains every other failure.
        failure = error
      }
    }
    var summary = session.summary()
    if let failure {
      summary.state = .failed
      summary.failure = job.words(of: failure)
    } else if ending == .stopped, !summary.state.isFinished {
      summary.state = .stopped
      summary.stopReason = reason
    } else if !summary.state.isFinished {
      summary.state = .failed
      summary.failure = BatchError(
        .alreadyRunning,
        "another run of this job replaces this one",
        at: "run \(run.run)",
        remedy: "see batch status"
      )
    }
    summary.throttle = nil
    summary.etaSeconds = nil
    return Ended(summary: summary, hasEndedRun: hasEndedRun)
  }
}

extension SharedRunExecution {
  /// Publishes the manifest of an export to parts; each host does so, before the run counts as finished.
  private func publishParts(_ connection: PostgresConnection) async throws(BatchError) {
    guard case .export(_, let action) = plan.work, let folder = plan.exportFolder else { return }
    let (parts, total) = (parts, run.total)
    let recorded = try await connection.persistently(within: lease) { session throws(BatchError) in
      try parts.recorded(ofPositions: total, in: session)
    }
    let files = Set(recorded.map(\.file))
    try folder.require(recordedParts.withLock { $0 }.filter { files.contains($0.file) })
    let manifest = parts.manifest(ofJob: job.name, PostgresExport.Format(action.format), recorded)
    try folder.publish(manifest, naming: recorded, ofRun: run.run)
  }
}

extension HostExit {
  /// The end of a process's part, by its summary; nil if the run is finished.
  init?(_ summary: RunSummary) {
    switch summary.state {
    case .failed: self.init(.failed, because: summary.error)
    case .stopped: self.init(.stopped, because: summary.stopReason)
    default: return nil
    }
  }
}

/// The operator's requests of a shared run, as the answers to a process's heartbeats bring them.
struct SharedRequests: RunRequests {
  private let presence: HostPresence
  private var seen: String?

  init(_ presence: HostPresence) {
    self.presence = presence
  }

  mutating func look() -> RunControl? {
    let control = presence.answer?.control
    guard control != seen else { return nil }
    seen = control
    return control.map { RunControl(sharedText: $0) ?? RunControl() } ?? RunControl()
  }

  mutating func takeComplaint() -> String? { nil }
}

extension RunControl {
  /// The request in `_batch_run.control`; nil if it cannot be decoded.
  init?(sharedText text: String) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: Data(text.utf8)) else {
      return nil
    }
    self = control
  }

  /// The text for `_batch_run.control`.
  var sharedText: String {
    guard let bytes = try? JSONEncoder().encode(self) else {
      preconditionFailure("a request of texts that cannot be encoded")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
#endif
