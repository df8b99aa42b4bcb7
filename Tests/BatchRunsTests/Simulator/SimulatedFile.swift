@testable import BatchRuns
import BatchIdentifiers

/// A checkpoint file in memory: a power failure keeps the synced records and perhaps some more.
struct SimulatedFile {
  private var entries: [CheckpointEntry] = []
  private var syncedCount = 0
  /// Whether the file exists: it is created completely, or not at all.
  var exists = false
  /// How often a backup had been restored when its progress was true.
  private(set) var restores = 0

  mutating func append(
    _ entry: CheckpointEntry,
    replacingLast: Bool,
    synced: Bool,
    restores: Int
  ) {
    if replacingLast {
      entries.removeLast()
      syncedCount = min(syncedCount, entries.count)
    }
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

  /// The state of the run in the last record.
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
      for position in record.corrected ?? [] { failed[position] = nil }
      for failure in record.failed { failed[failure.position] = failure.attempt }
    }
    return failed
  }
}
