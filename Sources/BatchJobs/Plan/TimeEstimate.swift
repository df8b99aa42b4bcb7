import BatchRuns

/// How long a run may take, in seconds.
package struct TimeEstimate: Sendable {
  package var seconds: Double
  package var least: Double
  package var most: Double
  /// The part of ``seconds`` beside the chunks: the selection, the beginning and the end.
  private var besideChunks: Double

  private static let triedChunks = 6
  package static let triedAtOnce = 1_000
  /// How long others may have to wait for a chunk that is tried.
  package static let longestTrial = Duration.milliseconds(200)

  /// The positions of chunks to try; the first one warms up the caches if there are others.
  package static func triedPositions(of count: Int, _ size: Int) -> [Range<Int>] {
    // Overlapping chunks would find their pages in memory.
    guard count >= size * triedChunks else { return [0..<min(size, count)] }
    return (0..<triedChunks).map { number in
      let start = (count - size) * number / (triedChunks - 1)
      return start..<(start + size)
    }
  }

  package init(seconds: Double, least: Double, most: Double, besideChunks: Double = 0) {
    (self.seconds, self.least, self.most) = (seconds, least, most)
    self.besideChunks = besideChunks
  }

  /// A time of which only the least is known.
  package init(atLeast seconds: Double) {
    self.init(seconds: seconds, least: seconds, most: .infinity)
  }

  /// An estimate that may be wrong by a factor; other activity is more likely to slow a run down.
  package init(_ seconds: Double, withinFactor factor: Double, besideChunks: Double) {
    self.init(
      seconds: seconds,
      least: seconds / factor,
      most: seconds * factor * 1.3,
      besideChunks: besideChunks
    )
  }

  /// Adds a measured time of the selection, which may turn out to be half or twice as long.
  package func adding(_ more: Double) -> TimeEstimate {
    var sum = self
    sum.seconds += more
    sum.least += more / 2
    sum.most += more * 2
    sum.besideChunks += more
    return sum
  }

  /// Adds a rest after each chunk, as a multiple of its time.
  fileprivate func resting(_ ratio: Double) -> TimeEstimate {
    let time = { max(0, $0 - besideChunks) * ratio }
    return TimeEstimate(
      seconds: seconds + time(seconds),
      least: least + time(least),
      most: most + time(most),
      besideChunks: besideChunks
    )
  }
}

extension Job {
  package func paced(
    _ estimate: TimeEstimate?,
    matches: Int
  ) -> (estimate: TimeEstimate?, pace: String?) {
    var time: (estimate: TimeEstimate?, pace: String?) = (estimate, nil)
    if let ratio = policy.throttle.sleepRatio, ratio > 0, let estimate {
      time = (estimate.resting(ratio), "throttle.sleepRatio")
    }
    if let rate = policy.throttle.identifiersPerSecond, matches > 0 {
      let least = Double(matches) / rate
      if least > time.estimate?.seconds ?? 0 {
        let most = max(least, time.estimate?.most ?? 0)
        time.estimate = TimeEstimate(seconds: least, least: least, most: most)
        time.pace = "throttle.identifiersPerSecond"
      }
    }
    if let window = policy.throttle.window, let seconds = time.estimate?.seconds {
      let days = (seconds / Double(window.minutes * 60)).rounded(.up)
      if days > 1 {
        time.pace = [time.pace, "throttle.window, on \(Int(days)) days"].compactMap(\.self)
          .joined(separator: " and ")
      }
    }
    return time
  }

  package func chunkSizing(_ given: Int?) -> (size: Int, adapts: Bool) {
    let sizing = ChunkSizing(policy, ofSize: given, preparedWithin: action.handlerTimeLimit)
    return (sizing.size, given == nil && policy.chunk.target != nil)
  }
}

extension PlanReport {
  package mutating func tell(_ time: (estimate: TimeEstimate?, pace: String?)) {
    (estimatedSeconds, pace) = (time.estimate?.seconds, time.pace)
    leastSeconds = time.estimate?.least
    mostSeconds = time.estimate.flatMap { $0.most.isFinite ? $0.most : nil }
  }
}
