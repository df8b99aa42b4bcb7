import BatchTestSupport

/// Positions cut into chunks.
enum Chunks {
  /// Chunks of random sizes, in an order such as several workers might bring about.
  static func random(of count: Int, using random: inout SeededGenerator) -> [Range<Int>] {
    var chunks: [Range<Int>] = []
    var start = 0
    while start < count {
      let end = min(count, start + Int.random(in: 1...12, using: &random))
      chunks.append(start..<end)
      start = end
    }
    return chunks.shuffled(using: &random)
  }
}
