@testable import BatchRuns
import BatchTestSupport
import SystemPackage
import Testing

/// What holds a run, on a clock that the tests turn.
@Suite struct ThrottleTests {
  /// Commits chunks as early as a throttle allows, each of which takes some time.
  private func run(
    _ throttle: RunPolicy.Throttle,
    chunks: [Int],
    taking time: Duration,
    late: Duration = .zero
  ) -> [(at: Duration, count: Int)] {
    var machine = RunThrottle(throttle)
    var now = Duration.zero
    var committed: [(at: Duration, count: Int)] = []
    for count in chunks {
      while let hold = machine.hold(at: now, .init()) {
        #expect(hold.duration > .zero)
        #expect(hold.isPace)
        now += hold.duration + late
      }
      now += time
      committed.append((now, count))
      machine.committed(count, took: time, at: now)
    }
    return committed
  }

  @Test(arguments: 0..<10 as Range<UInt64>)
  func `a rate limit holds over every period and is used fully`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let rate = Double.random(in: 10...10_000, using: &random)
    let chunks = (0..<200).map { _ in Int.random(in: 1...max(1, Int(rate / 4)), using: &random) }
    let late = Duration.milliseconds(Int.random(in: 0...20, using: &random))
    let committed = run(
      RunPolicy.Throttle(identifiersPerSecond: rate),
      chunks: chunks,
      taking: .microseconds(Int.random(in: 1...100, using: &random)),
      late: late
    )
    for first in stride(from: 0, to: chunks.count - 20, by: 13) {
      // The first of them is paid for by what comes after it.
      let part = committed[first...]
      for last in stride(from: first + 1, to: chunks.count, by: 29) {
        let count = part[first..<last].reduce(0) { $0 + $1.count }
        let seconds = (committed[last].at - committed[first].at) / .seconds(1)
        // A tenth of a second of waking up late is made up for.
        #expect(Double(count) <= rate * (seconds + 0.101), "\(first) to \(last)")
      }
    }
    let total = Double(chunks.dropLast().reduce(0, +))
    let seconds = (committed[199].at - committed[0].at) / .seconds(1)
    #expect(total / seconds > rate * 0.95)
  }

  @Test func `a slow run is not delayed by a rate limit and may not catch up afterwards`() {
    var throttle = RunThrottle(RunPolicy.Throttle(identifiersPerSecond: 100))
    var now = Duration.seconds(100)
    for _ in 0..<10 {
      #expect(throttle.hold(at: now, .init()) == nil)
      throttle.committed(10, took: .milliseconds(1), at: now)
      now += .seconds(1)
    }
    // Two chunks at once save the second one's tenth of a second, but no more.
    throttle.committed(10, took: .milliseconds(1), at: now)
    #expect(throttle.hold(at: now, .init()) == nil)
    throttle.committed(10, took: .milliseconds(1), at: now)
    #expect(throttle.hold(at: now, .init())?.duration == .milliseconds(100))
    #expect(throttle.hold(at: now, .init())?.cause == .identifiersPerSecond)
    #expect(throttle.hold(at: now + .milliseconds(100), .init()) == nil)
  }

  @Test func `a sleep ratio delays a chunk by a share of the time of the one before`() {
    let committed = run(
      RunPolicy.Throttle(sleepRatio: 0.25),
      chunks: [5, 5, 5],
      taking: .milliseconds(100)
    )
    #expect(committed.map(\.at) == [100, 225, 350].map(Duration.milliseconds))
    #expect(RunThrottle(RunPolicy.Throttle(sleepRatio: 0.25)).setsPace)
    #expect(!RunThrottle(RunPolicy.Throttle()).setsPace)
  }

  @Test func `a daily window may end the run even while another condition holds it`() throws {
    let window = try DailyWindow(parsing: "22:00-06:00")
    var now = RunThrottle.Conditions(isFlagged: true, minuteOfDay: 12 * 60)
    #expect(RunThrottle(.init(window: window)).end(now) == nil)
    let throttle = RunThrottle(.init(flagFile: "/hold", window: window, outsideWindow: .stop))
    #expect(throttle.end(now) == "throttle.window: it is not 22:00-06:00")
    now.minuteOfDay = 22 * 60
    #expect(throttle.end(now) == nil)
  }

  @Test func `each throttle condition holds the run while it is true, and the first is shown`()
    throws
  {
    var job = RunPolicy.Throttle(
      identifiersPerSecond: 1,
      maximumWAL: 1_000_000,
      minimumFreeDisk: 500
    )
    job.flagFile = "/run/hold"
    job.window = try DailyWindow(parsing: "22:00-06:00")
    var throttle = RunThrottle(job)
    throttle.committed(3, took: .seconds(1), at: .zero)
    throttle.logBytes = 1_000_001
    var now = RunThrottle.Conditions(isFlagged: true, freeDisk: 499, minuteOfDay: 12 * 60)
    func reason() -> String? { throttle.hold(at: .seconds(1), now)?.reason }
    #expect(reason() == "flagFile: /run/hold exists")
    #expect(throttle.hold(at: .zero, now)?.duration == RunThrottle.lookInterval)
    #expect(throttle.hold(at: .zero, now)?.isPace == false)
    now.isPaused = true
    #expect(reason() == "pause: until batch resume")
    now.isPaused = false
    now.isFlagged = false
    #expect(reason() == "window: it is not 22:00-06:00")
    now.minuteOfDay = 23 * 60
    #expect(reason() == "minimumFreeDisk: 499 bytes are free, less than 500 bytes")
    now.freeDisk = 500
    now.storeHold = .init("replicationLag", "standby b is 40 s behind")
    #expect(reason() == "replicationLag: standby b is 40 s behind")
    #expect(throttle.hold(at: .zero, now)?.isPace == false)
    now.storeHold = nil
    #expect(reason()?.hasPrefix("maximumWAL: the write-ahead log is longer than 1 MB; ") == true)
    throttle.logBytes = 1_000_000
    #expect(reason() == "identifiersPerSecond: at most 1 a second")
    #expect(throttle.hold(at: .seconds(3), now) == nil)
    // What cannot be found out does not hold a run.
    now.freeDisk = nil
    #expect(throttle.hold(at: .seconds(3), now) == nil)
  }

  @Test(arguments: [
    RunPolicy.Throttle(identifiersPerSecond: 0.001), RunPolicy.Throttle(sleepRatio: 100),
  ])
  func `a throttled run rechecks its limits soon, however long the pause`(
    pace: RunPolicy.Throttle
  ) {
    var throttle = RunThrottle(pace)
    throttle.committed(10, took: .seconds(60), at: .zero)
    #expect(throttle.hold(at: .seconds(1), .init())?.duration == RunThrottle.lookInterval)
    // The last bit of a pace is not overslept.
    let end = pace.sleepRatio == nil ? Duration.seconds(10_000) : .seconds(6000)
    let last = throttle.hold(at: end - .milliseconds(103), .init())
    #expect(last?.duration == RunThrottle.lookInterval)
    #expect(throttle.hold(at: end - .milliseconds(3), .init())?.duration == .milliseconds(3))
    throttle.settings = RunPolicy.Throttle(identifiersPerSecond: 1000, sleepRatio: 0.1)
    #expect(throttle.hold(at: .seconds(1), .init()) == nil)
    throttle.committed(1000, took: .seconds(10), at: .seconds(1))
    throttle.settings.maximumWAL = 2_000_000
    #expect(throttle.hold(at: .seconds(1), .init())?.cause == .identifiersPerSecond)
  }

  @Test func `only the default log limit holds a run without settings`() {
    var throttle = RunThrottle(RunPolicy.Throttle())
    throttle.committed(1_000_000, took: .seconds(1000), at: .zero)
    throttle.logBytes = 64_000_000
    let conditions = RunThrottle.Conditions(isFlagged: true, freeDisk: 0, minuteOfDay: 0)
    #expect(throttle.hold(at: .zero, conditions) == nil)
    throttle.logBytes += 1
    #expect(throttle.hold(at: .zero, conditions)?.cause == .maximumWAL)
  }

  @Test(arguments: [
    ("22:00-06:00", [22 * 60, 23 * 60 + 59, 0, 359], [6 * 60, 12 * 60, 21 * 60 + 59]),
    ("06:30-07:00", [390, 419], [389, 420, 0]),
    ("00:00-24:00", [0, 719, 1439], []),
    ("12:00-00:00", [720, 1439], [0, 719]),
  ])
  func `a daily window includes its start and excludes its end`(
    text: String,
    open: [Int],
    closed: [Int]
  ) throws {
    let window = try DailyWindow(parsing: text)
    for minute in open { #expect(window.contains(minuteOfDay: minute)) }
    for minute in closed { #expect(!window.contains(minuteOfDay: minute)) }
    #expect(window.description == text)
  }

  @Test(arguments: [
    "", "22:00", "22:00-22:00", "22:00-06:00-07:00", "24:00-06:00", "22:60-06:00", "2:00-06:00",
    "22:00 - 06:00", "-1:00-06:00", "22:00-25:00", "aa:bb-cc:dd", "22:00–06:00", "٢٢:00-06:00",
  ])
  func `an invalid window is refused`(text: String) {
    #expect(throws: (any Error).self) { try DailyWindow(parsing: text) }
  }

  @Test func `a rate limit bounds a chunk to the rows of one second`() {
    var policy = RunPolicy(throttle: .init(identifiersPerSecond: 10))
    #expect(ChunkSizing(policy).size == 10)
    policy.chunk = RunPolicy.Chunk(target: .seconds(1))
    var sizing = ChunkSizing(policy)
    sizing.observe(sizing.next(), took: .milliseconds(1))
    #expect(sizing.size == 10)
    policy.chunk = RunPolicy.Chunk(size: 7)
    #expect(ChunkSizing(policy).size == 7)
  }
}
