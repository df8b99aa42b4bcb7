import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchSQLite
import SystemPackage

/// The record of a job's runs in a checkpoint file and, if they write, in the ledger of their
/// store.
///
/// Only one process at a time holds the record, by the lock beside the file.
final class FileRecord: RunRecord {
  let cause: any RunCause
  let work: any RunWork
  let options: BatchRun.Options
  let stop: StopSwitch
  let onEvent: @Sendable (RunEvent) -> Void
  let workerCount: Int
  let lock: RunLock?
  private let obeying: Task<Void, Never>
  private(set) var findings: FileFindings

  /// Takes the lock; throws `alreadyRunning` if another process holds it.
  init(
    of run: BatchRun,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) {
    cause = run.cause
    work = run.work
    options = run.options
    stop = run.stopSwitch
    workerCount = run.workerCount
    self.onEvent = onEvent
    findings = FileFindings(job: cause.name)
    if options.joinOnly {
      throw BatchError(
        .invalidJob,
        "--join-only is for runs that processes share; this one is recorded in a file of one process",
        remedy: "leave it out"
      )
    }
    lock = cause.keepsRecord ? try RunLock(of: cause.files) : nil
    ControlFile.remove(of: cause.files)
    obeying = stop.obeyCancellation(in: cause.files)
  }

  func find(_ request: RunRequest) async throws(BatchError) -> FoundRuns<FileRun> {
    guard cause.keepsRecord else {
      if request.retriesFailures { throw .noCheckpoint(of: cause) }
      findings = FileFindings(job: cause.name)
      return FoundRuns()
    }
    findings = try await FileFindings(
      of: cause,
      request,
      interruptedRetry: request.retriesFailures ? nil : lock?.interruptedRetry
    )
    return findings.runs
  }

  func wait(_ time: Duration) async throws(BatchError) {
    try await stop.wait(for: time, at: cause.database.path.string)
  }

  func close() {
    obeying.cancel()
    ControlFile.remove(of: cause.files)
    lock?.removeFile()
  }

  func result(of run: FoundRun<FileRun>) throws(BatchError) -> RunSummary {
    switch run.record {
    case .checkpoint(let checkpoint):
      tell(ofOtherWork: checkpoint)
      return RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    case .stored(let stored): return summary(of: PastRun(finished: stored))
    case .past(let past): return summary(of: past)
    }
  }

  /// Warns if a run that is done was of another job, or had other parameters.
  private func tell(ofOtherWork checkpoint: Checkpoint) {
    do throws(BatchError) {
      _ = try work.hooks(after: checkpoint)
    } catch {
      if let words = error.wordsOfOtherWork { onEvent(.message(words)) }
    }
  }

  private func summary(of past: PastRun) -> RunSummary {
    let checkpoint = findings.checkpoint.flatMap { $0.metadata.run == past.run ? $0 : nil }
    if let checkpoint { tell(ofOtherWork: checkpoint) }
    return RunSummary(past, of: cause.name, path: checkpoint?.path.string ?? "")
  }

  /// The end of a finished run.
  ///
  /// The work is compared with the run's, but not resolved against the database: the run is over,
  /// and a hook may have changed the database.
  func end(of run: FoundRun<FileRun>) async throws(BatchError) -> FileEnd {
    var hooks: RunHooks?
    var file: Checkpoint?
    if case .checkpoint(let checkpoint) = run.record {
      hooks = try work.hooks(after: checkpoint)
      try checkpoint.openForAppending()
      file = checkpoint
    }
    let lane = findings.lane()
    await findings.store?.close()
    if let file {
      onEvent(.message("the run was finished before; this concludes it"))
      if let output = file.metadata.output, try file.hasOtherOutput {
        onEvent(.message("the output is missing or has changed: \(output)"))
      }
    }
    return FileEnd(
      summary: try result(of: run),
      notifier: hooks,
      cause: cause,
      checkpoint: file,
      lane: lane
    )
  }

  func part(
    _ plan: any RunPlan,
    over list: PackedIdentifiers,
    by lane: WriterLane?,
    _ session: RunSession
  ) -> RunEntry<FilePart> {
    .part(FilePart(cause, plan, over: list, by: lane, session, stop: stop, onEvent: onEvent))
  }
}

extension FileFindings {
  /// A lane with the store's current journal mode; nil if there is no writable store.
  fileprivate func lane() -> WriterLane? {
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = false
    return try? store?.makeWriterLane(configuration)
  }
}
