@testable import BatchRuns
import BatchTestSupport
import SystemPackage
import Testing

/// The size of chunks against rows of known cost.
@Suite struct ChunkSizingTests {
  private let target = Duration.milliseconds(100)

  /// How long a chunk takes at a given time per row, in microseconds.
  private func time(_ count: Int, _ microseconds: Double) -> Duration {
    .nanoseconds(Int64(Double(count) * microseconds * 1000))
  }

  /// Does a chunk at a given time per row at the writer, in microseconds.
  private func commit(_ sizing: inout ChunkSizing, _ microseconds: Double) {
    let count = sizing.next()
    sizing.observe(count, took: time(count, microseconds))
  }

  @Test(arguments: [10.0, 100.0, 1000.0], [0.1, 10.0])
  func `chunk sizes settle within ten chunks when row cost changes tenfold`(
    before: Double,
    change: Double
  ) {
    for noise in [0.8, 1, 1.2] {
      var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
      for _ in 0..<30 { commit(&sizing, before) }
      for chunk in 0..<10 {
        commit(&sizing, before * change * (chunk.isMultiple(of: 2) ? noise : 1))
      }
      let ideal = 100_000 / (before * change)
      #expect((0.75 * ideal...1.3 * ideal).contains(Double(sizing.size)))
    }
  }

  @Test func `a chunk is at most half as large again as the chunk before`() {
    var sizing = ChunkSizing(100, target: target, bounds: 1...1_000_000)
    sizing.observe(sizing.next(), took: .microseconds(1))
    // The answers of four workers that were handed chunks of one size make one step, not four.
    for _ in 0..<4 { sizing.observe(100, took: .microseconds(1)) }
    var sizes = [100]
    for _ in 0..<10 {
      sizes.append(sizing.next())
      sizing.observe(sizes[sizes.count - 1], took: .microseconds(1))
    }
    for (size, next) in zip(sizes, sizes.dropFirst()) {
      #expect(next > size && Double(next) <= Double(size) * 1.5)
    }
  }

  @Test func `chunk sizes stop growing while no chunk has been timed`() {
    var sizing = ChunkSizing(100, target: target, bounds: 1...1_000_000)
    sizing.observe(sizing.next(), took: .microseconds(1))
    for _ in 0..<20 { _ = sizing.next() }
    #expect(sizing.size == 500)
  }

  @Test func `a chunk that takes five times the target corrects the next size immediately`() {
    var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
    for _ in 0..<20 { commit(&sizing, 10) }
    let size = sizing.next()
    sizing.observe(size, took: target * 5)
    #expect((size / 5 - 1...size / 5).contains(sizing.size))
  }

  @Test func `a chunk that takes twice the target reduces the next size by less than half`() {
    var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
    for _ in 0..<20 { commit(&sizing, 10) }
    let size = sizing.next()
    sizing.observe(size, took: target * 2)
    #expect(sizing.size > size / 2)
  }

  @Test func `tiny chunks between gaps do not make later chunks small`() {
    var sizing = ChunkSizing(1000, target: target, bounds: 1...1_000_000)
    for _ in 0..<20 { commit(&sizing, 10) }
    let size = sizing.size
    // Three rows cost a commit as much as a chunk does.
    for _ in 0..<10 { sizing.observe(3, took: .milliseconds(3)) }
    #expect(sizing.size > size / 3)
  }

  @Test func `a chunk size stays within its bounds, and unchanged without a target`() {
    var generator = SeededGenerator(seed: 11)
    var bounded = ChunkSizing(100, target: target, bounds: 100...2000, preparing: .seconds(1000))
    var fixed = ChunkSizing(5)
    for _ in 0..<1000 {
      let duration = Duration.nanoseconds(Int64.random(in: 0...10_000_000_000, using: &generator))
      bounded.observe(bounded.next(), preparedIn: duration)
      bounded.observe(bounded.size, took: duration)
      fixed.observe(fixed.next(), preparedIn: duration)
      fixed.observe(fixed.size, took: duration)
      #expect((100...2000).contains(bounded.size))
    }
    #expect(fixed.size == 5)
  }

  @Test func `a minimum or maximum chunk size adjusts the default of the other`() {
    #expect(RunPolicy.Chunk(target: target).bounds == 100...20_000)
    #expect(RunPolicy.Chunk(target: target, minimum: 50_000).bounds == 50_000...50_000)
    #expect(RunPolicy.Chunk(target: target, maximum: 10).bounds == 10...10)
  }

  // MARK: Preparing

  @Test(arguments: [100.0, 2000.0, 100_000.0])
  func `a slow handler never has a chunk for longer than a quarter of its time limit`(
    microseconds: Double
  ) {
    var sizing = ChunkSizing(
      RunPolicy(chunk: .init(target: target)),
      preparedWithin: .seconds(5)
    )
    // Of how slow it is nothing is known when the first chunk is begun.
    sizing.observe(sizing.size, preparedIn: time(sizing.next(), microseconds))
    for _ in 0..<40 {
      let count = sizing.next()
      let duration = time(count, microseconds)
      #expect(duration <= .seconds(5) / 4)
      sizing.observe(count, preparedIn: duration)
      sizing.observe(count, took: time(count, 2))
    }
    // As large as can be: a second's worth, or the most that the job allows.
    let ideal = min(1e6 / microseconds, 20_000)
    #expect((0.9 * ideal...ideal).contains(Double(sizing.size)))
  }

  @Test func `a slow handler reduces chunks below the minimum size, and they grow back gradually`()
  {
    var sizing = ChunkSizing(
      RunPolicy(chunk: .init(target: target, minimum: 500)),
      preparedWithin: .seconds(60)
    )
    for _ in 0..<20 {
      let count = sizing.next()
      sizing.observe(count, preparedIn: time(count, 500_000))
      sizing.observe(count, took: time(count, 10))
    }
    #expect(sizing.size == 2)
    var sizes = [sizing.size]
    for _ in 0..<30 {
      let count = sizing.next()
      sizing.observe(count, preparedIn: time(count, 10))
      sizing.observe(count, took: time(count, 10))
      sizes.append(count)
    }
    #expect(sizing.size >= 500)
    for (size, next) in zip(sizes, sizes.dropFirst()) {
      #expect(Double(next) <= max(Double(size) * 1.5, Double(size + 1)))
    }
  }

  @Test
  func `a run resumes with its own chunk size if it has a target, else with the configured size`() {
    var policy = RunPolicy(chunk: .init(size: 700))
    func size(startingAt size: Int? = nil) -> Int {
      ChunkSizing(policy, preparedWithin: .seconds(300), startingAt: size).size
    }
    #expect(size() == 700)
    #expect(size(startingAt: 30) == 700)
    policy.chunk.target = target
    #expect(size() == 20)
    #expect(size(startingAt: 300) == 300)
    #expect(size(startingAt: 300_000) == 20_000)
  }
}
