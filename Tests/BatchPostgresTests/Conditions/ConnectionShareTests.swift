#if PostgreSQL
import BatchEngine
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ConnectionShareTests {
  @Test(arguments: [
    (40, 36), (20, 16), (19, 15), (5, 1), (4, 1), (3, 1), (2, 0), (-2, 0), (100, 60),
  ])
  func `a process begins with the workers that leave three connections`(spare: Int, count: Int) {
    var share = ConnectionShare(workers: 60, reserve: 3)
    #expect(share.count == 60)
    share.observe(spare: spare)
    #expect(share.count == count)
    #expect((share.hold != nil) == (count == 0))
  }

  @Test func `workers leave in halves and come back one by one`() {
    var share = ConnectionShare(workers: 16, reserve: 3)
    let seen = [100, 2, 0, 3, 4, 5, 1, 2, 2].map { spare in
      share.observe(spare: spare)
      return share.count
    }
    #expect(seen == [16, 8, 4, 4, 5, 6, 3, 1, 0])
    #expect(share.hold == .init("connections", "2 connections are left"))
    share.observe(spare: 1)
    #expect(share.hold == .init("connections", "1 connection is left"))
    share.observe(spare: 3)
    #expect(share.count == 1)
    share.observe(spare: 3)
    #expect(share.count == 1)
    for _ in 0..<20 { share.observe(spare: 4) }
    #expect(share.count == 16)
    #expect(share.hold == nil)
  }

  /// Against processes that open and close connections at random, of which none knows of the others.
  @Test func `processes share connections, and none waits for ever`() {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<200 {
      let total = Int.random(in: 20...60, using: &generator)
      var hosts = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        ConnectionShare(workers: Int.random(in: 1...30, using: &generator), reserve: 3)
      }
      var worked = hosts.map { _ in 0 }
      for turn in 0..<400 {
        let place = Int.random(in: hosts.indices, using: &generator)
        // Each process has three connections besides those of its workers, and opens all that it may.
        let used = hosts.reduce(0) { $0 + 3 + min($1.count, $1.workers) }
        hosts[place].observe(spare: max(0, total - used))
        if turn >= 200 { worked[place] += hosts[place].count }
      }
      #expect(worked.allSatisfy { $0 > 0 }, "seed \(seed)")
    }
  }

  @Test func `a share without workers holds nothing`() {
    var share = ConnectionShare(workers: 0, reserve: 3)
    share.observe(spare: 0)
    #expect(share.hold == nil)
  }
}
#endif
