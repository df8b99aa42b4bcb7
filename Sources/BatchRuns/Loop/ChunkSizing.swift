/// The size of the next chunk: as many identifiers as the writer commits in the target time.
///
/// Chunks must also be prepared well within the time limits. The cost per identifier is averaged
/// over the last chunks, so that one slow commit does not make the next ten small. If a chunk takes
/// several times its limit, its cost replaces the average: others waiting for the write lock must
/// not wait until the average adapts.
package struct ChunkSizing {
  /// The maximum factor from one chunk size to the next.
  private static let growth = 1.5
  /// A chunk that takes this many times its limit replaces the average; and a chunk may be this
  /// many times larger than any timed one.
  private static let excess = 5.0
  /// The weight of the newest chunk in the moving average.
  private static let weight = 0.5
  private static let firstTransformed = 20

  /// The cost of an identifier, either at the writer or in preparation.
  private struct Cost {
    /// How long a chunk may take.
    let limit: Duration
    /// The moving average.
    package private(set) var seconds: Double?

    init(limit: Duration) { self.limit = limit }

    /// The estimated number of identifiers that can be done within the limit.
    var affordable: Double { seconds.map { limit / .seconds(1) / $0 } ?? .infinity }

    mutating func observe(_ count: Int, took duration: Duration, weight: Double) {
      // The clock may be too coarse for so short a time, and report zero.
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
  /// The size of the last chunk; before the first chunk, its size.
  private var last: Int
  /// The size of the largest chunk that was timed.
  private var largest: Int

  /// - Parameters:
  ///   - policy: The policy of the run.
  ///   - handlerTime: The time limit for external code per chunk; nil if no such code is called.
  ///   - size: The recent chunk size of a resumed run.
  ///   - bytes: The estimate of the memory that chunks hold.
  package init(
    _ policy: RunPolicy,
    preparedWithin handlerTime: Duration? = nil,
    startingAt size: Int? = nil,
    bytes: ChunkBytes = ChunkBytes()
  ) {
    let most = policy.throttle.largestChunk ?? RunPolicy.chunkSizeLimit
    let bounds = policy.chunk.bounds
    var first = policy.chunk.size
    // A longer preparation would delay a requested stop.
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

  /// Makes the sizing for a plan, before anything was timed; `size` replaces the policy's.
  package init(_ policy: RunPolicy, ofSize size: Int?, preparedWithin handlerTime: Duration?) {
    var policy = policy
    if let size { policy.chunk = .init(size: size) }
    self.init(policy, preparedWithin: handlerTime)
  }

  /// Makes a sizing that begins with `size`, and keeps it if there is no target.
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

  package var size: Int { max(1, Int(min(Double(timedSize), bytes.rows))) }

  /// The size according to the times or the job, regardless of memory.
  private var timedSize: Int {
    guard target != nil, writing.seconds != nil || preparing.seconds != nil else { return last }
    let wanted =
      writing.seconds == nil
      ? Double(last)
      : min(max(writing.affordable, Double(bounds.lowerBound)), Double(bounds.upperBound))
    // Several chunks of the same size are in flight before the first one is timed.
    let most = min(
      max(Double(last) * Self.growth, Double(last + 1)),
      Double(largest) * Self.excess
    )
    // Chunks become smaller than the job's size if preparation takes too long.
    return max(1, Int(min(wanted, preparing.affordable, most)))
  }

  /// Returns the size of the next chunk, and remembers it.
  package mutating func next() -> Int {
    let next = size
    // Without a target, it remains the job's size.
    if target != nil { last = next }
    return next
  }

  /// Records how long the writer took for a chunk.
  package mutating func observe(_ count: Int, took duration: Duration) {
    guard target != nil, count > 0 else { return }
    writing.observe(count, took: duration, weight: weight(of: count))
    largest = max(largest, count)
  }

  /// Records how long a worker took to prepare a chunk, and the bytes that the chunk holds.
  package mutating func observe(_ count: Int, preparedIn duration: Duration, bytes held: Int = 0) {
    bytes.observe(count, held)
    guard target != nil, count > 0 else { return }
    preparing.observe(count, took: duration, weight: weight(of: count))
  }

  /// The short rest of a range says little about larger chunks, so it has less weight.
  private func weight(of count: Int) -> Double {
    Self.weight * min(1, Double(count) / Double(last))
  }

  /// The estimated bytes of the next chunk.
  package var expectedBytes: Double { bytes.expected(of: size) }

  // MARK: What is ahead

  package var hasTarget: Bool { target != nil }

  /// The number of chunks that the writer commits in this time; nil before one was timed.
  package func count(writtenIn duration: Duration) -> Double? {
    writing.seconds.map { min(duration, writing.limit) / .seconds(1) / ($0 * Double(size)) }
  }

  /// The number of chunks written while one is prepared; nil before both were timed.
  package var countWrittenDuringPreparation: Double? {
    guard let write = writing.seconds, let prepare = preparing.seconds else { return nil }
    return prepare / write
  }
}
