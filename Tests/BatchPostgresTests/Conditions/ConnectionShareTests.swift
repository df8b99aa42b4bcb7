#if PostgreSQL
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ConnectionShareTests {
  @Test(arguments: [
    (40, 36), (20, 16), (19, 15), (6, 2), (5, 1), (3, 1), (0, 1), (-2, 1), (100, 60),
  ])
  func `a process starts with as many workers as leave three connections free`(
    spare: Int,
    count: Int
  ) {
    var share = ConnectionShare(workers: 60, reserve: 3)
    #expect(share.count == 60)
    share.observe(spare: spare)
    #expect(share.count == count)
  }

  @Test func `a connection shortage halves the workers, which return one by one`() {
    var share = ConnectionShare(workers: 16, reserve: 3)
    let seen = [100, 2, 0, 3, 4, 5, 1, 2, 2].map { spare in
      share.observe(spare: spare)
      return share.count
    }
    #expect(seen == [16, 8, 4, 4, 5, 6, 3, 1, 1])
    for _ in 0..<20 { share.observe(spare: 4) }
    #expect(share.count == 16)
  }

  /// Processes of which none knows of the others, and that ask at random moments.
  @Test func `several processes leave three connections free and keep a worker each`() {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<200 {
      var hosts = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        ConnectionShare(workers: Int.random(in: 1...30, using: &generator), reserve: 3)
      }
      // Each process has three connections besides those of its workers, and opens all that it may.
      func used() -> Int { hosts.reduce(0) { $0 + 3 + $1.count } }
      let total = 4 * hosts.count + 3 + Int.random(in: 0...40, using: &generator)
      var shortages = 0
      for turn in 0..<1000 {
        let place = Int.random(in: hosts.indices, using: &generator)
        hosts[place].observe(spare: max(0, total - used()))
        if turn >= 500, total - used() < 3 { shortages += 1 }
      }
      #expect(shortages < 250, "seed \(seed)")
      #expect(hosts.allSatisfy { $0.count >= 1 }, "seed \(seed)")
    }
  }
}
#endif
