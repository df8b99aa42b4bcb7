/// The size of the next chunk: as many identifiers as take the target's time at the writer and can
/// be prepared well within the time limits.
///
/// The cost of an identifier is averaged over the last chunks, so that one slow commit does not
/// make the next ten small. A chunk that took several times its limit counts alone: others waiting
/// for the write lock must not wait for the average to adapt.
package struct ChunkSizing {
  /// How much larger a chunk may be than the previous one.
  private static let growth = 1.5
  /// How many times its limit a chunk may take before the average is dropped, and how much larger
  /// than any timed chunk one may be.
  private static let excess = 5.0
  /// The weight of the newest chunk in the average.
  private static let weight = 0.5
  /// The maximum size of a first chunk prepared by external code.
  private static let firstTransformed = 20

  /// The cost of an identifier at the writer or in preparation.
  private struct Cost {
    /// The time limit of a chunk.
    let limit: Duration
    /// The smoothed cost in seconds.
    package private(set) var seconds: Double?

    init(limit: Duration) { self.limit = limit }

    /// The estimated number of identifiers that fit the limit.
    var affordable: Double { seconds.map { limit / .seconds(1) / $0 } ?? .infinity }

    mutating func observe(_ count: Int, took duration: Duration, weight: Double) {
      // The clock may be too coarse for so short a time.
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
  package private(set) var bytes: ChunkBytes
  /// The size of the last chunk; before there is one, of the first.
  private var last: Int
  /// The largest size proven by a timed chunk.
  private var largest: Int

  /// Makes the sizes of a policy.
  ///
  /// - Parameters:
  ///   - policy: The policy.
  ///   - handlerTime: The time limit of external code for a chunk; nil if none prepares it.
  ///   - size: The recent size of chunks, where a target continues.
  ///   - bytes: What is known of the memory that chunks hold.
  package init(
    _ policy: RunPolicy,
    preparedWithin handlerTime: Duration? = nil,
    startingAt size: Int? = nil,
    bytes: ChunkBytes = ChunkBytes()
  ) {
    let most = policy.throttle.largestChunk ?? RunPolicy.chunkSizeLimit
    let bounds = policy.chunk.bounds
    var first = policy.chunk.size
    // A longer preparation would delay a stop.
    var timeLimit = max(.seconds(1), (policy.chunk.target ?? .zero) * 10)
    if let handlerTime {
      timeLimit = min(timeLimit, handlerTime / 4)
      if policy.chunk.target != nil { first = min(first, Self.firstTransformed) }
    } else if policy.chunk.target != nil {
      first = min(max(first, bounds.lowerBound), bounds.upperBound)
    }
    if policy.chunk.target != nil, let size { first = min(max(size, 1), bounds.upperBound) }
    self.init(
      min(first, most),
      target: policy.chunk.target,
      bounds: min(bounds.lowerBound, most)...min(bounds.upperBound, most),
      preparing: timeLimit,
      bytes: bytes
    )
  }

  /// The sizes of a policy for a plan, before anything is known; `size` replaces the policy's own.
  package init(_ policy: RunPolicy, ofSize size: Int?, preparedWithin handlerTime: Duration?) {
    var policy = policy
    if let size { policy.chunk = .init(size: size) }
    self.init(policy, preparedWithin: handlerTime)
  }

  /// Sizes that start at one, and stay there without a target.
  package init(
    _ size: Int,
    target: Duration? = nil,
    bounds: ClosedRange<Int> = 1...RunPolicy.chunkSizeLimit,
    preparing timeLimit: Duration = .seconds(1),
    bytes: ChunkBytes = ChunkBytes()
  ) {
    precondition(size > 0 && bounds.lowerBound > 0, "an empty chunk")
    self.target = target
    self.bounds = bounds
    writing = Cost(limit: target ?? .zero)
    preparing = Cost(limit: timeLimit)
    last = size
    largest = size
    self.bytes = bytes
  }

  /// The size of the next chunk.
  package var size: Int { max(1, Int(min(Double(timedSize), bytes.rows))) }

  /// The size given by the times or the job.
  private var timedSize: Int {
    guard target != nil, writing.seconds != nil || preparing.seconds != nil else { return last }
    let wanted =
      writing.seconds == nil
      ? Double(last)
      : min(max(writing.affordable, Double(bounds.lowerBound)), Double(bounds.upperBound))
    // Several chunks of a size are in flight before the first is timed.
    let most = min(
      max(Double(last) * Self.growth, Double(last + 1)),
      Double(largest) * Self.excess
    )
    // If preparation takes too long, chunks are smaller than the job's.
    return max(1, Int(min(wanted, preparing.affordable, most)))
  }

  /// Begins the next chunk.
  ///
  /// - Returns: How many identifiers it holds at most.
  package mutating func next() -> Int {
    let next = size
    // Without a target, the size stays the job's.
    if target != nil { last = next }
    return next
  }

  /// Notes how long a chunk took at the writer.
  package mutating func observe(_ count: Int, took duration: Duration) {
    guard target != nil, count > 0 else { return }
    writing.observe(count, took: duration, weight: weight(of: count))
    largest = max(largest, count)
  }

  /// Notes how long a chunk took to prepare, and what it holds.
  package mutating func observe(_ count: Int, preparedIn duration: Duration, bytes held: Int = 0) {
    bytes.observe(count, held)
    guard target != nil, count > 0 else { return }
    preparing.observe(count, took: duration, weight: weight(of: count))
  }

  /// A short rest of a range says little about larger chunks.
  private func weight(of count: Int) -> Double {
    Self.weight * min(1, Double(count) / Double(last))
  }

  /// What the next chunk will hold, in bytes.
  package var expectedBytes: Double { bytes.expected(of: size) }

  // MARK: What is ahead

  /// Whether sizes follow the time that chunks take.
  package var hasTarget: Bool { target != nil }

  /// How many chunks of the next size the writer commits in a time; nil before one was timed.
  package func count(writtenIn duration: Duration) -> Double? {
    writing.seconds.map { min(duration, writing.limit) / .seconds(1) / ($0 * Double(size)) }
  }

  /// How many chunks are written while one is prepared; nil before one was timed.
  package var countWrittenDuringPreparation: Double? {
    guard let write = writing.seconds, let prepare = preparing.seconds else { return nil }
    return prepare / write
  }
}
