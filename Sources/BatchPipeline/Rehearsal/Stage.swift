import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

/// The stage of a rehearsal: the database, open for reading, and the caller's options.
struct Stage {
  let job: Job
  let options: BatchRun.Options
  let handlers: [String: TransformHandler]
  let settings: Rehearsal.Settings
  let store: Store
  let onEvent: @Sendable (Rehearsal.Event) -> Void

  func rehearse() async throws(BatchError) -> Rehearsal {
    try await refuseIfRunning()
    // Problems of the job are reported before a large file is copied.
    var checked = job
    checked.isRehearsal = true
    let plan = try await JobWork(job: checked, options: options, handlers: handlers)
      .plan(of: RunIdentity(), stoppedBy: StopSwitch(), in: store)
    let warnings = try await (plan as? JobPlan)?.report(chunkSize: nil).warnings ?? []

    let place = settings.folder ?? FileSystem.folder(of: FilePath(store.path))
    let bytes = try await store.byteCount()
    try RehearsalFolder.requireRoom(
      for: bytes,
      reserving: job.throttle.minimumFreeDisk ?? 0,
      in: place
    )
    let folder = try RehearsalFolder(of: job, store, in: place)
    onEvent(.began(folder: folder.path, bytes: bytes))
    var rehearsal: Rehearsal
    do throws(BatchError) {
      rehearsal = try await rehearse(in: folder, bytes)
    } catch {
      if !settings.keepsFolder { try? folder.remove() }
      throw error
    }
    rehearsal.notes += warnings
    guard !settings.keepsFolder else { return rehearsal }
    do throws(BatchError) {
      try folder.remove()
    } catch {
      rehearsal.isKept = true
      rehearsal.notes.append("\(error)")
    }
    return rehearsal
  }

  private func refuseIfRunning() async throws(BatchError) {
    let alive = try await store.runs(ofJob: job.name).first { $0.process != nil }
    if let alive { throw alive.isAlive }
  }

  private func rehearse(
    in folder: RehearsalFolder,
    _ bytes: Int64
  ) async throws(BatchError) -> Rehearsal {
    let clock = ContinuousClock()
    var seconds = Rehearsal.Times()
    var last = clock.now
    func lap() -> Double {
      defer { last = clock.now }
      return (last.duration(to: clock.now) / .milliseconds(1)).rounded() / 1000
    }

    try folder.prepare(for: job)
    let clone = try await store.clone(
      to: folder.database,
      sharingBlocks: RehearsalFolder.shareBlocks
    ) { onEvent(.copied($0)) }
    if job.source.identifiers != nil { try await adoptIdentity(in: folder) }
    seconds.clone = lap()

    let job = job.rehearsed(in: folder)
    let run = BatchRun(job, options: options, handlers: handlers)
    let summary = try await run.rehearse { onEvent(.run($0)) }
    // A run that failed immediately has no checkpoint.
    let failures =
      summary.outcomes.failed == 0
      ? []
      : try await job.identifiers(.failed).failureCounts(atMost: 100)
    seconds.run = lap()

    let copy = try await job.storeToRead()
    let comparison = try await StoreComparison(
      of: copy,
      and: store.path,
      for: .changes(samples: min(max(settings.samples, 0), Rehearsal.maximumSamples)),
      progress: { onEvent(.compared($0)) }
    )
    seconds.comparison = lap()
    return Rehearsal(
      summary: summary,
      database: store.path,
      folder: folder.path.string,
      isKept: settings.keepsFolder,
      sharesBlocks: clone.method == .sharedBlocks,
      bytesBefore: bytes,
      bytesAfter: try await copy.byteCount(),
      seconds: seconds,
      comparedTables: comparison.tables,
      comparedRows: comparison.rows,
      tables: comparison.changes,
      failures: failures,
      notes: try await notes(since: clone) + comparison.uncompared.map(\.note)
    )
  }

  /// Makes identifier files also valid for the clone: without an identity, a database is identified
  /// by its path.
  private func adoptIdentity(in folder: RehearsalFolder) async throws(BatchError) {
    let identity = store.identity
    guard identity.isDerived else { return }
    let clone = StoreConnection(
      label: "batch.clone",
      path: folder.database.string,
      options: .init(busyTimeout: job.database.busyTimeout)
    )
    try await clone.perform { connection throws(BatchError) in
      try connection.transaction(.immediate) { () throws(BatchError) in
        _ = try StoreIdentity.establish(identity, in: connection)
      }
    }
    await clone.close()
  }

  /// Why a run may have a different result.
  private func notes(since clone: StoreClone) async throws(BatchError) -> [String] {
    var notes: [String] = []
    if try await store.version() != clone.version {
      notes.append(
        "somebody has written to the database since it was cloned: their changes are among the"
          + " changes, the other way round; rehearse while nobody writes, or on a backup"
      )
    }
    // This does not check what batch run would do with it, which requires opening the database for
    // writing.
    let checkpoint = try? Checkpoint(of: job)
    if let checkpoint, !checkpoint.progress.state.isFinished {
      notes.append(
        "this was a new selection, but the job has an unfinished run; batch status tells what batch run"
          + " would do with it"
      )
    }
    if store.coreData != nil, job.action.writes, job.database.coreData != .overwrite {
      notes.append(
        "this is a Core Data store: batch run refuses to write to it; see database.coreData"
      )
    }
    if case .export(let export) = job.action, !export.overwrite, checkpoint == nil,
      let file = try? ExportFile.resolve(export.file), FileSystem.status(of: file) != nil
    {
      notes.append("\(file) exists, and batch run does not replace it: see action.overwrite")
    }
    return notes
  }
}

extension BatchRun {
  /// Runs a rehearsal, which the cancellation of the task stops.
  func rehearse(
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(BatchError) -> RunSummary {
    let answer = await withTaskCancellationHandler {
      do throws(BatchError) {
        return Result<RunSummary, BatchError>.success(try await run(onEvent: onEvent))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      stop()
    }
    let summary = try answer.get()
    if summary.state == .stopped { throw BatchError(.interrupted, "interrupted") }
    return summary
  }
}
