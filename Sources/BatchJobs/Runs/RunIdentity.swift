import BatchPlatform
package import BatchRuns

/// The identity of a run.
package struct RunIdentity: Sendable {
  /// Its UUID.
  package let run: String
  /// When it first began, as an ISO 8601 timestamp in UTC.
  package let startedAt: String
  /// The microseconds of that second.
  package let startedMicroseconds: Int
  /// What it depends on of the schema, as it was recorded when it began; empty for a run that begins now, and for one that
  /// rows of several entities may concern.
  package let schema: [String]

  /// A run that begins now.
  package init() {
    run = UUID().uuidString
    let now = Date.now.timeIntervalSince1970
    startedAt = Date(timeIntervalSince1970: now.rounded(.down)).formatted(.iso8601)
    startedMicroseconds = Int((now - now.rounded(.down)) * 1_000_000)
    schema = []
  }

  /// A run that begins at a time of another clock.
  package init(startedAt: String) {
    run = UUID().uuidString.lowercased()
    self.startedAt = startedAt
    startedMicroseconds = 0
    schema = []
  }

  /// A time after its start, as an ISO 8601 timestamp in UTC.
  package func time(after duration: Duration) -> String? {
    let start = try? Date(startedAt, strategy: .iso8601)
    return start?.addingTimeInterval(duration / .seconds(1)).formatted(.iso8601)
  }

  /// The run of a checkpoint.
  package init(_ metadata: RunMetadata) {
    run = metadata.run
    startedAt = metadata.startedAt
    startedMicroseconds = metadata.startedMicroseconds
    schema = metadata.schema
  }
}
