import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension RunDecision.Findings {
  /// Reads the checkpoint of a job, and its store's records.
  ///
  /// - Throws: `BatchError` if the checkpoint is damaged or another user's, unless it is to be set
  ///   aside, if the database is locked, or if the store's own tables contradict one another.
  init(
    of job: Job,
    _ options: BatchRun.Options,
    interruptedRetry: String? = nil
  ) async throws(BatchError) {
    let file = FileSystem.status(of: job.checkpointPath) == nil ? nil : job.checkpointPath
    do throws(BatchError) {
      checkpoint = try file.map { _ throws(BatchError) in try Checkpoint(ofJob: job) }
    } catch {
      guard options.fresh else { throw error }
    }
    self.job = job.name
    checkpointPath = job.checkpointPath
    runID = options.runID
    isFresh = options.fresh
    oldestEnd = job.checkpoint.oldestEnd
    self.interruptedRetry = interruptedRetry
    setAside = Checkpoint.runsSetAside(of: job.checkpointPath)
    if job.action.writes, job.checkpoint.ledger == .store {
      store = try await Self.store(of: job)
    }
    if let store {
      stored = try await store.runs(ofJob: job.name)
      if checkpoint?.isOfEarlierContexts == true {
        let name = "contexts:\(FileSystem.absolute(job.checkpointPath))"
        stored? += try await store.runs(ofJob: name)
      }
      if let lost = try? lost { storeHasList = try await store.readList(ofRun: lost.run) { _ in } }
    }
    guard isFresh, let file else { return }
    let isOver = checkpoint.map { isFinished($0) && !$0.progress.awaitsAcknowledgement } ?? false
    replacedFile = isOver ? nil : file
  }

  /// The database of a job; nil if it cannot be opened, which the job's plan reports better.
  ///
  /// - Throws: `BatchError` if the database is locked: what it records is unknown.
  private static func store(of job: Job) async throws(BatchError) -> Store? {
    do throws(BatchError) {
      // Only a connection that may write rolls back a killed process's journal.
      return try await job.openStore()
    } catch {
      if error.isTransient { throw error }
      return try? await job.openStore(isReadOnly: true)
    }
  }

  /// The runs that do not prevent a new one, whatever the store records.
  var settledRuns: Set<String> {
    var runs = setAside
    if let checkpoint, isFinished(checkpoint) { runs.insert(checkpoint.metadata.run) }
    // Whether earlier versions' checkpoints were set aside is unknown.
    if checkpoint != nil {
      runs.formUnion((stored ?? []).filter { $0.checkpoint == nil }.map(\.run))
    }
    return runs
  }

  /// The remembered finished runs with an ID, in the order in which they ended.
  var pastRuns: [PastRun] {
    var seen: Set<String> = []
    let remembered = checkpoint.map {
      isFinished($0) ? $0.finishedRuns : $0.metadata.pastRuns ?? []
    }
    // A killed retry is not over, though the store has nothing left to do.
    let unfinished = checkpoint.flatMap { isFinished($0) || isFresh ? nil : $0.metadata.run }
    let known = (stored ?? []).filter { $0.run != unfinished }.compactMap { PastRun($0) }
    // If both know a run, the store's record counts.
    let all = known + (remembered ?? [])
    return all.filter { $0.endedAt >= oldestEnd ?? "" && seen.insert($0.run).inserted }
      .filter { !isFresh || isKnown($0) }
      .sorted { $0.endedAt < $1.endedAt }.suffix(PastRun.limit)
  }

  /// The run that has done the requested work.
  var requestedPastRun: PastRun? {
    runID.flatMap { id in pastRuns.last { $0.id.hasSameBytes(as: id) } }
  }

  /// Whether the store knows a run that it must know.
  func isKnown(_ run: PastRun) -> Bool {
    guard let stored, run.ledger == .store else { return true }
    return stored.contains { $0.run == run.run && $0.done.count >= $0.total }
  }
}
