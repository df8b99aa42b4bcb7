import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

enum FileRun {
  case checkpoint(Checkpoint)
  /// A run that only the store knows, since its checkpoint is lost.
  case stored(StoredRun)
  /// Finished work with an ID; only its result is remembered.
  case past(PastRun)
}

struct FileFindings {
  let job: String
  /// The path of the checkpoint, whether it exists or not.
  var checkpointPath: FilePath?
  /// Nil if it does not exist or cannot be read.
  var checkpoint: Checkpoint?
  /// Nil if the store was not opened or cannot be.
  var store: Store?
  /// The runs of the job in the store; nil if these were not read or cannot be.
  var stored: [StoredRun]?
  var request = RunRequest()
  /// The run whose failed identifiers the previous, killed process was about to retry.
  var interruptedRetry: String?
  /// The time since which finished work is remembered; nil for forever.
  var oldestEnd: String?
  /// The file to set aside for a new checkpoint: that of an unfinished run, or a damaged one.
  var replacedFile: FilePath?
  var setAside: Set<String> = []
  var storeHasList = false
}

extension FileFindings {
  /// Reads the checkpoint of a job and the records in its store.
  ///
  /// - Throws: `BatchError` if the checkpoint is damaged or belongs to another user, unless it is
  ///   to be set aside; if the database is locked; or if the tables of the store contradict one
  ///   another.
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

  /// Opens the database of a job; nil if that fails, which the plan of the job reports better.
  ///
  /// A lock is an error, since the records are unknown then.
  private static func store(of cause: some RunCause) async throws(BatchError) -> Store? {
    do throws(BatchError) {
      // Only a connection that may write rolls back the journal of a killed process.
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

  /// The remembered finished runs with an ID, sorted by their ends.
  var pastRuns: [PastRun] {
    var seen: Set<String> = []
    let inFile = checkpoint.map {
      isFinished($0) ? $0.finishedRuns : $0.metadata.pastRuns ?? []
    }
    // A retry that was killed is not over, even if the store has nothing left to do.
    let unfinished = checkpoint.flatMap { isFinished($0) || request.fresh ? nil : $0.metadata.run }
    let known = (stored ?? []).filter { $0.run != unfinished }.compactMap { PastRun($0) }
    // If both know a run, the store's record takes precedence.
    let all = known + (inFile ?? [])
    return all.filter { $0.endedAt >= oldestEnd ?? "" && seen.insert($0.run).inserted }
      .filter { !request.fresh || isKnown($0) }
      .sorted { $0.endedAt < $1.endedAt }.suffix(PastRun.limit)
  }

  func isKnown(_ run: PastRun) -> Bool {
    guard let stored, run.ledger == .store else { return true }
    return stored.contains { $0.run == run.run && $0.done.count >= $0.total }
  }
}
