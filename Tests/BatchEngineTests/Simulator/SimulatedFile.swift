@testable import BatchEngine
import BatchIdentifiers

/// A checkpoint file in memory: its records, of which a power failure leaves those that were synced and
/// perhaps some more.
struct SimulatedFile {
  private var entries: [CheckpointEntry] = []
  private var syncedCount = 0
  /// Whether the file is there: it is made complete, or not at all.
  var exists = false
  /// How often a backup had been restored when the progress that it has was true.
  private(set) var restores = 0

  mutating func append(_ entry: CheckpointEntry, synced: Bool, restores: Int) {
    entries.append(entry)
    if synced { syncedCount = entries.count }
    if case .progress = entry { self.restores = restores }
  }

  /// How many records a power failure may undo.
  var unsyncedCount: Int { entries.count - syncedCount }

  mutating func losePower(keeping count: Int) {
    entries.removeLast(unsyncedCount - count)
    syncedCount = entries.count
  }

  /// How the run stands, by the last record.
  var progress: RunProgress {
    for entry in entries.reversed() {
      if case .progress(let progress) = entry { return progress }
    }
    return RunProgress()
  }

  /// The identifiers that have failed, and how often they were tried.
  var failedAttempts: [Int: Int] {
    var failed: [Int: Int] = [:]
    for case .failures(let record) in entries {
      if record.replaces { failed.removeAll() }
      for failure in record.failed { failed[failure.position] = failure.attempt }
    }
    return failed
  }
}
