@testable import BatchPipeline
import BatchTestSupport
import Testing

/// The size of chunks against rows of known cost.
@Suite struct ChunkSizingTests {
  private let target = Duration.milliseconds(100)

  /// How long a chunk takes if each row takes so many microseconds.
  private func time(_ count: Int, _ microseconds: Double) -> Duration {
    .nanoseconds(Int64(Double(count) * microseconds * 1000))
  }

  @Test(arguments: [10.0, 100.0, 1000.0], [0.1, 10.0])
  func `sizes settle within ten chunks when a row becomes ten times as cheap or dear`(
    before: Double,
    change: Double
  ) {
    for noise in [0.8, 1, 1.2] {
      var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
      for _ in 0..<30 { sizing.observe(sizing.size, took: time(sizing.size, before)) }
      for chunk in 0..<10 {
        let factor = chunk.isMultiple(of: 2) ? noise : 1
        sizing.observe(sizing.size, took: time(sizing.size, before * change * factor))
      }
      let ideal = 100_000 / (before * change)
      #expect((0.75 * ideal...1.3 * ideal).contains(Double(sizing.size)))
    }
  }

  @Test func `a chunk is at most half as large again as one that was timed`() {
    var sizing = ChunkSizing(100, target: target, bounds: 1...1_000_000)
    var sizes = [sizing.size]
    for _ in 0..<10 {
      sizing.observe(sizing.size, took: .microseconds(1))
      sizes.append(sizing.size)
    }
    for (size, next) in zip(sizes, sizes.dropFirst()) {
      #expect(next > size && Double(next) <= Double(size) * 1.5)
    }
    // The answers of four workers that were handed chunks of one size make one step, not four.
    let size = sizing.size
    for _ in 0..<4 { sizing.observe(size, took: .microseconds(1)) }
    #expect(Double(sizing.size) <= Double(size) * 1.5)
  }

  @Test func `five times the target makes the next chunk fit at once`() {
    var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
    for _ in 0..<20 { sizing.observe(sizing.size, took: time(sizing.size, 10)) }
    let size = sizing.size
    sizing.observe(size, took: target * 5)
    #expect((size / 5 - 1...size / 5).contains(sizing.size))
  }

  @Test func `one slow chunk below that does not make the next ones small`() {
    var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
    for _ in 0..<20 { sizing.observe(sizing.size, took: time(sizing.size, 10)) }
    let size = sizing.size
    sizing.observe(size, took: target * 2)
    #expect(sizing.size > size / 2)
  }

  @Test func `sizes stay within their bounds, and where there is no target as they are`() {
    var generator = SeededGenerator(seed: 11)
    var bounded = ChunkSizing(5, target: target, bounds: 100...2000)
    var fixed = ChunkSizing(5)
    #expect(bounded.size == 100)
    for _ in 0..<1000 {
      let duration = Duration.nanoseconds(Int64.random(in: 0...10_000_000_000, using: &generator))
      bounded.observe(bounded.size, took: duration)
      fixed.observe(fixed.size, took: duration)
      #expect((100...2000).contains(bounded.size))
    }
    #expect(fixed.size == 5)
  }

  @Test func `a bound that is given moves the default of the other`() {
    #expect(Job.Chunk(target: target).bounds == 100...20_000)
    #expect(Job.Chunk(target: target, minimum: 50_000).bounds == 50_000...50_000)
    #expect(Job.Chunk(target: target, maximum: 10).bounds == 10...10)
    #expect(ChunkSizing(Job.Chunk(target: target, maximum: 10)).size == 10)
  }
}
