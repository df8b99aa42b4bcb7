import BatchPlatform
package import BatchRuns

package struct RunIdentity: Sendable {
  package let run: String
  /// In ISO 8601 and UTC.
  package let startedAt: String
  /// The microseconds within that second.
  package let startedMicroseconds: Int
  /// The parts of the schema that the run depends on, as recorded when it began.
  ///
  /// It is empty for a run that begins now, and for one that may concern rows of several entities.
  package let schema: [String]
  /// The files that the run loads, as they were when it began; nil for one that begins now.
  package let loaded: LoadedFiles?
  /// The range of rows that the run exports; nil for one that begins now, and for other work.
  package let increment: Increment?
  /// The increment that a run which begins now goes on from.
  package let last: LastIncrement?

  package init(after last: LastIncrement? = nil) {
    run = UUID().uuidString
    let now = Date.now.timeIntervalSince1970
    startedAt = Date(timeIntervalSince1970: now.rounded(.down)).formatted(.iso8601)
    startedMicroseconds = Int((now - now.rounded(.down)) * 1_000_000)
    schema = []
    loaded = nil
    increment = nil
    self.last = last
  }

  /// Makes the identity of a run that begins at a time given by another clock.
  package init(startedAt: String, microseconds: Int = 0, after last: LastIncrement? = nil) {
    run = UUID().uuidString.lowercased()
    self.startedAt = startedAt
    startedMicroseconds = microseconds
    schema = []
    loaded = nil
    increment = nil
    self.last = last
  }

  /// A time after the start, in ISO 8601 and UTC.
  package func time(after duration: Duration) -> String? {
    let start = try? Date(startedAt, strategy: .iso8601)
    return start?.addingTimeInterval(duration / .seconds(1)).formatted(.iso8601)
  }

  package init(_ metadata: RunMetadata) {
    run = metadata.run
    startedAt = metadata.startedAt
    startedMicroseconds = metadata.startedMicroseconds
    schema = metadata.schema
    loaded = metadata.loaded
    increment = metadata.increment
    last = nil
  }
}
