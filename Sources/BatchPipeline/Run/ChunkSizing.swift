/// How many identifiers the next chunk holds: as many as shall take a target's time.
///
/// The cost of an identifier is smoothed over the last chunks, so that one slow commit does not
/// make the next ten small. A chunk that took several times the target counts alone: whoever waits
/// for the write lock shall not wait for the average to notice.
struct ChunkSizing {
  /// How much a chunk may be larger than the one it was sized by.
  private static let growth = 1.5
  /// How many times the target a chunk may take before the average is dropped.
  private static let excess = 5
  /// What the newest chunk counts in the average.
  private static let weight = 0.5

  /// The size of the next chunk.
  private(set) var size: Int
  private let target: Duration?
  private let bounds: ClosedRange<Int>
  /// The smoothed cost of an identifier, in seconds.
  private var cost: Double?

  /// Sizes for a job, none beyond `most`.
  init(_ chunk: Job.Chunk, atMost most: Int? = nil) {
    let most = most ?? Job.chunkSizeLimit
    let bounds = chunk.bounds
    self.init(
      min(chunk.size, most),
      target: chunk.target,
      bounds: min(bounds.lowerBound, most)...min(bounds.upperBound, most)
    )
  }

  /// Sizes that begin at one, and stay there without a target.
  init(_ size: Int, target: Duration? = nil, bounds: ClosedRange<Int> = 1...Job.chunkSizeLimit) {
    precondition(size > 0 && bounds.lowerBound > 0, "a chunk of no identifiers")
    self.size = target == nil ? size : min(max(size, bounds.lowerBound), bounds.upperBound)
    self.target = target
    self.bounds = bounds
  }

  /// Takes note of how long a chunk took.
  mutating func observe(_ count: Int, took duration: Duration) {
    guard let target, count > 0 else { return }
    // A clock may not see so short a time at all.
    let observed = max(duration / .seconds(1), 1e-9) / Double(count)
    if let cost, duration < target * Self.excess {
      self.cost = cost + (observed - cost) * Self.weight
    } else {
      cost = observed
    }
    let wanted = (target / .seconds(1)) / (cost ?? observed)
    // Chunks sized before are still under way: growth is counted from what was observed, or the
    // answers of several workers would each add to it.
    let most = max(Double(count) * Self.growth, Double(count + 1))
    size = Int(min(max(min(wanted, most), Double(bounds.lowerBound)), Double(bounds.upperBound)))
  }
}
