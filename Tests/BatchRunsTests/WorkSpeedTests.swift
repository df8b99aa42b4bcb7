import BatchTestSupport
import Testing

@testable import BatchRuns

/// The speed that a process reports, against the speed at which it works.
@Suite struct WorkSpeedTests {
  /// A process that works at a speed, under a pace, with holds.
  private struct Work {
    var speed = WorkSpeed()
    var worked = 0.0
    var done = 0
    var perSecond: Double
    var pace: Double?

    /// The speed that an observer would measure.
    var truth: Double { min(perSecond, pace ?? .infinity) }

    mutating func chunk(of count: Int) {
      worked += Double(count) / truth
      done += count
      speed.note(done, after: .seconds(worked))
    }

    var reported: Double? { speed.perSecond(after: .seconds(worked)) }
  }

  @Test(arguments: 0..<200)
  func `the measured speed is within a factor of two at least nine times in ten`(
    seed: Int
  ) {
    var random = SeededGenerator(seed: UInt64(seed))
    var work = Work(perSecond: Double.random(in: 5...50_000, using: &random))
    var (right, all) = (0, 0)
    for _ in 0..<20 {
      let phase = work.worked + Double.random(in: 5...200, using: &random)
      while work.worked < phase {
        let seconds = Double.random(in: 0.05...1.5, using: &random)
        work.chunk(of: max(1, Int(work.truth * seconds)))
        all += 1
        guard let reported = work.reported else { continue }
        if (0.5...2).contains(reported / work.truth) { right += 1 }
      }
      let pace: Double? =
        Bool.random(using: &random) ? nil : work.perSecond / .random(in: 2...100, using: &random)
      work.pace = pace
      work.speed.tune(pace: pace, after: .seconds(work.worked))
      if let pace { #expect(work.reported ?? 0 <= pace, "seed \(seed)") }
    }
    #expect(Double(right) / Double(all) >= 0.9, "seed \(seed): \(right) of \(all)")
  }

  @Test
  func `the speed under a pace says nothing of a higher one, unless the work is slower than both`()
  {
    for (perSecond, isKnown) in [(50_000.0, false), (1_000.0, true)] {
      var work = Work(perSecond: perSecond, pace: 2_000)
      work.speed.tune(pace: 2_000, after: .zero)
      while work.worked < 30 { work.chunk(of: 500) }
      work.pace = 20_000
      work.speed.tune(pace: 20_000, after: .seconds(work.worked))
      #expect((work.reported != nil) == isKnown)
      while work.worked < 40 {
        work.chunk(of: 500)
        if let reported = work.reported { #expect((0.5...2).contains(reported / work.truth)) }
      }
      #expect(work.reported != nil)
    }
  }

  @Test func `the measured speed follows a change within a minute`() throws {
    var work = Work(perSecond: 10_000)
    while work.worked < 600 { work.chunk(of: 5_000) }
    work.perSecond = 500
    while work.worked < 661 { work.chunk(of: 250) }
    let reported = try #require(work.reported)
    #expect((500.0...600).contains(reported))
  }

  @Test func `the measured speed falls while a process is idle`() throws {
    var work = Work(perSecond: 1_000)
    while work.worked < 60 { work.chunk(of: 100) }
    work.worked += 60
    let reported = try #require(work.reported)
    #expect(reported < 510)
  }

  @Test func `the measured speed is unknown before the first chunk`() {
    #expect(WorkSpeed().perSecond(after: .seconds(9)) == nil)
  }

  @Test func `the number of speed samples is bounded for any number of chunks`() {
    var work = Work(perSecond: 1_000_000)
    for _ in 0..<100_000 { work.chunk(of: 1_000) }
    #expect(work.speed.sampleCount <= 62)
  }
}
