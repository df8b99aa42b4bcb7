import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

/// A run as the checkpoint of a job and its store have it.
enum FileRun {
  /// The run of the checkpoint.
  case checkpoint(Checkpoint)
  /// A run that only the store knows, since its checkpoint is gone.
  case stored(StoredRun)
  /// Finished work with an ID, of which only its result is remembered.
  case past(PastRun)
}

/// What is on disk of a job's runs: its checkpoint, and the records in its store.
struct FileFindings {
  /// The job's name.
  let job: String
  /// The path of the job's checkpoint, whether it exists or not.
  var checkpointPath: FilePath?
  /// The checkpoint, if it exists and can be read.
  var checkpoint: Checkpoint?
  /// The store, open; nil if it was not consulted, or cannot be.
  var store: Store?
  /// The job's runs in the store; nil if it was not consulted, or cannot be.
  var stored: [StoredRun]?
  /// What is asked for.
  var request = RunRequest()
  /// The run whose failed identifiers a process was about to retry when it was killed.
  var interruptedRetry: String?
  /// Since when finished work is remembered; nil for forever.
  var oldestEnd: String?
  /// The file to set aside for the new checkpoint: of a run that is not over, or damaged.
  var replacedFile: FilePath?
  /// The runs whose checkpoints were set aside.
  var setAside: Set<String> = []
  /// Whether the store keeps the list of a run.
  var storeHasList = false
}

extension FileFindings {
  /// Reads the checkpoint of a job, and its store's records.
  ///
  /// - Throws: `BatchError` if the checkpoint is damaged or another user's, unless it is to be set
  ///   aside, if the database is locked, or if the store's own tables contradict one another.
  init(
    of cause: some RunCause,
    _ request: RunRequest,
    interruptedRetry: String? = nil
  ) async throws(BatchError) {
    let file = FileSystem.status(of: cause.checkpointPath) == nil ? nil : cause.checkpointPath
    do throws(BatchError) {
      checkpoint = try file.map { _ throws(BatchError) in try Checkpoint(of: cause) }
    } catch {
      guard request.fresh else { throw error }
    }
    job = cause.name
    checkpointPath = cause.checkpointPath
    self.request = request
    oldestEnd = cause.policy.checkpoint.oldestEnd
    self.interruptedRetry = interruptedRetry
    setAside = Checkpoint.runsSetAside(of: cause.checkpointPath)
    if cause.writes {
      store = try await Self.store(of: cause)
    }
    if let store {
      stored = try await store.runs(ofJob: cause.name)
      if let lost = try? lost { storeHasList = try await store.readList(ofRun: lost.run) { _ in } }
    }
    guard request.fresh, let file else { return }
    let isOver = checkpoint.map { isFinished($0) && !$0.progress.awaitsAcknowledgement } ?? false
    replacedFile = isOver ? nil : file
  }

  /// The database of a job; nil if it cannot be opened, which the job's plan reports better.
  ///
  /// - Throws: `BatchError` if the database is locked: what it records is unknown.
  private static func store(of cause: some RunCause) async throws(BatchError) -> Store? {
    do throws(BatchError) {
      // Only a connection that may write rolls back a killed process's journal.
      return try await cause.openStore()
    } catch {
      if error.isTransient { throw error }
      return try? await cause.openStore(isReadOnly: true)
    }
  }

  /// The runs that do not prevent a new one, whatever the store records.
  var settledRuns: Set<String> {
    var runs = setAside
    if let checkpoint, isFinished(checkpoint) { runs.insert(checkpoint.metadata.run) }
    return runs
  }

  /// The remembered finished runs with an ID, in the order in which they ended.
  var pastRuns: [PastRun] {
    var seen: Set<String> = []
    let inFile = checkpoint.map {
      isFinished($0) ? $0.finishedRuns : $0.metadata.pastRuns ?? []
    }
    // A killed retry is not over, though the store has nothing left to do.
    let unfinished = checkpoint.flatMap { isFinished($0) || request.fresh ? nil : $0.metadata.run }
    let known = (stored ?? []).filter { $0.run != unfinished }.compactMap { PastRun($0) }
    // If both know a run, the store's record counts.
    let all = known + (inFile ?? [])
    return all.filter { $0.endedAt >= oldestEnd ?? "" && seen.insert($0.run).inserted }
      .filter { !request.fresh || isKnown($0) }
      .sorted { $0.endedAt < $1.endedAt }.suffix(PastRun.limit)
  }

  /// Whether the store knows a run that it must know.
  func isKnown(_ run: PastRun) -> Bool {
    guard let stored, run.ledger == .store else { return true }
    return stored.contains { $0.run == run.run && $0.done.count >= $0.total }
  }
}
