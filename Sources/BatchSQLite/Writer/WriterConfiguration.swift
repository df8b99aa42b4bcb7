package import BatchRuns

package struct WriterConfiguration: Sendable {
  /// When a commit waits for the disk.
  package var synchronous = Synchronous.normal
  package var usesWriteAheadLog = true
  /// Whether foreign keys are enforced; SQLite's default is not to.
  package var enforcesForeignKeys = false
  package var runsTriggers = true
  /// How long other writers may wait for a chunk; nil for no limit.
  package var courtesyTarget: Duration?
  /// The size of the write-ahead log, in bytes, above which it is checkpointed.
  package var checkpointBytes = 8 << 20

  package init() {}

  /// Makes checkpoints happen well before the log reaches its maximum size.
  package mutating func limitCheckpoints(to maximumWAL: Int64) {
    checkpointBytes = min(checkpointBytes, Int(clamping: maximumWAL / 2))
  }
}
