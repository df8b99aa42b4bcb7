/// How many identifiers the next chunk holds: as many as shall take a target's time at the writer,
/// and can be prepared long before anybody's patience ends.
///
/// The cost of an identifier is smoothed over the last chunks, so that one slow commit does not
/// make the next ten small. A chunk that took several times what it may counts alone: whoever waits
/// for the write lock shall not wait for the average to notice.
package struct ChunkSizing {
  /// How much a chunk may be larger than the one before it.
  private static let growth = 1.5
  /// How many times its time a chunk may take before the average is dropped, and how much larger
  /// than all that were timed one may be.
  private static let excess = 5.0
  /// What the newest chunk counts in the average.
  private static let weight = 0.5
  /// The most identifiers of a first chunk that somebody else's code prepares.
  private static let firstTransformed = 20

  /// What an identifier costs in one of the two places.
  private struct Cost {
    /// How long a chunk may take there.
    let limit: Duration
    /// What was seen of it, smoothed, in seconds.
    package private(set) var seconds: Double?

    init(limit: Duration) { self.limit = limit }

    /// How many identifiers may be a chunk, as far as is known.
    var affordable: Double { seconds.map { limit / .seconds(1) / $0 } ?? .infinity }

    mutating func observe(_ count: Int, took duration: Duration, weight: Double) {
      // A clock may not see so short a time at all.
      let observed = max(duration / .seconds(1), 1e-9) / Double(count)
      if let seconds, duration < limit * ChunkSizing.excess {
        self.seconds = seconds + (observed - seconds) * weight
      } else {
        seconds = observed
      }
    }
  }

  private let target: Duration?
  private let bounds: ClosedRange<Int>
  private var writing: Cost
  private var preparing: Cost
  /// What chunks hold.
  package private(set) var bytes: ChunkBytes
  /// What the last chunk was allowed to hold; before there is one, what the first is.
  private var last: Int
  /// The most that is known to be no accident.
  private var largest: Int

  /// Sizes that a policy asks for.
  ///
  /// - Parameters:
  ///   - policy: The policy.
  ///   - handlerTime: How long somebody else's code has for a chunk; nil if none prepares it.
  ///   - size: What chunks had lately, if a target is to go on from there.
  ///   - bytes: What is known of what chunks hold.
  package init(
    _ policy: RunPolicy,
    preparedWithin handlerTime: Duration? = nil,
    startingAt size: Int? = nil,
    bytes: ChunkBytes = ChunkBytes()
  ) {
    let most = policy.throttle.largestChunk ?? RunPolicy.chunkSizeLimit
    let bounds = policy.chunk.bounds
    var first = policy.chunk.size
    // Longer, and it would be long until a stop is heard.
    var patience = max(.seconds(1), (policy.chunk.target ?? .zero) * 10)
    if let handlerTime {
      patience = min(patience, handlerTime / 4)
      if policy.chunk.target != nil { first = min(first, Self.firstTransformed) }
    } else if policy.chunk.target != nil {
      first = min(max(first, bounds.lowerBound), bounds.upperBound)
    }
    if policy.chunk.target != nil, let size { first = min(max(size, 1), bounds.upperBound) }
    self.init(
      min(first, most),
      target: policy.chunk.target,
      bounds: min(bounds.lowerBound, most)...min(bounds.upperBound, most),
      preparing: patience,
      bytes: bytes
    )
  }

  /// Sizes that begin at one, and stay there without a target.
  package init(
    _ size: Int,
    target: Duration? = nil,
    bounds: ClosedRange<Int> = 1...RunPolicy.chunkSizeLimit,
    preparing patience: Duration = .seconds(1),
    bytes: ChunkBytes = ChunkBytes()
  ) {
    precondition(size > 0 && bounds.lowerBound > 0, "a chunk of no identifiers")
    self.target = target
    self.bounds = bounds
    writing = Cost(limit: target ?? .zero)
    preparing = Cost(limit: patience)
    last = size
    largest = size
    self.bytes = bytes
  }

  /// The size of the next chunk.
  package var size: Int { max(1, Int(min(Double(timedSize), bytes.rows))) }

  /// The size that the times allow, or the job says.
  private var timedSize: Int {
    guard target != nil, writing.seconds != nil || preparing.seconds != nil else { return last }
    let wanted =
      writing.seconds == nil
      ? Double(last)
      : min(max(writing.affordable, Double(bounds.lowerBound)), Double(bounds.upperBound))
    // Several are on their way before one of a size is timed.
    let most = min(
      max(Double(last) * Self.growth, Double(last + 1)),
      Double(largest) * Self.excess
    )
    // What cannot be prepared in time is done in smaller chunks than the job says.
    return max(1, Int(min(wanted, preparing.affordable, most)))
  }

  /// Begins the next chunk.
  ///
  /// - Returns: How many identifiers it holds at most.
  package mutating func next() -> Int {
    let next = size
    // Without a target it stays the job's.
    if target != nil { last = next }
    return next
  }

  /// Takes note of how long a chunk took at the writer.
  package mutating func observe(_ count: Int, took duration: Duration) {
    guard target != nil, count > 0 else { return }
    writing.observe(count, took: duration, weight: weight(of: count))
    largest = max(largest, count)
  }

  /// Takes note of how long a chunk took to prepare, and what it holds.
  package mutating func observe(_ count: Int, preparedIn duration: Duration, bytes held: Int = 0) {
    bytes.observe(count, held)
    guard target != nil, count > 0 else { return }
    preparing.observe(count, took: duration, weight: weight(of: count))
  }

  /// The rest of a range may be a few identifiers, and says little about many.
  private func weight(of count: Int) -> Double {
    Self.weight * min(1, Double(count) / Double(last))
  }

  /// What the next chunk will hold, in bytes.
  package var expectedBytes: Double { bytes.expected(of: size) }

  // MARK: What is ahead

  /// Whether sizes follow the time that chunks take.
  package var hasTarget: Bool { target != nil }

  /// How many chunks of the next size take so long at the writer; nil if none was timed yet.
  package func count(writtenIn duration: Duration) -> Double? {
    writing.seconds.map { min(duration, writing.limit) / .seconds(1) / ($0 * Double(size)) }
  }

  /// How many chunks are written while one is prepared; nil if none was timed yet.
  package var countWrittenDuringPreparation: Double? {
    guard let write = writing.seconds, let prepare = preparing.seconds else { return nil }
    return prepare / write
  }
}
