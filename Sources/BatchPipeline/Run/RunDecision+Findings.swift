import BatchIdentifiers
import BatchStore
import SystemPackage

extension RunDecision.Findings {
  /// Looks at the checkpoint of a job, and at what its store knows.
  ///
  /// A run need not ask the store about the run of its checkpoint, or about others when it begins one:
  /// it does so again when that is resumed or entered, in the transaction. Whoever only tells what a run
  /// would do looks thoroughly.
  ///
  /// - Throws: `BatchError` if the checkpoint is damaged or another user's.
  init(
    of job: Job,
    _ options: BatchRun.Options,
    interruptedRetry: String? = nil,
    isThorough: Bool = false
  ) async throws(BatchError) {
    checkpoint =
      FileSystem.status(of: job.checkpointPath) == nil ? nil : try Checkpoint(ofJob: job)
    runID = options.runID
    isFresh = options.fresh
    oldestEnd = job.checkpoint.oldestEnd
    self.interruptedRetry = interruptedRetry
    setAside = Checkpoint.runsSetAside(of: job.checkpointPath)
    guard job.action.writes, job.checkpoint.ledger == .store,
      isThorough || checkpoint == nil || runID != nil
    else { return }
    // What is wrong with the database the job's plan says better.
    guard
      let store = try? await Store(
        path: job.database.path.string,
        isReadOnly: true,
        busyTimeout: job.database.busyTimeout
      )
    else { return }
    stored = try await store.runs(ofJob: job.name)
    if let lost = try? lost { storeHasList = try await store.readList(ofRun: lost.run) { _ in } }
  }

  /// The runs that are no hindrance to a new one, whatever the store says of them.
  var settledRuns: Set<String> {
    var runs = setAside
    if let checkpoint, checkpoint.progress.state.isFinished { runs.insert(checkpoint.metadata.run) }
    // Of earlier versions nobody knows whether their checkpoints were set aside.
    if checkpoint != nil { runs.formUnion(stored.filter { $0.checkpoint == nil }.map(\.run)) }
    return runs
  }

  /// The finished runs with an identifier that are remembered, in the order in which they ended.
  var pastRuns: [PastRun] {
    var known: Set<String> = []
    let all = (checkpoint?.finishedRuns ?? []) + stored.compactMap { PastRun($0) }
    return all.filter { $0.endedAt >= oldestEnd ?? "" && known.insert($0.run).inserted }
      .sorted { $0.endedAt < $1.endedAt }.suffix(PastRun.limit)
  }
}

extension Checkpoint {
  /// The path of a job's checkpoint, if there is one and its run is not over, or cannot be read.
  static func unfinished(ofJob job: Job) -> FilePath? {
    let path = job.checkpointPath
    guard FileSystem.status(of: path) != nil else { return nil }
    guard let checkpoint = try? Checkpoint(reading: path) else { return path }
    let progress = checkpoint.progress
    return progress.state.isFinished && !progress.awaitsAcknowledgement ? nil : path
  }
}
