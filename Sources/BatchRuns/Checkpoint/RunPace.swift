package import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The number of done identifiers over time, from a checkpoint's records.
package struct RunPace: Sendable, Codable {
  package struct Point: Sendable, Codable {
    /// The working time so far, over all resumptions.
    package let seconds: Double
    package let done: Int

    /// The beginning of a run, before its first record.
    package static let start = Point(seconds: 0, done: 0)
  }

  package static let pointLimit = 240

  /// Earliest first.
  package private(set) var points: [Point] = []
  /// One in this many records becomes a point.
  private var stride = 1
  private var skipped = 0
  private var last: Point?

  package init() {}

  /// Adds a record, and drops every second point if there are too many.
  package mutating func add(seconds: Double, done: Int) {
    let point = Point(seconds: seconds, done: done)
    // Time passes even if nothing is done; time that goes backward indicates a restored database.
    guard seconds >= last?.seconds ?? 0 else { return }
    if let last, last.seconds == seconds, last.done == done { return }
    last = point
    skipped += 1
    guard skipped >= stride else { return }
    skipped = 0
    points.append(point)
    guard points.count >= Self.pointLimit else { return }
    points = points.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    stride *= 2
  }

  /// Adds the last record if it is not yet a point.
  package mutating func finish() {
    if let last, points.last?.seconds != last.seconds { points.append(last) }
  }
}

extension Checkpoint {
  package func pace() throws(BatchError) -> RunPace {
    var pace = RunPace()
    if path.isEmpty { return pace }
    try IdentifierFile(opening: path).forEachRecord { record throws(BatchError) in
      guard record.kind == CheckpointEntry.progressKind else { return }
      do {
        let progress = try JSONDecoder().decode(RunProgress.self, from: Data(record.payload))
        pace.add(seconds: progress.elapsedSeconds, done: progress.done.count)
      } catch {
        throw BatchError(
          .damagedFile,
          "a record of progress cannot be read",
          at: path.string,
          remedy: "it was written by another version, or by hand",
          underlying: error
        )
      }
    }
    pace.finish()
    return pace
  }
}
