package import BatchRuns

/// The settings of a lane.
package struct WriterConfiguration: Sendable {
  /// When a commit waits for the disk.
  package var synchronous = Synchronous.normal
  /// Whether to switch the database to write-ahead logging.
  package var usesWriteAheadLog = true
  /// Whether foreign keys are enforced, which is not SQLite's default.
  package var enforcesForeignKeys = false
  /// Whether triggers run.
  package var runsTriggers = true
  /// How long other writers may wait for a chunk; nil to ignore them.
  package var courtesyTarget: Duration?
  /// The size of the write-ahead log in bytes above which it is checkpointed.
  package var checkpointBytes = 8 << 20

  /// Makes the default settings.
  package init() {}

  /// Makes checkpoints happen well before the log is long enough to hold a run.
  package mutating func limitCheckpoints(to maximumWAL: Int64) {
    checkpointBytes = min(checkpointBytes, Int(clamping: maximumWAL / 2))
  }
}
