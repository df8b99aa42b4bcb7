#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchPlatform
import BatchPostgres
import BatchRuns
import BatchSQLite
import SystemPackage

/// The stage of a rehearsal on PostgreSQL, where each chunk is rolled back.
struct ServerStage {
  let job: Job
  let options: BatchRun.Options
  let handlers: [String: TransformHandler]
  let settings: Rehearsal.Settings
  let onEvent: @Sendable (Rehearsal.Event) -> Void

  func rehearse() async throws(BatchError) -> Rehearsal {
    let job = try located()
    let notes = try await job.inSession { session throws(BatchError) in
      try RunTables.notes(onRehearsing: job, in: session)
    }
    guard case .export(let export) = job.action else {
      if let folder = settings.folder ?? (settings.keepsFolder ? "" : nil) {
        throw BatchError(
          .invalidJob,
          "a rehearsal on PostgreSQL leaves nothing to keep: it makes no clone",
          at: folder.isEmpty ? nil : folder.string,
          remedy: "leave out --keep and --folder, which are for a clone or an export"
        )
      }
      return try await rehearse(job, in: nil, notes)
    }
    let file = FileSystem.absolute(export.file)
    let folder = try RehearsalFolder(of: job, in: settings.folder ?? FileSystem.folder(of: file))
    onEvent(.began(folder: folder.path, bytes: 0))
    var rehearsal: Rehearsal
    do throws(BatchError) {
      try folder.prepare(for: job)
      rehearsal = try await rehearse(job, in: folder, notes)
    } catch {
      if !settings.keepsFolder { try? folder.remove() }
      throw error
    }
    if !settings.keepsFolder {
      do throws(BatchError) {
        try folder.remove()
      } catch {
        rehearsal.isKept = true
        rehearsal.notes.append("\(error)")
      }
    }
    return rehearsal
  }

  /// The job on the server on which it is rehearsed.
  private func located() throws(BatchError) -> Job {
    guard let url = settings.server else { return job }
    var job = job
    let server = Job.DatabaseOptions.Server.url(url)
    do throws(BatchError) {
      guard Job.DatabaseOptions.Server.isURL(url) else {
        throw BatchError(
          .invalidJob,
          "this is not a PostgreSQL URL",
          remedy: "write postgres://user@host/database"
        )
      }
      try server.refusePassword()
      _ = try server.address()
    } catch {
      throw error.located(at: "--on")
    }
    job.database.server = server
    return job
  }

  private func rehearse(
    _ job: Job,
    in folder: RehearsalFolder?,
    _ notes: [String]
  ) async throws(BatchError) -> Rehearsal {
    let samples = min(max(settings.samples, 0), Rehearsal.maximumSamples)
    let rehearsal = PostgresRehearsal(
      rows: settings.rows,
      showing: samples,
      inChunksOf: options.chunkSize ?? job.policy.chunk.size
    )
    let rehearsed = job.rehearsed(onServer: folder)
    let work = RehearsedWork(
      job: rehearsed,
      options: options,
      handlers: handlers,
      rehearsal: rehearsal
    )
    var seconds = Rehearsal.Times()
    let start = ContinuousClock.now
    let summary = try await BatchRun(work, options: options).rehearse { onEvent(.run($0)) }
    let time = start.duration(to: .now)
    let sample = try await job.inSession { session in
      rehearsal.sample(after: summary.done, pacing: job, in: session)
    }
    let chunks = rehearsal.chunks
    let looking = (chunks?.times.looking ?? .zero) / .seconds(1)
    seconds.comparison = (looking * 1000).rounded() / 1000
    seconds.run = ((time / .seconds(1) - looking) * 1000).rounded() / 1000
    var failures: [FailureCount] = []
    if let chunks {
      failures = try chunks.failures(atMost: 100)
    } else if summary.outcomes.failed > 0 {
      failures = try await rehearsed.identifiers(.failed).failureCounts(atMost: 100)
    }
    return Rehearsal(
      summary: summary,
      database: try job.address,
      folder: folder?.path.string,
      isKept: settings.keepsFolder,
      sharesBlocks: nil,
      bytesBefore: nil,
      bytesAfter: nil,
      seconds: seconds,
      comparedTables: chunks == nil ? 0 : 1,
      comparedRows: chunks?.comparedRows ?? 0,
      tables: chunks?.tables ?? [],
      failures: failures,
      notes: notes + rehearsal.notes + (chunks?.notes ?? []),
      sample: sample
    )
  }
}

extension Job {
  /// Where its server is.
  fileprivate var address: String {
    get throws(BatchError) {
      guard let server = database.server else { return database.path.string }
      return try server.address().description
    }
  }
}

/// The work of a rehearsal on a server.
private struct RehearsedWork: RunWork {
  let job: Job
  let options: BatchRun.Options
  let handlers: [String: TransformHandler]
  let rehearsal: PostgresRehearsal

  var cause: any RunCause { job }

  func plan(of run: RunIdentity, stoppedBy stop: StopSwitch, in store: Store?)
    async throws(BatchError)
    -> any RunPlan
  {
    try await PostgresFilePlan(
      job,
      parameters: options.parameters(of: job, for: run),
      handlers: handlers,
      of: run,
      rehearsing: rehearsal,
      stoppedBy: stop
    )
  }

  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks {
    try RunHooks(job, parameters: ParameterValues())
  }

  func foreseeablePlan(of run: RunIdentity) -> (any RunPlan)? { nil }

  func refuse(unlessFor checkpoint: Checkpoint) {}
}
#endif
